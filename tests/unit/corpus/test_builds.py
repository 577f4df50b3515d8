"""Index builds in the background, and the sample questions of the built-in corpora."""

import threading
import time

import pytest

from core.corpus import builds, index
from core.corpus.embeddings import Estimate
from core.corpus.samples import question_files, samples
from core.domain.errors import BadInput, Cancelled
from core.domain.settings import Settings


@pytest.fixture
def slow(monkeypatch):
    """A build that goes on until it is cancelled or let go."""
    go = threading.Event()

    def build(name, source, *, settings, progress, cancel, helpers, begin):
        progress("embed", 3, 10)
        while not go.is_set():
            if cancel.wait(0.01):
                raise Cancelled("stopped")
        if source == "broken":
            raise BadInput("broken/corpus.jsonl line 2: not JSON")

    monkeypatch.setattr(index, "build", build)
    return go


def begin(tmp_path, name, source="somewhere"):
    build = builds.start(name, source, Settings(home=tmp_path))
    for _ in range(200):
        if build.stage == "embed":
            break
        time.sleep(0.01)
    return build


def test_a_build_reports_and_ends(tmp_path, slow):
    build = begin(tmp_path, "one")
    assert (build.stage, build.finished, build.total, build.done) == ("embed", 3, 10, False)
    assert build in builds.under_way()
    with pytest.raises(BadInput, match="'one' is already in progress"):
        builds.start("one", "somewhere", Settings(home=tmp_path))
    slow.set()
    build.wait(60)
    assert (build.done, build.error, build.cancelled) == (True, None, False)
    assert builds.get("one") is build
    assert build not in builds.under_way()


def test_a_build_can_be_stopped_and_begun_again_and_its_error_is_kept(tmp_path, slow):
    build = begin(tmp_path, "two")
    build.cancel()
    build.wait(60)
    assert (build.done, build.cancelled, build.error) == (True, True, None)
    again = begin(tmp_path, "two", "broken")
    assert again is not build
    slow.set()
    again.wait(60)
    assert again.error == "broken/corpus.jsonl line 2: not JSON"


def test_a_build_that_costs_too_much_can_be_confirmed(tmp_path, monkeypatch):
    begun = []

    def build(_name, _source, *, begin, settings, **_):
        begun.append(begin)
        begin(Estimate("paid", 10, 10_000, settings.embed_limit_cost + 1, 1.0, True))

    monkeypatch.setattr(index, "build", build)
    refused = builds.start("paid", "somewhere", Settings(home=tmp_path))
    refused.wait(60)
    assert "embed_limit_cost" in refused.error
    confirmed = refused.confirm()
    confirmed.wait(60)
    assert (confirmed.error, confirmed.confirm, len(begun)) == (None, None, 2)


def test_samples_of_the_built_in_corpus_are_complete_and_in_order():
    found = samples("support")
    assert len(found) >= 10
    assert len({sample.id for sample in found}) == len(found)
    assert all(sample.query.text.strip() and sample.shows.strip() for sample in found)
    assert any(sample.query.history for sample in found)


def test_samples_come_by_their_order_and_a_broken_one_is_named_by_file_and_line(tmp_path):
    row = '{{"id": "{0}", "text": "{0}?", "sample": {{"order": {1}, "shows": "s"}}}}'
    rows = {
        "mine": [
            *(row.format(id, at) for id, at in (("c", 3), ("a", 1), ("b", 2))),
            '{"id": "x", "text": "?"}',
        ],
        "broken": [row.format("a", 1), '{"id": "b", "text": "How?", "sample": {"order": "first"}}'],
    }
    for name, lines in rows.items():
        (tmp_path / name / "questions").mkdir(parents=True)
        (tmp_path / name / "questions" / "q.jsonl").write_text("\n".join(lines))
    assert [sample.id for sample in samples("mine", tmp_path)] == ["a", "b", "c"]
    with pytest.raises(BadInput, match=r"q\.jsonl line 2: a sample needs"):
        samples("broken", tmp_path)


def test_a_corpus_name_cannot_lead_out_of_the_data_folder(tmp_path):
    (tmp_path / "questions.jsonl").write_text("{}")
    assert question_files("..", tmp_path / "data") == []
    assert question_files("../x", tmp_path) == []
