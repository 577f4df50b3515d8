"""CRAG: each action with each evaluator, what it does without a web or a model, and what its steps say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.analysis.run_view import gradings
from core.analysis.what_if.grading import at
from core.backends.evaluators import FEATURES
from core.domain.errors import ModelFailed
from core.domain.needs import Need
from core.domain.types import Query
from core.engine.availability import missing
from core.engine.request import Request
from core.evaluation.tuning.batch_run import follows
from core.routes.registry import routes
from core.steps.rerank import READ_THEN
from tests.asking import ask, ids, outputs, span, spans
from tests.fakes import TEXTS, FakeEngine, ScriptedLLM
from tests.loopback import http, loopback

CRUSHED = "My box arrived crushed"
WEB = {"duty:0-50": "Customs duties on textiles depend on the HS chapter."}
FITTING = {**WEB, "guide:0-40": "My box arrived crushed: what to do."}  # one page that earns its place
EARNED = {"correct": "use what was found", "ambiguous": "add the web", "incorrect": "replace it by the web"}
ACTIONS = {"correct": "use what was found", "ambiguous": "keep what was found"}
ACTIONS["incorrect"] = ACTIONS["ambiguous"]


class Pairs:
    """A cross-encoder that likes the passage about crushed boxes, with the logit given, and one page."""

    name, share = "tiny pairs", 1.0

    def __init__(self, logit):
        self.logit = logit

    def rerank(self, _, passages, **__):
        return [
            9.0 if "what to do" in one.text else self.logit if "six sides" in one.text else -9.0
            for one in passages
        ]


def crag(tmp_path, *, question=CRUSHED, llm=None, logit=None, web=WEB, texts=TEXTS, settings=None, **more):
    chosen = {"reranker": "tiny-pairs"} if logit is not None else {}
    engine = FakeEngine(tmp_path, llm=llm, web=web, texts=texts, **chosen, **(settings or {}))
    if logit is not None:
        rerankers = engine.fake_rerankers
        rerankers._pairs.get(rerankers.configured, lambda: Pairs(logit))
    return ask(tmp_path, "crag", question, engine=engine, **more)[0]


def output(result, name):
    return span(result, name).output


def grade(value):
    def answer(request):
        shown = request.messages[-1].content
        return str(0.99 if "what to do" in shown else value if "six sides" in shown else 0.01)

    return ScriptedLLM({"grade": answer})


def found(result):
    """The corpus' ranking as its search found it."""
    return [id for id, _ in span(result, "fuse by normalised scores").hits]


CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("lightweight", "correct", {}),
    ("lightweight", "ambiguous", {"high": 0.9}),
    ("lightweight", "incorrect", {"low": 0.9}),
    ("llm", "correct", {"llm": grade(0.95)}),
    ("llm", "ambiguous", {"llm": grade(0.75)}),
    ("llm", "incorrect", {"llm": grade(0.1)}),
    ("cross-encoder", "correct", {"logit": 5.0}),
    ("cross-encoder", "ambiguous", {"logit": 0.0}),
    ("cross-encoder", "incorrect", {"logit": -5.0}),
]


@pytest.mark.parametrize(("evaluator", "decision", "more"), CASES)
def test_each_evaluator_reaches_each_action_and_says_why(tmp_path, evaluator, decision, more):
    result = crag(tmp_path, evaluator=evaluator, **more)
    assert (result.status, result.error) == ("ok", None)
    verdict = output(result, "grade and decide")
    assert (verdict.decision, verdict.evaluator) == (decision, evaluator)
    best = max(one.grade for one in verdict.grades)
    assert f"{best:.3f}" in verdict.why
    assert f"{verdict.high if decision == 'correct' else verdict.low:.3f}" in verdict.why
    assert all(0 <= one.grade <= 1 for one in verdict.grades)
    assert output(result, "act on the grades").decision == ACTIONS[decision]
    searched = spans(result, "search the web")
    assert len(searched) == (decision != "correct")
    assert all(one.attributes["source"] == "local snapshot, not a live web search" for one in searched)
    if decision != "correct":
        grades = output(result, "grade the web results")
        assert (grades.evaluator, grades.high) == (evaluator, verdict.high)
        assert "0 of 1 web results" in output(result, "act on the grades").why
        assert ids(result) == [*found(result), "web/duty:0-50"]  # no page earned a place
    else:
        assert sorted(ids(result)) == sorted(found(result))
    strips = output(result, "keep the sentences that matter").sentences
    assert {strip.id for strip in strips} <= set(found(result))
    assert any(strip.kept for strip in strips)


@pytest.mark.parametrize(("evaluator", "decision", "more"), CASES)
def test_a_page_that_is_trusted_comes_first_and_the_others_last(tmp_path, evaluator, decision, more):
    result = crag(tmp_path, web=FITTING, evaluator=evaluator, **more)
    assert (result.status, result.error) == ("ok", None)
    action = output(result, "act on the grades")
    assert (action.decision, action.details["earned"]) == (EARNED[decision], int(decision != "correct"))
    if decision == "correct":
        return
    grades = {one.id: one.grade for one in output(result, "grade the web results").grades}
    high = output(result, "grade and decide").high
    assert grades["web/guide:0-40"] >= high > grades["web/duty:0-50"]
    assert f"1 of 2 web results reach {high:.3f}" in action.why
    assert ids(result) == ["web/guide:0-40", *found(result), "web/duty:0-50"]
    read = {strip.id for strip in output(result, "keep the sentences that matter").sentences}
    graded = {one.id for one in output(result, "grade and decide").grades}
    assert read == {"web/guide:0-40"} | (graded if decision == "ambiguous" else set())


def test_what_other_thresholds_would_do_follows_from_the_grades_of_the_web(tmp_path):
    result = crag(tmp_path, web=FITTING, evaluator="llm", llm=grade(0.75))
    (step,) = gradings(result)  # grades of the web are none of what was found
    acts = [
        follows(result, step, at(step.output.grades, low, high))
        for low, high in ((0.1, 0.7), (0.1, 0.9), (0.8, 0.9), (0.1, 0.999))
    ]
    wanted = [*(EARNED[name] for name in ("correct", "ambiguous", "incorrect")), "keep what was found"]
    assert [act.decision for act in acts if act is not None] == wanted


def test_token_vectors_of_pages_are_not_said_to_be_what_an_index_could_hold(tmp_path):
    pages = {"unread:0-50": f"My box arrived crushed, {tmp_path.name}."}  # nobody read it before
    result = crag(tmp_path, web=pages, low=0.9)
    measured = [one.attributes for one in spans(result, "measure the passages")]
    assert [READ_THEN in one for one in measured] == [False, False]
    assert measured[1]["no BM25 score"].startswith("1 passages are not of the corpus")


def test_a_web_result_that_cannot_be_graded_stays_behind_and_its_grade_says_why(tmp_path):
    def answer(request):
        if "HS chapter" in request.messages[-1].content:
            raise ModelFailed("the endpoint answered HTML")
        return "0.75"

    result = crag(tmp_path, llm=ScriptedLLM({"grade": answer}), evaluator="llm")
    assert (result.status, result.error) == ("ok", None)
    (graded,) = output(result, "grade the web results").grades
    assert (graded.grade, graded.state, graded.why) == (None, "error", "the endpoint answered HTML")
    assert "0 of 1 web results" in output(result, "act on the grades").why
    assert ids(result) == [*found(result), "web/duty:0-50"]


def test_a_cross_encoder_that_fails_on_the_web_leaves_what_was_found(tmp_path, monkeypatch):
    whole = Pairs.rerank

    def half(self, text, passages, **more):
        if any("HS chapter" in passage.text for passage in passages):
            raise ModelFailed("the endpoint answered HTML")
        return whole(self, text, passages, **more)

    monkeypatch.setattr(Pairs, "rerank", half)
    result = crag(tmp_path, evaluator="cross-encoder", logit=0.0)
    assert (result.status, result.error) == ("ok", None)
    assert [one.state for one in output(result, "grade the web results").grades] == ["error"]
    assert ids(result) == [*found(result), "web/duty:0-50"]


GRADE = st.none() | st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]) | st.floats(0, 1)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    own=st.lists(GRADE, min_size=5, max_size=5).filter(lambda some: any(one is not None for one in some)),
    pages=st.lists(GRADE, max_size=5),
    edges=st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)).map(sorted),
    most=st.integers(1, 5),
)
def test_no_page_passes_a_passage_that_is_graded_as_high_as_every_page(
    tmp_path_factory, own, pages, edges, most
):
    """Whatever the grades, the corpus' own order stays among its passages, too, unless they are trusted."""
    given_ = {f"six sides {n}": value for n, value in enumerate(own)}
    given_ |= {f"page {n}": value for n, value in enumerate(pages)}

    def answer(request):
        shown = request.messages[-1].content
        value = next(value for text, value in given_.items() if text in shown)
        if value is None:
            raise ModelFailed("no grade")
        return str(value)

    result = crag(
        tmp_path_factory.mktemp("crag"),
        llm=ScriptedLLM({"grade": answer}),
        evaluator="llm",
        texts={f"own{n}:0-9": f"crushed box, six sides {n}" for n in range(len(own))},
        web={f"page{n}:0-9": f"crushed box, page {n}" for n in range(len(pages))},
        low=edges[0],
        high=edges[1],
        web_passages=most,
    )
    assert (result.status, result.error) == ("ok", None)
    graded = {one.id: one.grade for one in output(result, "grade and decide").grades}
    web = [one for found in outputs(result, "grade the web results") for one in found.grades]
    order = {id: rank for rank, id in enumerate(ids(result))}
    assert set(found(result)) <= set(order), "nothing that was found is lost"
    known = [one.grade for one in web if one.grade is not None]
    for id, value in graded.items():
        if value is not None and all(value >= other for other in known):
            assert all(order[id] < order[one.id] for one in web)
    if all(other < edges[1] for other in known) and output(result, "grade and decide").decision != "correct":
        assert ids(result)[: len(found(result))] == found(result)


@pytest.mark.parametrize(("evaluator", "decision", "more"), CASES)
def test_without_a_web_search_there_is_a_gap_or_it_goes_on_and_says_so(tmp_path, evaluator, decision, more):
    result = crag(tmp_path, web=None, settings={"web_search": "none"}, evaluator=evaluator, **more)
    assert (result.status, result.error) == ("ok", None)
    action = output(result, "act on the grades")
    assert not spans(result, "search the web")
    if decision == "incorrect":
        assert action.decision == "knowledge gap"
        assert (result.citations, result.abstained) == ((), True)
        assert {one.id for one in output(result, "grade and decide").grades} <= set(ids(result))
        assert result.answer is not None
        assert CRUSHED in result.answer
        verdict = output(result, "grade and decide")
        assert f"{max(one.grade for one in verdict.grades):.2f}" in result.answer
        assert "no web search is set up" in result.answer
        assert "ROUTESCOPE_WEB_SEARCH" in result.answer
        return
    assert not result.abstained
    assert result.hits[0].passage.id == "crushed:0-80"
    assert action.decision == ("use what was found" if decision == "correct" else "go on without the web")
    assert ("no web search is set up" in action.why) is (decision == "ambiguous")


def test_an_unbuilt_snapshot_is_a_warning_and_a_gap_not_an_unavailable_route(tmp_path):
    engine = FakeEngine(tmp_path)
    job = engine.start(Request(Query(CRUSHED), "tiny", ("crag",), {"crag": {"low": 0.95}}))
    result = job.wait(60).results[0]
    assert (result.status, result.abstained) == ("ok", True)
    assert any("no web search" in warning for warning in job.warnings)
    quiet = FakeEngine(tmp_path, web_search="none").start(Request(Query(CRUSHED), "tiny", ("crag",)))
    quiet.wait(60)
    assert not quiet.warnings


@pytest.mark.parametrize("low", [0.95, 0.0])
def test_a_web_search_that_fails_is_shown_and_does_not_end_the_route(tmp_path, low):
    parameters = {"low": low} if low else {"high": 0.95}
    with loopback(http("<html>no</html>", status="403 Forbidden")) as server:
        result = crag(tmp_path, web=None, settings={"web_search": server.url}, **parameters)
    assert result.status == "ok"
    failed = span(result, "search the web")
    assert "must list json" in str(failed.error)
    assert "the web search failed" in output(result, "act on the grades").why
    assert result.abstained is bool(low)


def test_a_live_web_search_is_asked_for_keywords_and_its_pages_are_results(tmp_path):
    page = {"url": "https://x.example/p", "title": "Boxes", "content": "A crushed box.", "score": 1.0}
    llm = ScriptedLLM({"web-query": "crushed box claim"})
    with loopback(http(json.dumps({"results": [page]}))) as server:
        result = crag(tmp_path, web=None, llm=llm, settings={"web_search": server.url}, low=0.95)
    assert b"q=crushed+box+claim" in server.requests[0]
    hit = result.hits[-1]  # below the upper threshold, which the lower one lifts to .95
    assert (hit.passage.doc_id, hit.passage.text) == (page["url"], page["content"])
    searched = span(result, "search the web")
    assert server.url in searched.attributes["source"]


@pytest.mark.parametrize(
    "llm", [ScriptedLLM(missing="no model"), ScriptedLLM({"web-query": ModelFailed("HTML")})]
)
def test_without_a_model_the_question_itself_is_searched_and_the_span_says_so(tmp_path, llm):
    engine = FakeEngine(tmp_path, llm=llm, web=WEB)
    result, _ = ask(tmp_path, "crag", CRUSHED, engine=engine, low=0.95)
    assert result.status == "ok"
    assert engine.fakes["web"].searches == [CRUSHED]
    keywords = span(result, "write web search keywords")
    assert keywords.output.texts == (CRUSHED,)
    assert "the question itself is searched" in keywords.attributes["note"]


def test_the_lightweight_grades_come_from_what_the_span_shows(tmp_path):
    from core.backends.evaluators import read

    result = crag(tmp_path)
    measured = output(result, "measure the passages").value
    expected = read("lightweight").grades([[row[name] for name in FEATURES] for row in measured])
    verdict = output(result, "grade and decide")
    assert [one.grade for one in verdict.grades] == pytest.approx(expected.tolist())
    assert [one.id for one in verdict.grades] == [row["id"] for row in measured]
    attributes = span(result, "grade and decide").attributes
    assert "data/evaluators/lightweight.json" in attributes["evaluator"]
    assert "trained with vectors of all-MiniLM-L6-v2" in attributes["note"]


def test_a_cross_encoder_that_is_not_configured_is_unavailable_with_the_way_to_get_one(tmp_path):
    for setting in ("embedded", "llm", "http://127.0.0.1:9/rerank"):
        result = crag(tmp_path, settings={"reranker": setting}, evaluator="cross-encoder")
        assert result.status == "unavailable"
        assert "no cross-encoder is configured" in str(result.error)
        assert "ROUTESCOPE_RERANKER" in str(result.error)


def test_what_is_missing_does_not_hold_the_route_back(tmp_path):
    engine = FakeEngine(tmp_path, llm=ScriptedLLM(missing="no model"), web_search="none")
    gaps = missing(engine)
    assert "no web search is set up" in gaps[Need.WEB]
    assert "no cross-encoder" in gaps[Need.CROSS_ENCODER]
    route = routes()["crag"]
    assert not set(route.needed(route.settle({}))) & set(gaps)
    assert route.needed(route.settle({"evaluator": "llm"})) == (Need.BM25, Need.LLM)
    assert route.needed(route.settle({"evaluator": "cross-encoder"})) == (Need.BM25, Need.CROSS_ENCODER)


PAGES = {
    "returns.md": "# Returns\n\nTo send an item back, ask for a return authorization within 30 days.",
    "refunds.md": "# Refunds\n\nA refund is paid five business days after the returned item was inspected.",
    "express.md": "# Express\n\nExpress shipping delivers the next business day in Germany and Belgium.",
    "customs.md": "# Customs\n\nCustoms may hold a parcel until the commercial invoice has been supplied.",
    "keys.md": "# Keys\n\nIdempotency keys are stored for 24 hours with the response of the first attempt.",
    "damage.md": "# Damage\n\nIf the box arrived crushed, take photos of all six sides within 48 hours.",
}


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The engine with real search, embedder and evaluator over a small folder, and a server for the web."""
    from core.corpus.index import build
    from core.domain.settings import Settings
    from core.engine.engine import Engine

    folder = tmp_path_factory.mktemp("handbook")
    for file, text in PAGES.items():
        (folder / file).write_text(text)
    moon = {"url": "https://x.example/moon", "title": "Moon", "content": "384,400 km away.", "score": 1.0}
    with loopback(http(json.dumps({"results": [moon]}))) as server:
        home = tmp_path_factory.mktemp("home")
        settings = Settings(home=home, llm=str(home / "none.gguf"), web_search=server.url)
        build("handbook", folder, settings=settings).close()
        yield Engine(settings)


@pytest.mark.model  # embeds the folder
@pytest.mark.parametrize(
    ("question", "decision", "first"),
    [
        (
            "Within how many days do I ask for a return authorization to send an item back?",
            "correct",
            "returns",
        ),
        ("What do I do with a crushed box?", "ambiguous", ""),
        ("How far away is the moon?", "incorrect", "web/"),
    ],
)
def test_the_shipped_evaluator_reaches_each_action_on_a_real_index_without_a_model(
    real, question, decision, first
):
    result = real.ask(Request(Query(question), "handbook", ("crag",))).results[0]
    assert (result.status, result.error) == ("ok", None)
    assert output(result, "grade and decide").decision == decision, output(result, "grade and decide")
    assert result.hits[0].passage.id.startswith(first)
    assert any(hit.passage.id.startswith("web/") for hit in result.hits) is (decision != "correct")
