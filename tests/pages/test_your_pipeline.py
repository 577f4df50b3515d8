"""The page of pipelines of one's own, and such a pipeline on the other pages."""

from __future__ import annotations

import sys

import pytest

from core.backends.external import doors
from core.domain.pipelines import Pipeline
from core.domain.program import COMMAND
from core.domain.settings import PROJECT
from core.domain.types import Query
from core.engine import endpoints
from core.engine.request import Request
from core.evaluation.gold import Gold
from core.routes import registry
from tests.pages.reading import html, shown
from tests.until import until
from ui.app.data import table

GUIDE = table("pipeline_guide")
PIPELINE = """
def hit(id, text): return {"doc_id": id, "text": text}
def search(query, k):
    print("<script>printed()</script>")
    return [hit("<b>stranger</b>", "<script>alert(1)</script> words that stand nowhere here"), *found(query)]
def found(query): return [hit(*one) for one in TEXTS]
def staged(query, k):
    every = found(query)
    return {"hits": every[:1], "answer": "Yes.", "stages": [
        {"name": "words", "kind": "retrieve", "ms": 3, "hits": every},
        {"name": "judge", "kind": "rerank", "ms": 9, "hits": every[:1]}]}
def fails(query, k): raise ValueError("<i>no index</i>")
"""


@pytest.fixture
def own(engine, tmp_path):
    """Three pipelines over the engine's own passages."""
    texts = [(one.doc_id, one.text) for one in engine.fakes["tiny"].all[:3]]
    file = tmp_path / "rag.py"
    file.write_text(f"TEXTS = {texts!r}\n{PIPELINE}")
    for name in ("search", "staged", "fails"):
        registry.add(Pipeline(name, "function", f"{file}:{name}", sys.executable, title=f"My {name}"))
    yield engine
    registry.forget_given()
    doors.stop_all()
    endpoints._trials.clear()


def test_without_pipelines_the_page_says_how_to_add_one(visit):
    app = visit("corpus.py", tab="Your pipeline")
    assert "not connected a pipeline" in shown(app)


def test_what_is_shown_to_add_one(visit):
    app = visit("corpus.py", tab="Your pipeline")
    code = "\n".join(one.value for one in app.code)
    for name in ("function", "stages", "settings"):
        assert GUIDE["examples"][name].strip() in code
    assert f"{COMMAND} eval support" in code
    page = html(app)
    for field in GUIDE["field"]:
        assert field["name"] in page


def test_documentation_has_the_same_table():
    text = (PROJECT / "docs" / "your-pipeline.md").read_text(encoding="utf-8")
    lines = text[text.index("| Field |") :].partition("\n\n")[0].splitlines()
    rows = [line.replace("`", "").strip("| ").split(" | ") for line in lines[2:]]
    assert rows == [[field["name"], field["unlocks"], field["fate"]] for field in GUIDE["field"]]
    compile(GUIDE["examples"]["function"], "example", "exec")
    compile(GUIDE["examples"]["stages"], "example", "exec")


def test_a_trial_shows_what_matched_and_what_was_printed(visit, own):
    app = visit("corpus.py", tab="Your pipeline")
    assert "Not asked since the dashboard started" in html(app)
    app.button(key="try_pipeline:search").click().run()
    until(lambda: endpoints.last_trial("search") is not None)
    app.run()
    page = html(app)
    assert "3 of 4 passages matched to the corpus" in page
    assert "not in the corpus" in page
    assert "It reported no stages" in page
    assert "&lt;script&gt;printed()" in page
    assert "<script>" not in page
    assert "<b>stranger" not in page


def test_a_trial_that_fails_shows_the_error_and_the_traceback(visit, own):
    app = visit("corpus.py", tab="Your pipeline")
    app.button(key="try_pipeline:fails").click().run()
    until(lambda: endpoints.last_trial("fails") is not None)
    app.run()
    page = html(app)
    assert "pipeline fails failed: ValueError: &lt;i&gt;no index&lt;/i&gt;" in page
    assert "Traceback (most recent call last)" in page


def test_one_that_cannot_run_says_why_and_has_no_trial(visit, engine):
    registry._set["absent"] = (Pipeline("absent", "function", "/absent.py:f"), "[external.absent]: not there")
    registry.routes.cache_clear()
    try:
        app = visit("corpus.py", tab="Your pipeline")
        assert "Cannot run: [external.absent]: not there" in html(app)
        assert not [one for one in app.button if one.key == "try_pipeline:absent"]
    finally:
        registry._set.clear()
        registry.routes.cache_clear()


@pytest.fixture
def run(own):
    made = own.ask(Request(Query("return a jacket"), "tiny", ("bm25", "search", "staged", "fails")))
    assert own.store.flush()
    return made


def test_compare_marks_time_matches_and_strangers(visit, run):
    page = html(visit("compare.py", run=run.id))
    assert "measured from outside" in page
    assert "3 of 4 passages matched to the corpus" in page
    assert "not in the corpus" in page
    assert "<script>" not in page


def test_why_follows_it_as_deep_as_its_stages_go_and_says_so(visit, run, monkeypatch):
    lost = run.results[2].spans[1].hits[1][0]
    monkeypatch.setattr("ui.components.gold.gold_of", lambda _: Gold({lost: 3}))
    app = visit("why.py", run=run.id)
    assert "“judge” dropped it" in html(app)
    said = shown(app)
    assert "reported the lists of" in said
    assert "reported its final list only" in said


def test_every_page_about_a_run_opens(visit, run):
    for page in (*(f"steps.py?view={name}" for name in ("Transform", "Fusion", "Evaluators")), "sessions.py"):
        visit(page, run=run.id)
    assert "measured from outside" in html(visit("latency.py", run=run.id))
