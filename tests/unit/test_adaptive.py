"""Choosing a route by the question: rules, examples, the model; what is passed over; what is done then."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.run_view import top
from core.domain.needs import Need
from core.domain.types import AnswerStyle, Query, Turn
from core.engine.engine import Request
from core.routes.registry import routes
from core.steps.classes import CANDIDATES, CLASSES, EXAMPLES, NO_SEARCH, by_examples, by_rules
from core.steps.classify import WORDS, decide
from tests.fakes import FakeEngine, ScriptedLLM

TALK = (Turn("user", "My box arrived crushed."), Turn("assistant", "I am sorry."))
ASKED = {
    "no_retrieval": "Good morning, how are you?",
    "exact": "What does error KX-4711 mean?",
    "plain": "How long are vouchers valid?",
    "conceptual": "What is our strategy for refunds?",
    "complex": "Compare standard and express shipping.",
    "structured": "How many orders were placed in May?",
}


def ask(tmp_path, text, replies=None, history=(), missing=None, answers="none", by="model", **parameters):
    llm = ScriptedLLM(replies or {}, missing=missing)
    request = Request(
        Query(text, history),
        "tiny",
        ("adaptive",),
        {"adaptive": parameters},
        answers=answers,
        style=AnswerStyle(by=by),
    )
    return FakeEngine(tmp_path, llm=llm).ask(request).results[0], llm


def of(result, name):
    return next(span.output for span in result.spans if span.name == name)


@pytest.mark.parametrize("kind", ASKED)
def test_each_class_goes_to_its_first_route_that_can_run(tmp_path, kind):
    result, _ = ask(tmp_path, ASKED[kind])
    assert (result.status, result.error) == ("ok", None)
    assert of(result, "classify the question").decision == kind
    chosen = of(result, "choose a route")
    expected = next(n for n in CANDIDATES[kind] if n != "text_to_sql")  # the corpus here has no tables
    assert chosen.decision == expected
    assert bool(result.hits) is (kind not in ("no_retrieval", "exact"))  # no passage has a word of the latter


@pytest.mark.parametrize("kind", ["conceptual", "complex", "structured"])
def test_without_a_model_the_decision_says_what_was_passed_over(tmp_path, kind):
    result, llm = ask(tmp_path, ASKED[kind], missing="no model: run make setup")
    assert (result.status, result.error) == ("ok", None)
    chosen = of(result, "choose a route")
    assert chosen.decision == "rerank"
    assert f"not {CANDIDATES[kind][0]}, because no model: run make setup" in chosen.why
    assert not llm.requests


def test_a_route_that_is_not_there_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setitem(CANDIDATES, "plain", ("no_such_route", "dense"))
    result, _ = ask(tmp_path, ASKED["plain"])
    chosen = of(result, "choose a route")
    assert chosen.decision == "dense"
    assert "not no_such_route, because there is no such route" in chosen.why


def test_the_last_candidate_of_each_class_needs_nothing():
    assert set(CANDIDATES) == set(CLASSES)
    for names in CANDIDATES.values():
        assert names[-1] == NO_SEARCH or not routes()[names[-1]].needs
        assert all(name == NO_SEARCH or name in routes() for name in names)


def test_the_steps_and_hits_are_those_of_the_route_chosen(tmp_path):
    engine = FakeEngine(tmp_path)
    run = engine.ask(Request(Query(ASKED["plain"]), "tiny", ("rerank", "adaptive")))
    rerank, adaptive = run.results
    assert adaptive.hits == rerank.hits
    assert [s.name for s in top(adaptive)][2:] == [s.name for s in top(rerank)]
    assert all(s.shared_with for s in adaptive.spans if s.parent is None and s.name.startswith("search"))


def test_a_follow_up_goes_to_the_memory(tmp_path):
    result, llm = ask(tmp_path, "What do I do now?", history=TALK)
    assert of(result, "classify the question").decision == "conversational"
    assert of(result, "choose a route").decision == "memory"
    assert result.hits[0].passage.id == "crushed:0-80"
    assert not llm.requests


def test_what_needs_no_search_is_answered_only_where_answers_are_asked_for(tmp_path):
    silent, llm = ask(tmp_path / "a", "Thanks a lot!", history=TALK)
    assert (silent.answer, silent.hits, llm.requests) == (None, (), [])
    told, llm = ask(tmp_path / "b", "Thanks a lot!", {"direct": "You are welcome."}, TALK, answers="all")
    assert (told.answer, told.hits, told.citations) == ("You are welcome.", (), ())
    copied, quiet = ask(tmp_path / "c", "Thanks a lot!", history=TALK, answers="all", by="extract")
    assert (copied.abstained, copied.citations, quiet.requests) == (True, (), [])
    assert "user: My box arrived crushed." in llm.requests[0].messages[-1].content


@pytest.mark.parametrize(("word", "kind"), WORDS.items())
def test_the_model_classifies_by_the_odds_of_a_word(tmp_path, word, kind):
    odds = {"question-class": {word[:3]: 0.6, "fact" if word != "fact" else "idea": 0.2, "zebra": 0.2}}
    result, llm = ask(tmp_path, "xyz", odds, classifier="llm")
    found = of(result, "classify the question")
    assert found.decision == kind
    assert found.scores[kind] == pytest.approx(0.75)
    assert "0.75" in found.why
    assert llm.requests[0].prompt == "question-class/1"


def test_a_model_that_names_no_class_fails_the_route(tmp_path):
    result, _ = ask(tmp_path, "xyz", {"question-class": {"zebra": 1.0}}, classifier="llm")
    assert result.status == "failed"
    assert "named no class of chat, code" in result.error


def test_the_model_is_needed_only_by_its_classifier():
    route = routes()["adaptive"]
    assert Need.LLM not in route.needed(route.settle({}))
    assert Need.LLM in route.needed(route.settle({"classifier": "llm"}))


def test_examples_classify_themselves(tmp_path):
    for kind, examples in EXAMPLES.items():
        result, _ = ask(tmp_path / kind, examples[0], classifier="prototypes")
        found = of(result, "classify the question")
        assert set(found.scores) == set(CLASSES) - {"conversational"}
        assert found.decision in CLASSES


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_scores_by_examples_are_means_of_the_nearest(k, seed):
    draw = np.random.default_rng(seed)
    vectors = draw.normal(size=(9, 4)).astype(np.float32)
    classes = ["plain"] * 4 + ["exact"] * 3 + ["complex"] * 2
    query = draw.normal(size=4).astype(np.float32)
    found = by_examples(query, vectors, classes, k)
    for kind in ("plain", "exact", "complex"):
        cosines = sorted(
            (float(v @ query) for v, c in zip(vectors, classes, strict=True) if c == kind), reverse=True
        )
        assert found[kind] == pytest.approx(np.mean(cosines[:k]), abs=1e-5)


def test_a_conversation_decides_but_for_small_talk():
    scores = {"plain": 0.6, "no_retrieval": 0.3}
    assert decide(scores, False, "cosine").decision == "plain"
    assert decide(scores, True, "cosine").decision == "conversational"
    assert decide({"plain": 0.2, "no_retrieval": 0.3}, True, "cosine").decision == "no_retrieval"
    assert decide({"plain": 0.5, "exact": 0.5}, False, "cosine").decision == "exact", (
        "ties by the classes' order"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Hi, where is my parcel?", "plain"),
        ("Thank you very much, bye!", "no_retrieval"),
        ("ok", "no_retrieval"),
        ("What is 12 * 7?", "no_retrieval"),
        ("INC-2025-0421", "exact"),
        ("KX-1 vs KX-2: which is newer?", "complex"),
        ("What is the status of order #10023?", "structured"),
        ("The lid came off and everything is wet", "conceptual"),
        ("Why do we prefer small carriers?", "conceptual"),
        ("The depot that serves Lyon: when does it open?", "complex"),
        ("?!", "plain"),
        ("", "plain"),
    ],
)
def test_the_rules(text, kind):
    decision, why, scores = by_rules(text, False)
    if text.startswith("Hi,"):
        assert decision != "no_retrieval", "a greeting before a question is no small talk"
        return
    assert (decision, bool(why)) == (kind, True)
    assert set(scores) == set(CLASSES)
    assert scores[decision] == 1.0
    after = by_rules(text, True)[0]
    assert after == ("no_retrieval" if kind == "no_retrieval" else "conversational")


@given(st.text(max_size=200), st.booleans())
def test_any_text_has_a_class(text, history):
    assert by_rules(text, history)[0] in CLASSES
