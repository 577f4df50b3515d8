"""No text becomes a link that leads elsewhere: questions, documents, names and errors full of addresses."""

from contextlib import closing
from dataclasses import replace
from urllib.parse import quote

import pytest

from core.domain.types import Query, Turn
from core.store import Store
from core.store.playlists import PlaylistEntry
from tests.browser.acting import alerts, eventually, settle, text, views
from tests.browser.conftest import core
from tests.browser.test_dashboard import DECIDE, PAGES, RUN_PAGES
from tests.runs import make_run

pytestmark = [pytest.mark.browser, pytest.mark.enable_socket]
LINKS = (
    "http://evil.example/a?b=c#d, HTTPS://evil.example. www.evil.example/e, <http://evil.example/f>, "
    "[g](http://evil.example/g), me@evil.example, mailto:me@evil.example, //evil.example/h, "
    "ftp://evil.example/i, http://[::1]:80/j and http://ümlaut.example/k"
)


@pytest.fixture(scope="module")
def linked(address, home):
    """A corpus, a stored run and a playlist that are made of addresses."""
    folder = home / "linked"
    folder.mkdir()
    for n in range(4):
        (folder / f"www.evil.example {n}.md").write_text(f"# {LINKS}\n\nA parcel is returned. {LINKS} {n}\n")
    core(home, "index --name linked", str(folder))
    run = make_run(hostile=True, run_id="linked", corpus="linked")
    passages = {
        id: replace(one, title=f"{LINKS} {n}", text=f"{LINKS} {one.text}")
        for n, (id, one) in enumerate(run.passages.items())
    }
    results = tuple(
        replace(
            one,
            title=f"{one.title} {LINKS}",
            error=one.error and f"ModelFailed: {LINKS}",
            hits=tuple(replace(hit, passage=passages[hit.passage.id]) for hit in one.hits),
            spans=tuple(replace(span, name=f"{span.name} {LINKS}") for span in one.spans),
        )
        for one in run.results
    )
    said = (Turn("user", LINKS), Turn("assistant", LINKS))
    with closing(Store(home / "routescope.sqlite")) as store:
        store.save(replace(run, query=Query(f"linked {LINKS}", said), results=results, passages=passages))
        assert store.flush()
        assert store.load("linked").query.text.endswith("/k")
        store.save_playlist("linked www.evil.example", [PlaylistEntry(LINKS, "linked", "linked", said)])
    return "linked"


@pytest.mark.trust
@pytest.mark.parametrize("path", PAGES)
def test_no_page_links_elsewhere(tab, linked, path):
    """The fixture `tab` fails the test for each link to another origin that was on the page at any time."""
    page = tab(f"{path}run={linked}&corpus=linked")
    settle(page)
    assert page.locator("[data-testid=stException]").count() == 0
    list(views(page))
    if path in RUN_PAGES:
        assert "evil.example" in text(page)


@pytest.mark.trust
@pytest.mark.parametrize("path", [*RUN_PAGES, *DECIDE, "/sessions?", "/corpus?", "/present?"])
def test_an_error_that_repeats_an_address_is_text(tab, linked, path):
    given = quote(f"x {LINKS}")
    page = tab(
        f"{path}run={given}&corpus={given}&evaluation={given}&set={given}&playlist={given}&passage={given}"
    )
    settle(page)
    assert page.locator("[data-testid=stException]").count() == 0


def test_what_was_asked_with_addresses_is_told_as_it_was_written(tab, linked):
    page = tab("/?corpus=linked")
    settle(page)
    page.fill("textarea", f"returned {LINKS}")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".rs-matrix")
    settle(page)
    assert "http://evil.example/a?b=c#d" in page.locator(".rs-matrix").inner_text()
    page.goto(page.url.split("?")[0] + f"?run={quote('http://evil.example')}")
    eventually(page, lambda: bool(alerts(page)))
    assert alerts(page)[0].startswith("there is no run 'http://evil.example'")
