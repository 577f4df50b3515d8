"""Runs that were stored before steps recorded what they were given: what is inferred of them, what is not."""

import copy
import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.analysis import searches
from core.analysis.passage_trace import PassageTrace
from core.analysis.what_if.fusion import fusions
from core.domain.errors import BadInput
from core.domain.outputs import (
    NOTHING,
    Decision,
    Embedding,
    Pass,
    PassageGrade,
    Reply,
    Rewrite,
    Search,
    Selection,
    Written,
)
from core.domain.types import AnswerBasis, Link, Query
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.experiment_store import RUNS, Evaluation
from core.evaluation.outcome import Outcome
from core.evaluation.tuning import sweep_load
from core.store import Store, codec, exchange, runs
from core.store.files import reading
from core.store.upgrade.earlier import STEPS
from tests import strategies
from tests.fixtures.store import asked
from tests.fixtures.store.build import HERE

# --- what a version before made of every route, and what this one makes of the same

NEW = {
    "take the passages with excerpts",
    "take the result as a passage",
    "find joins",
    "decide on another query",
}  # steps that were the route's own code, or that there were none of
NEW_WITHIN = {("rerank by BM25, cosine and MaxSim", "embed tokens")}  # a step of its own, and shared, since
TABLES = {"text_to_sql", "table_qa", "structured_hybrid"}  # routes that answer with a template now
LOOPS = {
    "agentic",
    "confidence",
    "crag",
    "critique_loop",
    "decompose",
    "iterative",
    "self_correct",
    "self_reflective",
}  # decide otherwise now
UNTOLD = {  # arguments that were not stored
    ("analyse the question", "query"),
    ("do the passages answer the question", "threshold"),
    ("keep the best paths", "tree"),
}
OWN_MAKING = {  # links that cannot be told: the route made the list itself, of which there is a step now
    ("append the rest", "first"),
    ("collect what is new", "found"),
    ("count what was found", "hits"),
    ("fuse by reciprocal rank", "lists"),
    ("write answer", "hits"),
}
ROUTER = re.compile(f"({'|'.join(('adaptive', *sorted(LOOPS)))})#")  # whose work was other work then
CHANGED = ("memory",)  # fuses what the question alone finds, too
COLLECTING = ("agentic", "iterative")  # routes that answer from as many passages as they collected


@pytest.fixture(scope="module")
def earlier():
    return {one.run.id: one.run for one in exchange.unpack(asked.BUNDLE.read_bytes())}


@pytest.fixture(scope="module")
def now():
    found = {}
    for run in asked.runs():
        text = codec.dumps(codec.to_document(run))
        found[run.id] = codec.from_document(json.loads(text))
    return found


@pytest.fixture(scope="module")
def pairs(earlier, now):
    """(case, result before, result now, spans of both side by side, numbers now by those before)."""
    found = []
    for case, run in earlier.items():
        today = {one.route: one for one in now[case].results}
        for before in run.results:
            if before.route in {*TABLES, *LOOPS, *CHANGED, *asked.SINCE}:
                continue
            after = today[before.route]
            shared = [span.shared_with or "" for span in (*before.spans, *after.spans)]
            if any(map(ROUTER.match, shared)):
                continue
            made_by = {span.id: span.name for span in after.spans}
            spans = [
                span
                for span in after.spans
                if span.name not in NEW and (made_by.get(span.parent), span.name) not in NEW_WITHIN
            ]
            assert [span.name for span in before.spans] == [span.name for span in spans], (case, after.route)
            both = list(zip(before.spans, spans, strict=True))
            numbers = {one.id: other.id for one, other in both}
            within = {one.id for one in before.spans if one.name == "ask the tables"}
            for one in before.spans:  # a parent stands before what it holds
                if one.parent in within:
                    within.add(one.id)
            both = [pair for pair in both if pair[0].id not in within]
            found.append((case, before, after, both, numbers))
    left_out = {*TABLES, *LOOPS, *CHANGED, *asked.SINCE}
    asked_then = {before.route for run in earlier.values() for before in run.results}
    assert {before.route for _, before, *_ in found} == asked_then - left_out
    return found


def moved(link, numbers):
    """A link of a run before as the run now has it."""
    return link and replace(link, span=numbers.get(link.span, link.span))


def nearly(hits):
    """A list to compare: the model's vectors differ in the last digits from processor to processor."""
    return hits and tuple((id, pytest.approx(score, rel=1e-5)) for id, score in hits)


def ranking(hits):
    return tuple((hit.passage.id, hit.score) for hit in hits)


def as_recorded_then(output):
    """What a step came to, without why nothing was found and how a grade was told: neither was recorded."""
    if isinstance(output, Search):
        return replace(output, unfound="")
    return replace(output, by=None) if isinstance(output, PassageGrade) else output


@pytest.mark.slow
def test_what_every_step_came_to_is_what_it_records_now(pairs):
    for case, result, _, spans, _ in pairs:
        for before, after in spans:
            at = case, result.route, before.name
            told = replace(after.output, unfound="") if isinstance(after.output, Search) else after.output
            if hasattr(before.output, "by"):  # whether words or probabilities decided was not recorded then
                told = replace(told, by=before.output.by)
            assert (at, before.output) == (at, told)  # why nothing was found was not recorded then
            assert before.hits == nearly(after.hits), at
            assert (before.kind, before.calls, before.tokens) == (after.kind, after.calls, after.tokens)


@pytest.mark.slow
def test_where_arguments_came_from_is_what_steps_record_now(pairs):
    told = 0
    for case, result, _, spans, numbers in pairs:
        by_number = {after.id: after for _, after in spans}
        for before, after in spans:
            assert [link.arg for link in before.links] == [link.arg for link in after.links]
            for link, recorded in zip(before.links, after.links, strict=True):
                at = case, result.route, before.name, link.arg
                own = (before.name, link.arg.partition("[")[0]) in OWN_MAKING
                if own and recorded.span not in by_number:
                    # Of the route's own making: told as that, or by a list with the same passages.
                    if link.span is not None:
                        source = next(one for one, _ in spans if one.id == link.span)
                        assert set(_ids(source)[: link.size]) <= set(_ids(after)), at
                    continue
                if own and link.span is None and recorded.span is None:
                    continue  # a list that was empty, or was not: its size was not stored
                assert (at, moved(link, numbers)) == (at, recorded)
                told += 1
    assert told > 500


def _ids(span):
    return [id for id, _ in span.hits or ()]


def test_a_list_of_the_routes_own_making_says_so_for_people(earlier):
    unknown = [
        (before, link)
        for run in earlier.values()
        for result in run.results
        for before in result.spans
        for link in before.links
        if link.span is None and link.size
    ]
    assert unknown
    assert all(link.arg in before.attributes["not stored"] for before, link in unknown)


@pytest.mark.slow
def test_arguments_and_the_parameters_that_set_them_are_those_of_now(pairs):
    for case, result, _, spans, _ in pairs:
        for before, after in spans:
            at = case, result.route, before.name
            untold = {arg for step, arg in UNTOLD if step == before.name}
            args = [{k: v for k, v in one.args.items() if k not in untold} for one in (before, after)]
            assert (at, args[0]) == (at, args[1])
            stated = {arg: by for arg, by in after.set_by.items() if arg.partition(".")[0] not in untold}
            assert (at, before.set_by) == (at, stated)


def test_where_the_ranking_and_the_answer_are_from_is_what_is_recorded_now(pairs):
    unknown = []
    for case, before, after, _, numbers in pairs:
        at = case, before.route
        assert [hit.passage for hit in before.hits] == [hit.passage for hit in after.hits], at
        assert ranking(before.hits) == nearly(ranking(after.hits)), at
        assert (before.answer, before.citations, before.abstained) == (
            after.answer,
            after.citations,
            after.abstained,
        ), at
        assert numbers.get(before.answer_span) == after.answer_span, at
        if after.origin is None or after.origin.span in numbers.values():
            if before.origin is None and not after.hits:
                continue  # an empty list has no passage to be known by
            assert (at, moved(before.origin, numbers)) == (at, after.origin)
        else:
            unknown.append(before.route)
            assert before.origin == (Link("hits", None, len(before.hits)) if before.hits else None)
    assert not unknown


def test_what_a_later_answer_is_written_from_is_what_is_recorded_now(pairs):
    for case, before, after, _, _ in pairs:
        if before.answer is not None and after.basis is None:
            continue
        if before.route == "crag" and before.answer is None:
            assert before.basis == replace(after.basis, excerpts={})  # the route made them itself
            continue
        shown = min(after.basis.shown, len(after.hits)) if after.basis else 0
        assert (case, before.route, before.basis and before.basis.question) == (
            case,
            before.route,
            after.basis and after.basis.question,
        )
        if after.basis:
            assert before.basis.excerpts == after.basis.excerpts
            if before.answer is not None or before.route not in COLLECTING:
                assert min(before.basis.shown, len(before.hits)) == shown


@pytest.mark.slow
def test_what_readers_say_of_a_run_before_is_what_they_say_of_the_same_run_now(pairs):
    """But where the agent was given the result of a query, which was no step's then."""
    count = 0
    for case, before, after, spans, _ in pairs:
        asked_tables = any(span.name in NEW for span in after.spans) and before.route == "agentic"
        if asked_tables:
            continue
        assert searched(before) == searched(after), (case, before.route)
        assert fused(before) == fused(after), (case, before.route)
        was, now = PassageTrace(before), PassageTrace(after)
        for id in sorted({id for span, _ in spans for id in _ids(span)}):
            one, other = was.fate(id, 5), now.fate(id, 5)
            at = case, before.route, id
            assert (at, one.kind, one.rank, one.was) == (at, other.kind, other.rank, other.was)
            step = other.step.name if other.step else None
            assert step in NEW or (one.step.name if one.step else None) == step, at
            count += 1
    assert count > 2800


def searched(result):
    return [(one.text, one.span.name, one.mean, one.step) for one in searches.searches(result)]


def fused(result):
    """Each fusion with what it can be done again with."""
    return [
        (one.span.name, one.method, dict(one.values), one.lack, [len(ranking) for ranking in one.lists])
        for one in fusions(result)
    ]


def test_every_step_there_was_is_known(earlier):
    names = {span.name for run in earlier.values() for one in run.results for span in one.spans}
    steps = {name for name in names if not name.startswith("ask ") or name in STEPS}
    assert steps <= set(STEPS)
    assert set(STEPS) - steps == {"keep by grade", "rerank with a model of pairs"}


# --- runs made by hand, as they were stored


def stored(*spans, hits=(), route="any", more=(), **result):
    """A document of before format 2: spans as (name, kind, inputs, output, ids of its hits or None, ...)."""
    rankings, made = [], []
    for number, (name, kind, inputs, output, found, *rest) in enumerate(spans, 1):
        span = {"id": number, "parent": None, "name": name, "kind": kind, "start_ms": 0.0, "ms": 1.0}
        span |= {"inputs": inputs, "output": output}
        if found is not None:
            span["hits"] = len(rankings)
            rankings.append([[id, score] for id, score in _scored(found)])
        made.append(span | (rest[0] if rest else {}))
    final = [[id, score] for id, score in _scored(hits)]
    one = {"route": route, "title": "T", "status": "ok", "ms": 1.0, "hits": final, "spans": made} | result
    return {
        "id": "old",
        "created": "2026",
        "question": "Why?",
        "corpus": "c",
        "fingerprint": "f",
        "settings": {},
        "results": [one, *more],
        "rankings": rankings,
        "passages": [{"id": id, "doc_id": "", "title": "", "text": ""} for id, _ in final],
    }


def _scored(found):
    """Ids with scores that fall, or those given."""
    return [one if isinstance(one, tuple) else (one, 1.0 / at) for at, one in enumerate(found, 1)]


def read(document):
    run = codec.from_document(copy.deepcopy(document))
    assert codec.from_document(json.loads(codec.dumps(codec.to_document(run)))) == run
    return run.results[0]


BM25 = ("search BM25", "RETRIEVER", {"text": "Why?", "k": 100, "engine": "bm25s"}, None)
DENSE = ("search vectors", "RETRIEVER", {"vector": "64 vector", "k": 100}, None)
EMBED = ("embed", "EMBEDDING", {"text": "Why?"}, "64 vector", None)
RRF = ("fuse by reciprocal rank", "CHAIN")


def test_a_reranked_list_is_known_by_its_scores_and_not_by_what_came_last():
    order = [
        {"id": "b", "was": 2, "first score": 3.0, "score": 0.9},
        {"id": "a", "was": 1, "first score": 4.0, "score": 0.1},
    ]
    result = read(
        stored(
            (*BM25, [("a", 4.0), ("b", 3.0)]),
            EMBED,
            (*DENSE, [("a", 0.8), ("b", 0.7)]),
            (
                "rerank with a model of pairs",
                "RERANKER",
                {"text": "Why?", "hits": "2 hits", "order": order},
                None,
                [("b", 0.9), ("a", 0.1)],
            ),
            hits=[("b", 0.9), ("a", 0.1)],
        )
    )
    assert result.spans[3].links == (Link("hits", 1, 2),)
    assert [one.before for one in result.spans[3].output.order] == [3.0, 4.0]
    assert result.origin == Link("hits", 4, 2)


def test_a_vector_is_the_text_embedded_last_and_never_the_tokens():
    tokens = {"tokens": ["why"], "vectors": "1x16 vector"}
    keys = {"keys": "children", "vector": "64 vector", "k": 100, "found by": {"a": "a piece"}}
    result = read(
        stored(
            EMBED,
            ("embed tokens", "EMBEDDING", {"text": "Why?", "model": "m"}, tokens, None),
            ("search vectors of keys", "RETRIEVER", keys, None, ["a"]),
            (
                "search all token vectors",
                "RETRIEVER",
                {"asked": tokens, "k": 9, "scored": 3, "model": "m"},
                None,
                ["a"],
            ),
            hits=["a"],
        )
    )
    assert result.spans[2].links == (Link("vector", 1, 64),)
    assert result.spans[2].output == Search(keys={"a": "a piece"})
    assert result.spans[3].links == (Link("asked", 2, 1),)
    assert result.spans[3].output == Search(model="m")


def test_a_fused_list_that_was_empty_is_one_of_the_lists():
    result = read(
        stored(
            (*BM25, []),
            EMBED,
            (*DENSE, ["a", "b"]),
            (*RRF, {"lists": [None, 3], "k": 60, "weights": None}, None, ["a", "b"]),
            hits=["a", "b"],
        )
    )
    assert result.spans[3].links == (Link("lists[0]", 1, 0), Link("lists[1]", 3, 2))


def test_parts_of_lists_that_were_fused_are_not_guessed():
    result = read(
        stored(
            (*BM25, ["a", "b", "c"]),
            EMBED,
            (*DENSE, ["c", "b", "a"]),
            (*RRF, {"lists": [None, None], "k": 60, "weights": None}, None, ["a", "c"]),
            hits=["a", "c"],
        )
    )
    assert [link.span for link in result.spans[3].links] == [None, None]
    assert result.spans[3].attributes == {"not stored": "which step made: lists[0], lists[1]"}


def test_what_was_looked_up_and_what_was_collected_are_told_apart():
    nine = [f"p{n}" for n in range(9)]
    result = read(
        stored(
            (*BM25, [*nine, "x"]),
            (
                "collect what is new",
                "CHAIN",
                {"collected": [], "found": "10 hits", "each": 9, "keep": 9, "new": nine},
                None,
                nine,
            ),
            (
                "look up words",
                "RETRIEVER",
                {"words": "a word", "collected": "9 hits", "documents": ["d"]},
                None,
                nine[::-1],
            ),
            (
                "collect what is new",
                "CHAIN",
                {"collected": "9 hits", "found": "9 hits", "each": 9, "keep": 9, "new": []},
                None,
                nine,
            ),
            hits=nine,
        )
    )
    assert result.spans[1].links == (Link("collected", None, 0), Link("found", 1, 10))
    assert result.spans[2].links == (Link("collected", 2, 9),)
    assert result.spans[2].output == Search(("a word",))
    assert result.spans[3].links == (Link("collected", 2, 9), Link("found", 3, 9))


def test_the_round_that_was_kept_is_the_one_that_is_named():
    ids = ["a", "b", "c"]

    def graded(value):
        one = {"grade": (value - 1) / 4, "state": "scored", "why": "", "value": value, "by": None}
        decided = {"decision": "stop", "reason": "no gain", "why": "it is", "low": 0.1, "high": 0.1}
        return {"question": "Why?", "grades": [{"id": id, **one} for id in ids[:2]], "mean": value, **decided}

    kept = {"decision": "round 1 of 2", "reason": "no gain", "why": "stopped", "question": "Why?"}
    asked_for = {"text": "Why?", "searched": "Why?", "hits": "2 hits", "threshold": 4, "gain": 0, "rounds": 3}
    result = read(
        stored(
            (*BM25, ids),
            ("grade the round and decide", "EVALUATOR", asked_for | {"earlier": []}, graded(2.0), None),
            (*BM25, ids),
            ("grade the round and decide", "EVALUATOR", asked_for | {"earlier": [2.0]}, graded(1.0), None),
            (
                "keep the best round",
                "CHAIN",
                {"found": ["3 hits", "3 hits"], "rounds": [2.0, 1.0], "reason": "no gain"},
                kept,
                ids[::-1],
            ),
            hits=ids[::-1],
        )
    )
    last = result.spans[4]
    assert last.output == Selection("round", at=0, decision="round 1 of 2", reason="no gain", why="stopped")
    assert last.links[last.output.at] == Link("found[0]", 1, 3)
    assert last.links[1:] == (Link("found[1]", 3, 3), Link("rounds[0]", 2, 1), Link("rounds[1]", 4, 1))
    assert (result.spans[3].output.round.number, result.spans[3].output.round.before) == (2, 2.0)


def test_lists_named_by_the_steps_of_the_route_that_did_the_work_are_found_here():
    """As the first versions named them."""
    fused = (*RRF, {"lists": [3, 2], "k": 60, "weights": None}, None, ["b", "a", "c"])
    spans = (EMBED, (*DENSE, ["b", "c"]), (*BM25, ["a", "b"]), fused)
    owner = stored(*spans, hits=["b"], route="owner")["results"][0]
    for span, number in zip(owner["spans"], (None, 1, 0, 2), strict=True):
        if number is not None:
            span["hits"] = number
    result = read(
        stored(
            (*BM25, ["a", "b"]),
            EMBED,
            (*DENSE, ["b", "c"]),
            (*fused, {"shared_with": "owner#4"}),
            hits=["b"],
            more=[owner],
        )
    )
    assert result.spans[3].links == (Link("lists[0]", 1, 2), Link("lists[1]", 3, 2))


def test_only_a_value_that_is_the_parameters_is_taken_as_set_by_it():
    def fused(**parameters):
        spans = ((*BM25, ["a"]), (*RRF, {"lists": [1], "k": 60, "weights": [1.0, 2.0]}, None, ["a"]))
        return read(stored(*spans, hits=["a"], route="hybrid_rrf", parameters=parameters)).spans[1].set_by

    assert fused(k=60, bm25_weight=1.0, dense_weight=2.0) == {
        "k": "k",
        "weights.0": "bm25_weight",
        "weights.1": "dense_weight",
    }
    assert fused(k=61, bm25_weight=1.0) == {"weights.0": "bm25_weight"}


def test_a_call_of_the_model_says_which_attempt_it_was_and_when_it_was_made():
    def called(**inputs):
        return (
            "ask m",
            "LLM",
            {"text": "user: Hm", "prompt": "hyde/2", "max_tokens": 9, **inputs},
            "Hm.",
            None,
        )

    first, again = read(
        stored(
            called(made="2026-01-01", finish="cut at max_tokens", streamed=True),
            called(prompt="hyde/2/firmer"),
        )
    ).spans
    assert first.args == {"text": "user: Hm", "prompt": "hyde/2", "max_tokens": 9, "attempt": 1}
    assert first.output == Reply("Hm.", model="m", made="2026-01-01", cut=True)
    assert (again.args["attempt"], again.output) == (2, Reply("Hm.", model="m"))


def test_an_answer_cites_what_its_markers_count_and_knows_what_it_was_written_from():
    inputs = {
        "text": "Why so?",
        "hits": "2 hits",
        "excerpts": {"b": "in short"},
        "order": "best first",
        "evidence": None,
        "shown": ["a", "b"],
        "wrong citations": [7],
    }
    result = read(
        stored(
            (*BM25, ["a", "b", "c"]),
            ("write answer", "LLM", inputs, "So [2]. Or so [2, 7].", None),
            hits=["a", "b", "c"],
            answer="So [2]. Or so [2, 7].",
            citations=["b"],
        )
    )
    assert result.spans[1].output == Written(
        "So [2]. Or so [2, 7].", cited=("b",), wrong=(7,), shown=("a", "b")
    )
    assert result.spans[1].links == (Link("hits", 1, 2),)
    assert (result.answer_span, result.basis) == (2, AnswerBasis("Why so?", 2, {"b": "in short"}))


def test_steps_that_did_not_end_and_empty_outcomes():
    result = read(
        stored(
            ("write query variants", "LLM", {"text": "Why?", "n": 3}, None, []),
            ("write query variants", "LLM", {"text": "Why?", "n": 3}, None, None, {"error": "it broke"}),
            EMBED,
            (
                "grade and decide",
                "EVALUATOR",
                {"text": "Why?", "hits": "2 hits"},
                None,
                None,
                {"error": "no"},
            ),
        )
    )
    outputs = [span.output for span in result.spans]
    assert outputs == [Rewrite("Why?", (), "variants"), NOTHING, Embedding(("Why?",)), NOTHING]
    assert [span.hits for span in result.spans] == [None] * 4
    assert (result.origin, result.basis) == (None, AnswerBasis("Why?", 5))


def test_a_step_that_nobody_knows_is_told_by_its_shape():
    result = read(
        stored(
            (*BM25, ["a", "b", "c"]),
            ("my own step", "RERANKER", {"hits": "3 hits", "lam": 2}, None, ["c", "a"]),
            ("my own choice", "CHAIN", {"x": 1}, {"decision": "left", "why": "it is", "odd": [1]}, None),
            ("my own thing", "CHAIN", {"y": None}, [1, {"a": None}], None),
            hits=["c", "a"],
        )
    )
    assert result.spans[1].links == (Link("hits", 1, 3),)
    assert result.spans[1].args == {"lam": 2}
    assert result.spans[2].output == Decision("left", (), "it is", details={"odd": [1]})
    assert result.spans[3].output == Pass([1, {"a": None}])


def test_a_list_that_no_step_made_is_of_the_routes_own_making():
    spans = ((*BM25, ["a", "b", "c"]),)
    assert read(stored(*spans, hits=["c", "a"])).origin == Link("hits", None, 2)
    assert read(stored(*spans, hits=["b", "c"])).origin == Link("hits", 1, 2, 1)
    assert read(stored(*spans, hits=["a"])).origin == Link("hits", 1, 1)


# --- whatever a bundle holds

odd = st.sampled_from(
    ["2 hits", "0 hits", [], ["1 hits", "2 hits"], [1, None], "64 vector", "3 segments", "correct"]
)
kinds = st.sampled_from(["RETRIEVER", "RERANKER", "LLM", "EMBEDDING", "CHAIN", "EVALUATOR", "TOOL", "AGENT"])
parameters = {one.rstrip("#*~@") for marked in STEPS.values() for one in marked.removeprefix("=").split()}
added = ["order", "shown", "new", "dropped", "cosines", "attention", "match", "best", "note", "only"]
keys = st.sampled_from([*sorted(parameters), *added, "found by"])
names = st.sampled_from(sorted(STEPS)) | st.just("ask m") | strategies.texts
fields_of = st.sampled_from(
    ["grades", "decision", "why", "low", "high", "excerpts", "branches", "tables", "terms", "id", "grade"]
)
outcomes = strategies.values | odd | st.dictionaries(fields_of, strategies.values | odd, max_size=4)
listed = st.none() | st.lists(st.tuples(strategies.texts | st.just("a"), strategies.numbers), max_size=3)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(names, kinds, st.dictionaries(keys, outcomes, max_size=4), outcomes, listed), max_size=6
    ),
    strategies.maybe(strategies.texts),
)
def test_any_earlier_run_is_read_and_stays_as_it_was_read(spans, answer):
    result = read(stored(*spans, hits=["a"], answer=answer))
    assert [span.name for span in result.spans] == [name for name, *_ in spans]


def test_what_is_no_span_of_before_is_refused_by_name():
    document = stored((*BM25, ["a"]), hits=["a"])
    document["results"][0]["spans"][0]["links"] = []
    with pytest.raises(BadInput, match="has no 'links'"):
        codec.from_document(document)


# --- in the store


def old_file(tmp_path, run_id="usual"):
    """A store of schema 5 as it was released, and its run's results as rows."""
    path = tmp_path / RUNS
    shutil.copy(HERE / "v5.sqlite", path)
    return path


def recorded(path):
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT recorded IS NULL FROM results WHERE run = (SELECT number FROM runs WHERE id = 'usual')"
        )
        return {bool(one) for (one,) in found}


def test_an_earlier_run_is_not_written_back_until_it_is_saved_again(tmp_path):
    path = old_file(tmp_path)
    with closing(Store(path)) as store:
        run = store.load("usual")
        assert store.flush()
        assert recorded(path) == {True}
        store.save(run)
        assert store.flush()
        assert recorded(path) == {False}
    with closing(Store(path)) as store:
        assert store.load("usual") == run


@pytest.mark.parametrize("version", [1, 2, 5])
def test_a_file_that_was_not_migrated_can_be_read(tmp_path, version):
    """It may lie where nothing can be written."""
    path = HERE / f"v{version}.sqlite"
    with reading(path) as connection:
        (number,) = connection.execute("SELECT number FROM runs WHERE id = 'usual'").fetchone()
        run = runs.read(connection, number)
    fused = next(one for one in run.results if one.route == "hybrid_rrf").spans[3]
    assert fused.links == (Link("lists[0]", 1, 30), Link("lists[1]", 3, 30))


def test_a_sweep_over_an_earlier_evaluation_reads_its_runs(tmp_path):
    old_file(tmp_path)
    labelled = LabelledSet("s", (Question("q", Query("Why?")),), {"q": {"a": 1}})
    outcome = {"q": {"rewrite": Outcome("ok", 1.0, run="usual")}}
    evaluation = Evaluation("e", tmp_path, {}, labelled, outcome, {})
    (result,) = sweep_load.results(evaluation, "rewrite").values()
    assert result.spans[0].output == Rewrite(
        "What about the other one?",
        ("How do I claim for the second vase that arrived crushed?",),
        "question",
    )
    assert result.origin == Link("hits", 6, 30)
    assert result.basis.question == "How do I claim for the second vase that arrived crushed?"
