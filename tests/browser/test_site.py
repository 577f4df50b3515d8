"""The site of an evaluation, opened from the disk: what it shows, that no text of it runs, and no request."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing

import pytest

from core.domain.program import PROJECT

pytestmark = pytest.mark.browser
HOSTILE = (
    '</script><script>document.title="run"</script>'
    '<img src=http://evil.example/a.png onerror=document.title="run">'
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    source = folder / "set"
    (source / "qrels").mkdir(parents=True)
    texts = {"d1": f"A parcel is returned by post. {HOSTILE}", "d2": "A refund is paid in five days."}
    lines = [json.dumps({"_id": id, "title": HOSTILE, "text": text}) for id, text in texts.items()]
    (source / "corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
    question = {"_id": "q1", "text": f"How is a parcel returned? {HOSTILE}"}
    (source / "queries.jsonl").write_text(json.dumps(question), encoding="utf-8")
    (source / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n", encoding="utf-8")
    environment = {**os.environ, "ROUTESCOPE_HOME": str(folder / "home")}

    def run(*command: str) -> None:
        arguments = [sys.executable, "-m", "core", *command]
        done = subprocess.run(arguments, cwd=PROJECT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    run("eval", str(source), "--routes", "bm25,grep", "--out", str(folder / "out"))
    run("export", str(folder / "out"), "--site", str(folder / "site"))
    return folder / "site"


def test_it_works_from_the_disk_and_runs_no_text(site, browser):
    asked: list[str] = []
    with closing(browser.new_page()) as page:
        page.on("request", lambda request: asked.append(request.url))
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((site / "index.html").as_uri())
        title = page.title()
        assert page.locator("table").first.locator("tbody tr").count() == 2
        page.get_by_role("button", name="How is a parcel returned?").click()
        page.locator("#routes section").nth(1).wait_for()
        first = page.locator("#routes section li").first
        assert "grade 1" in first.inner_text()
        assert HOSTILE in first.inner_text()
        assert page.locator("#why").inner_text().strip()
        assert page.locator("img").count() == 0
        assert page.title() == title
    assert errors == []
    assert asked
    assert all(url.startswith("file:") for url in asked)


def test_a_folder_that_is_not_empty_is_left_alone(site):
    before = sorted(path.name for path in site.iterdir())
    arguments = [sys.executable, "-m", "core", "export", str(site.parent / "out"), "--site", str(site)]
    assert subprocess.run(arguments, cwd=PROJECT, capture_output=True).returncode == 2
    assert sorted(path.name for path in site.iterdir()) == before
