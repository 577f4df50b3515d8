"""What the steps send, make of the reply, and record; the golden step sequence of each route."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.base import Completion, TokenLogprob
from core.backends.prompting.prompts import GRADE, HYDE
from core.domain.errors import BadInput, ModelFailed
from core.domain.outputs import PassageGrade, Sentence
from core.domain.types import Query, Turn
from core.engine.request import Request
from core.steps.grade import decide, yes_or_no
from core.steps.refine import recompose
from tests.fakes import FakeEngine, ScriptedLLM

CRUSHED = Query(
    "What do I do now?", (Turn("user", "My box arrived crushed."), Turn("assistant", "I am sorry."))
)
WEB = {"duty:0-50": "Customs duties on textiles depend on the HS chapter."}


def ask(tmp_path, route, replies, query=CRUSHED, web=None, **parameters):
    llm = ScriptedLLM(replies)
    run = FakeEngine(tmp_path, llm=llm, web=WEB if web is None else web).ask(
        Request(query, "tiny", (route,), {route: parameters})
    )
    return run.results[0], llm


def names(result):
    depth = {None: -1}
    lines = []
    for span in result.spans:
        depth[span.id] = depth[span.parent] + 1
        lines.append("  " * depth[span.id] + span.name)
    return lines


GOLDEN = {
    "self_reflective": [
        "check the calibration",
        "search BM25",
        "embed",
        "search vectors",
        "fuse by reciprocal rank",
        "reflect on the round",
        "  is the answer in the passages",
        "    ask scripted",
        "keep the best round",
    ],
    "self_correct": [
        "search BM25",
        "embed",
        "search vectors",
        "fuse by reciprocal rank",
        "check the calibration",
        "write answer",
        "  is the answer in the passages",
        "    ask scripted",
        "  ask scripted",
        "check the claims",
        "  check a claim",
        "    ask scripted",
        "revise or keep",
        "keep what is supported",
    ],
    "critique_loop": [
        "check the calibration",
        "check the calibration",
        "search BM25",
        "embed",
        "search vectors",
        "fuse by reciprocal rank",
        "answer from one passage and judge it",
        "  ask scripted",
        "  ask scripted",
        "  ask scripted",
        "  ask scripted",
        "answer from one passage and judge it",
        "  ask scripted",
        "  ask scripted",
        "  ask scripted",
        "  ask scripted",
        "answer from one passage and judge it",
        "  ask scripted",
        "  ask scripted",
        "  ask scripted",
        "  ask scripted",
        "order by the segments written",
        "append the rest",
        "choose the best segment",
    ],
    "self_rag": [
        "decide whether to retrieve",
        "  ask reflecting",
        "search BM25",
        "embed",
        "search vectors",
        "fuse by reciprocal rank",
        "write a segment for each passage",
        *["  ask reflecting"] * 5,
        "keep the best paths",
        "order by the segments written",
        "append the rest",
        "choose the best path",
    ],
    "confidence": [
        "check the calibration",
        "search BM25",
        "embed",
        "search vectors",
        "fuse by reciprocal rank",
        "write answer",
        "  is the answer in the passages",
        "    ask scripted",
        "  ask scripted",
    ],
    "memory": [
        "search BM25",
        "embed",
        "search vectors",
        "search the conversation",
        "  embed",
        "does the question stand alone",
        "put recalled turns before the question",
        "mean with recalled turns",
        "  embed",
        "search vectors",
        "search BM25",
        "fuse by reciprocal rank",
    ],
    "bm25": ["search BM25"],
    "dense": ["embed", "search vectors"],
    "hybrid_rrf": ["search BM25", "embed", "search vectors", "fuse by reciprocal rank"],
    "hybrid_linear": ["search BM25", "embed", "search vectors", "fuse by normalised scores"],
    "late_interaction": [
        "embed tokens",
        "search BM25",
        "embed",
        "search vectors",
        "score by matching tokens",
    ],
    "splade": ["search learned term weights"],
    "compress": [
        "search BM25",
        "embed",
        "search vectors",
        "fuse by reciprocal rank",
        "drop passages far from the question",
        "  embed",
        "keep the strips that matter",
        "  embed",
        "write the excerpts",
        "take the passages with excerpts",
        "append the rest",
    ],
    "mmr": ["embed", "search vectors", "order by marginal relevance"],
    "rerank": [
        "search BM25",
        "embed",
        "search vectors",
        "fuse by normalised scores",
        "rerank by BM25, cosine and MaxSim",
        "  embed",
        "  embed tokens",
    ],
    "cag": [
        "take the whole corpus",
        "answer from the whole corpus",
        "  ask scripted",
        "list the cited passages",
    ],
    "fid": [
        "search BM25",
        "embed",
        "search vectors",
        "fuse by normalised scores",
        "read the passages together",
    ],
    "dedupe": [
        "search BM25",
        "embed",
        "search vectors",
        "fuse by reciprocal rank",
        "drop near-duplicates",
    ],
    "rewrite": [
        "rewrite as a standalone question",
        "  ask scripted",
        *["search BM25", "embed", "search vectors"] * 2,
        "fuse by reciprocal rank",
    ],
    "rag_fusion": [
        "write query variants",
        "  ask scripted",
        *["search BM25", "embed", "search vectors"] * 4,
        "fuse by reciprocal rank",
    ],
    "multistage": [
        "search BM25",
        "embed",
        "search vectors",
        "analyse the question",
        "rewrite as a standalone question",
        "  ask scripted",
        "search BM25",
        "embed",
        "search vectors",
        "fuse by reciprocal rank",
        "rerank by BM25, cosine and MaxSim",
        "  embed",
        "  embed tokens",
        "drop near-duplicates",
        "order by marginal relevance",
        "  embed",
    ],
    "contextual_headings": [
        "search BM25 of keys",
        "embed",
        "search vectors of keys",
        "fuse by normalised scores",
    ],
    "contextual": ["search BM25 of keys", "embed", "search vectors of keys", "fuse by normalised scores"],
    "parent": ["embed", "search vectors of keys"],
    "hype": ["embed", "search vectors of keys"],
    "hype_hyde": [
        "embed",
        "search vectors of keys",
        "write hypothetical passages",
        "  ask scripted",
        "mean of embeddings",
        "  embed",
        "  embed",
        "search vectors",
        "fuse by reciprocal rank",
    ],
    "hyde": [
        "write hypothetical passages",
        "  ask scripted",
        "search with each sample",
        "  embed",
        "mean of embeddings",
        "  embed",
        "  embed",
        "search vectors",
    ],
    "hyde_gated": [
        "look for exact terms",
        "write hypothetical passages",
        "  ask scripted",
        "mean of embeddings",
        "  embed",
        "  embed",
        "search vectors",
    ],
    "step_back": [
        "search BM25",
        "embed",
        "search vectors",
        "write a more general question",
        "  ask scripted",
        "search BM25",
        "embed",
        "search vectors",
        "fuse by reciprocal rank",
    ],
    "multi_query": [
        "write query variants",
        "  ask scripted",
        *["search BM25", "embed", "search vectors", "fuse by reciprocal rank"] * 4,
        "unite the lists",
    ],
    "decompose": [
        "search BM25",
        "embed",
        "search vectors",
        "fuse by reciprocal rank",
        "split or keep",
    ],
    "text_to_sql": [
        "look up values",
        "choose tables",
        "find joins",
        "write and run SQL",
        "  write SQL",
        "    ask scripted",
        "  run SQL",
        "  decide on another query",
        "say the result",
        "take the result as a passage",
    ],
    "table_qa": [
        "look up values",
        "choose tables",
        "find joins",
        "write and run SQL",
        "  write SQL",
        "    ask scripted",
        "  run SQL",
        "  decide on another query",
        "say the result",
        "take the result as a passage",
    ],
    "structured_hybrid": [
        "ask the tables",
        "  look up values",
        "  choose tables",
        "  find joins",
        "  write and run SQL",
        "    write SQL",
        "      ask scripted",
        "    run SQL",
        "    decide on another query",
        "search BM25",
        "embed",
        "search vectors",
        "fuse by normalised scores",
        "choose the side",
        "take the result as a passage",
        "append the rest",
        "say the result",
        "put the result first",
    ],
    "iterative": [
        "embed",
        "search BM25",
        "search vectors",
        "score by BM25",
        "score by cosine",
        "fuse by normalised scores",
        "collect what is new",
        "collect what is new",
        "go on or stop",
        "find a name to look up",
        "append the rest",
    ],
    "agentic": [
        "check the calibration",
        "search BM25",
        "embed",
        "search vectors",
        "fuse by reciprocal rank",
        "count what was found",
        "  embed",
        "collect what is new",
        "do the passages answer the question",
        "  ask scripted",
        "choose again or stop",
        "choose an action",
        "  ask scripted",
        "fuse by reciprocal rank",
        "append the rest",
    ],
    "adaptive": [
        "search BM25",
        "embed",
        "search vectors",
        "look up values",
        "classify by features",
        "choose the route",
        "search BM25",
        "embed",
        "search vectors",
        "fuse by normalised scores",
        "rerank by BM25, cosine and MaxSim",
        "  embed",
        "  embed tokens",
        "search the conversation",
        "  embed",
        "does the question stand alone",
        "put recalled turns before the question",
        "mean with recalled turns",
        "  embed",
        "search vectors",
        "search BM25",
        "fuse by normalised scores",
        "rerank by BM25, cosine and MaxSim",
        "  embed",
        "  embed tokens",
        "fuse by reciprocal rank",
        "keep what it found",
    ],
    "crag": [
        "search BM25",
        "embed",
        "search vectors",
        "fuse by reciprocal rank",
        "grade and decide",
        "  measure the passages",
        "    embed",
        "    embed tokens",
        "write web search keywords",
        "  ask scripted",
        "search the web",
        "grade the web results",
        "  measure the passages",
        "    embed",
        "    embed tokens",
        "act on the grades",
        "order by grade",
        "put lists one behind another",
        "keep the sentences that matter",
        "  embed",
    ],
}
REPLIES = {
    "scale": {"2": 1.0},
    "reformulate": "report photos of a crushed box",
    "critique": '{"claims": [{"claim": "five words", "passage": null, "supported": false}], '
    '"feedback": "Say more.", "good": false}',
    "refine": "Photograph all six sides within 48 hours [1].",
    "relevant": "0.8",
    "segment": "Take photos.",
    "supported": {"fully": 1.0},
    "useful": {"4": 1.0},
    "closed-answer": "Photograph it and report it.",
    "confidence": "40",
    "sql": "SELECT name FROM items",
    "rewrite": "what to do when a box arrived crushed",
    "variants": "crushed parcel\ndamaged box\nbroken pack",
    "step-back": "What are the rules for damaged parcels?",
    "decompose": "What photos of a crushed box are needed?\nWithin how many hours is it reported?",
    "grade": "0.95",
    "answer": "Take photos of all six sides [1].",
    "next-sentence": "So the answer is: report it.",
    "choose-action": '{"action": "answer", "input": ""}',
}


@pytest.mark.parametrize("route", GOLDEN)
def test_golden_steps(tmp_path, route):
    result, _ = ask(tmp_path, route, REPLIES)
    assert (result.status, result.error) == ("ok", None)
    assert names(result) == GOLDEN[route]
    assert bool(result.hits) is (route != "bm25")  # the question as it stands shares no word with any passage


def test_bm25_shares_its_search_unless_another_engine_is_chosen(tmp_path):
    question = Query("My box arrived crushed")
    routes = ("bm25", "hybrid_rrf")
    for parameters, searches in (({}, 1), ({"bm25": {"engine": "rank-bm25"}}, 2)):
        engine = FakeEngine(tmp_path)
        run = engine.ask(Request(question, "tiny", routes, parameters))
        assert engine.fakes["tiny"].searches == [question.text] * searches
        assert sum(s.shared_with is not None for r in run.results for s in r.spans) == 2 - searches


def test_rewrite_searches_with_the_standalone_question(tmp_path):
    result, llm = ask(tmp_path, "rewrite", REPLIES)
    sent = llm.requests[0].messages[-1].content
    assert "user: My box arrived crushed." in sent
    assert "Last message: What do I do now?" in sent
    assert result.spans[0].output.texts == (REPLIES["rewrite"],)
    assert result.spans[0].output.before == "What do I do now?"
    assert result.hits[0].passage.id == "crushed:0-80"


def test_rewrite_without_a_conversation_asks_no_model(tmp_path):
    result, llm = ask(tmp_path, "rewrite", {}, query=Query("What do I do now?"))
    assert not llm.requests
    assert result.spans[0].output.texts == ("What do I do now?",)
    assert "no earlier conversation" in result.spans[0].attributes["note"]


def test_variants_drop_bullets_repeats_and_the_question_itself(tmp_path):
    reply = "1. crushed parcel\n- crushed parcel\nWhat do I do now?\n* damaged box\n\nMore:\n3) broken pack"
    result, _ = ask(tmp_path, "rag_fusion", {"variants": reply})
    assert result.spans[0].output.texts == ("crushed parcel", "damaged box", "broken pack")


def test_too_few_variants_are_asked_for_again_once_and_said(tmp_path):
    result, llm = ask(tmp_path, "rag_fusion", {"variants": "crushed parcel"})
    assert [request.prompt for request in llm.requests] == ["variants/2", "variants/2/firmer"]
    assert "1 of 3 queries" in llm.requests[1].messages[0].content
    assert result.spans[0].output.texts == ("crushed parcel",)
    assert "1 of 3 variants, even after a retry" in result.spans[0].attributes["note"]


def test_a_refusal_is_retried_once_and_shown(tmp_path):
    replies = {
        "hyde/2": "As an AI language model, I cannot help with that.",
        "hyde/2/firmer": "Crushed boxes are refunded in full.",
    }
    result, _ = ask(tmp_path, "hyde", replies)
    asked = [span for span in result.spans if span.name.startswith("ask")]
    assert [(span.args["prompt"], span.args["attempt"]) for span in asked] == [
        ("hyde/2", 1),
        ("hyde/2/firmer", 2),
    ]
    assert result.spans[0].output.texts == ("Crushed boxes are refunded in full.",)


def test_two_refusals_fail_the_route(tmp_path):
    result, _ = ask(tmp_path, "hyde", {"hyde": "As an AI language model, I cannot help with that."})
    assert result.status == "failed"
    assert "refused twice" in result.error


def test_hyde_averages_proxies_and_question(tmp_path):
    result, llm = ask(tmp_path, "hyde", {"hyde": lambda r: f"crushed box number {r.seed} photos claim"}, n=3)
    assert [request.seed for request in llm.requests] == [0, 1, 2]
    assert {request.temperature for request in llm.requests} == {0.7}
    engine = FakeEngine(tmp_path)
    texts = [f"crushed box number {i} photos claim" for i in range(3)] + [CRUSHED.text]
    mean = engine.fakes["tiny"].embedder.embed(texts).mean(0)
    expected = engine.fakes["tiny"].search_dense(mean / np.linalg.norm(mean), 100)
    assert [h.passage.id for h in result.hits] == [h.passage.id for h in expected]
    assert [h.score for h in result.hits] == pytest.approx([h.score for h in expected], abs=1e-5)


def test_the_instruction_given_is_the_instruction_sent(tmp_path):
    _, llm = ask(tmp_path, "hyde", {}, instruction="Write it as a pirate would.")
    assert llm.requests[0].messages[0].content == "Write it as a pirate would."
    assert llm.requests[0].prompt == "hyde/2/custom"


def test_a_prompt_takes_braces_in_documents_literally():
    sent = GRADE.fill({"passage": "see {question} and {0} {{x}}", "question": "why {passage}?"})[-1].content
    assert "see {question} and {0} {{x}}" in sent
    assert "why {passage}?" in sent
    assert HYDE.fill({"question": "q"})[-1].content.startswith("Question: q")


@pytest.mark.parametrize(
    ("grades", "decision", "web"),
    [
        ({"crushed:0-80": 0.95}, "correct", False),
        ({"crushed:0-80": 0.75}, "ambiguous", True),
        ({}, "incorrect", True),
    ],
)
def test_crag_takes_each_of_its_three_actions(tmp_path, grades, decision, web):
    def grade(request):
        return str(next((g for g in grades.values() if "six sides" in request.messages[-1].content), 0.01))

    result, _ = ask(
        tmp_path,
        "crag",
        {"grade": grade, "web-query": "crushed box"},
        Query("My box arrived crushed"),
        evaluator="llm",
    )
    assert result.error is None
    verdict = next(span for span in result.spans if span.name == "grade and decide").output
    assert verdict.decision == decision
    assert any(span.name == "search the web" for span in result.spans) is web
    from_web = [h.passage.id for h in result.hits if h.passage.id.startswith("web/")]
    assert bool(from_web) is web
    assert [h.passage.id for h in result.hits[len(result.hits) - len(from_web) :]] == from_web  # graded .01
    assert result.hits[0].passage.id == "crushed:0-80"


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=6), st.floats(0, 1), st.floats(0, 1))
def test_decide_by_its_definition(values, low, high):
    grades = [PassageGrade(str(i), v, "not scored" if v is None else "scored") for i, v in enumerate(values)]
    if low > high:
        with pytest.raises(BadInput):
            decide(grades, low, high)
        return
    known = [v for v in values if v is not None]
    if any(v >= high for v in known):
        assert decide(grades, low, high) == "correct"
    elif all(v < low for v in known):
        assert decide(grades, low, high) == "incorrect"
    else:
        assert decide(grades, low, high) == "ambiguous"


def test_a_graders_failure_is_neither_pass_nor_fail(tmp_path):
    def grade(request):
        if "six sides" in request.messages[-1].content:
            return "0.99"
        raise ModelFailed("the endpoint answered HTML")

    result, _ = ask(tmp_path, "crag", {"grade": grade}, Query("My box arrived crushed"), evaluator="llm")
    grades = next(span for span in result.spans if span.name == "grade and decide").output.grades
    assert sorted(g.state for g in grades) == ["error"] * 4 + ["scored"]
    assert result.hits[0].passage.id == "crushed:0-80"


def test_yes_or_no_adds_spellings_and_ignores_other_words():
    top = (("Yes", math.log(0.4)), (" yes", math.log(0.2)), ("No", math.log(0.2)), ("Maybe", math.log(0.2)))
    answer = Completion("Yes", "m", "stop", 1.0, 1, 1, 0, (TokenLogprob("Yes", math.log(0.4), top),))
    assert yes_or_no(answer).of["yes"] == pytest.approx(0.75)
    other = Completion("Hm", "m", "stop", 1.0, 1, 1, 0, (TokenLogprob("Hm", 0.0, (("Hm", 0.0),)),))
    assert yes_or_no(other) is None


def test_strips_keep_each_passages_best_and_all_above_the_floor(tmp_path):
    result, _ = ask(tmp_path, "crag", {"grade": "0.95"}, strip_floor=1.0, evaluator="llm")
    strips = next(
        span for span in result.spans if span.name == "keep the sentences that matter"
    ).output.sentences
    passages = {strip.id for strip in strips}
    for id in passages:
        own = [s for s in strips if s.id == id]
        assert [s.kept for s in own].count(True) >= 1
        assert max(own, key=lambda s: s.score).kept
    assert recompose(
        (Sentence("a", "x", 1, True), Sentence("a", "y", 0, False), Sentence("a", "z", 1, True))
    ) == {"a": "x z"}
