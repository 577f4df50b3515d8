"""Diagnoses of routes on a labelled question, against hand-worked numbers."""

from dataclasses import replace

from core.analysis.diagnosis import diagnose, mode_of
from core.analysis.passage_trace import PassageTrace
from core.backends.terms import Analyzer
from core.domain.outputs import Rerank, Rewrite, Search, Written
from core.domain.relevance import RelevantLabel, labels_of
from core.domain.types import Hit, Link, Passage, Query, RouteResult, Run, Span, Turn
from core.evaluation.gold import Gold


def passage(id, text="a text"):
    return Passage(id, id.split(":")[0], f"Title {id}", text, 0, len(text))


def made(name, ids, *, ms=10.0, answer_ms=0.0, status="ok", spans=None, error=None):
    hits = tuple(Hit(passage(id), 1 / rank) for rank, id in enumerate(ids, 1))
    found = tuple((hit.passage.id, hit.score) for hit in hits)
    asked = {"text": "why"}
    own = (Span(1, None, f"search {name}", "RETRIEVER", 0, ms, asked, Search(("why",)), found),)
    own += (Span(2, None, "write answer", "LLM", ms, answer_ms, asked, Written("so")),)
    ms += answer_ms
    spans = own if spans is None else spans
    last = next((one.id for one in reversed(spans) if one.hits is not None), None)
    return RouteResult(
        name,
        name.title(),
        status,
        ms,
        hits=hits,
        spans=spans,
        error=error,
        origin=Link("hits", last, len(hits)) if hits else None,
    )


def run_of(*results, text="why", history=()):
    held = {hit.passage.id: hit.passage for result in results for hit in result.hits}
    return Run("run", "2026-11-21", Query(text, history), "c", "f", {}, results, held)


def diagnosed(run, gold, depth=2):
    traces, measured = [PassageTrace(one) for one in run.results], Gold(gold).ndcg(run.results)
    return {one.result.route: one for one in diagnose(run, traces, labels_of(gold), measured, depth)}


def test_what_a_route_found_and_who_repairs_it_at_the_lowest_time():
    run = run_of(
        made("poor", "xya"),
        made("slow", "abx", ms=90),
        made("quick", "bax", ms=20, answer_ms=900),
        made("half", "axb", ms=1),
    )
    found = diagnosed(run, {"a": 3, "b": 2, "x": 1})
    poor = found["poor"]
    assert (poor.found, poor.of, poor.best, poor.well) == (0, 2, 3, False)
    assert [id for id, _ in poor.lost] == ["a", "b"]
    assert poor.repair.route == "quick", "both have all; it has its ranking sooner"
    assert poor.advice == "Quick has 2 of 2 in its top 2 (ranking in 20 ms)."
    assert found["half"].advice == "Quick has 1 of 1 in its top 2 (ranking in 20 ms)."
    assert found["quick"].well
    assert found["quick"].repair is None
    assert list(found) == ["poor", "half", "quick", "slow"], "worst first"


def test_a_document_is_found_by_any_of_its_passages_and_counts_once():
    run = run_of(made("top", ["d1:0-9", "x"]), made("low", ["x", "y", "d1:9-18"]), made("none", ["x"]))
    document = RelevantLabel("d1", 3, ("d1:0-9", "d1:9-18", "d1:18-27"), document=True)
    funnels = [PassageTrace(result) for result in run.results]
    found = {one.result.route: one for one in diagnose(run, funnels, [document], {"top": 1.0}, 2)}
    assert [(found[r].found, found[r].of, found[r].best) for r in ("top", "low", "none")] == [
        (1, 1, 1),
        (0, 1, 3),
        (0, 1, None),
    ]
    assert [id for id, _ in found["low"].lost] == ["d1:9-18"], "the passage that came furthest"
    assert found["top"].ndcg == 1.0
    assert {one.unit for one in found.values()} == {"document"}


def test_the_step_to_blame_lost_most():
    first = (("a", 4.0), ("b", 3.0), ("x", 2.0), ("y", 1.0))
    after = (("x", 4.0), ("y", 3.0), ("a", 2.0), ("b", 1.0))
    spans = (
        Span(1, None, "search", "RETRIEVER", 0, 1, {"text": "why"}, Search(("why",)), first),
        Span(2, None, "rerank", "RERANKER", 1, 1, {}, Rerank(), after, (Link("hits", 1, 4),)),
    )
    one = diagnosed(run_of(made("r", "xyab", spans=spans)), {"a": 2, "b": 2, "c": 2})["r"]
    assert (one.blamed.kind, one.blamed.step.name, one.there) == ("reranked away", "rerank", 2)
    assert one.advice == (
        "No route in this run has a lost passage in its top 2. The top 5 of this route has one."
        " Before “rerank”, it was at rank 1. “search” for “why” has it at rank 1 in R."
    )


def test_advice_where_nothing_holds_it_claims_no_more_and_knows_of_rewrites():
    run = run_of(made("r", "xy"), history=(Turn("user", "before"),))
    one = diagnosed(run, {"z": 3})["r"]
    assert one.advice == (
        "No route in this run has a lost passage in its top 2. No list in this run contains it: only a"
        " different search can find it. The question is a follow-up, and no route in this run rewrote it."
    )
    for after, told in ((("why",), True), (("why before",), False)):
        wrote = Span(3, None, "rewrite", "LLM", 0, 1, {}, Rewrite("why", after, "question"))
        again = replace(run, results=(replace(run.results[0], spans=(*run.results[0].spans, wrote)),))
        assert ("no route in this run rewrote it" in diagnosed(again, {"z": 3})["r"].advice) == told


def test_routes_without_a_ranking_come_after_those_that_lost():
    run = run_of(
        made("gone", "", status="unavailable", spans=(), error="no model"),
        made("broken", "", status="failed", spans=(), error="boom"),
        made("good", "a"),
        made("poor", "xy"),
    )
    found = diagnosed(run, {"a": 2})
    assert list(found) == ["poor", "broken", "good", "gone"]
    assert found["gone"].ndcg is None
    assert found["gone"].advice == ""
    assert not found["gone"].ran


def test_the_mode_is_the_authors_or_derived_and_says_so():
    gold, words = {"d1:0-9": 2}, Analyzer("none").terms
    texts = {"d1:0-9": passage("d1:0-9", "parcels arrive late")}
    run = run_of(made("r", "x"))
    said = mode_of(run, labels_of(gold), "vocabulary_mismatch", texts, words)
    assert (said.name, said.labelled) == ("no terms in common with the passage", True)
    follow = mode_of(
        run_of(text="and then", history=(Turn("user", "x"),)), labels_of(gold), None, texts, words
    )
    assert (follow.name, follow.labelled, follow.why) == (
        "a follow-up that needs the conversation",
        False,
        "it follows 1 message",
    )
    exact = mode_of(run_of(text="What is error E-4711X?"), labels_of(gold), None, texts, words)
    assert exact.name == "an exact identifier"
    assert "E-4711X" in exact.why
    other = mode_of(run_of(text="shipment delays"), labels_of(gold), None, texts, words)
    assert other.why == "1 of 1 relevant passages share no term with it"
    several = mode_of(run_of(text="late parcels"), labels_of({**gold, "d2:0-9": 2}), None, texts, words)
    assert several.name == "evidence in several documents"
    assert mode_of(run_of(text="late parcels"), labels_of(gold), None, texts, words) is None
