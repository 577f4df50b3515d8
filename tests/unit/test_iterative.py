"""Iterative retrieval: which names it looks up, what it searches with, and each reason to stop."""

from hypothesis import given
from hypothesis import strategies as st

from core.domain.types import Hit, Passage, Query
from core.engine.engine import Request
from core.steps.iterate import collect
from tests.fakes import FakeEngine, ScriptedLLM

QUESTION = "Which bus goes to the hotel of the spring conference?"
TEXTS = {
    "hotel:0-90": "The spring conference takes place in the Harbour Hotel, opened by the mayor of Lindow.",
    "bus:0-90": "Number 12 stops there every hour.",
    "town:0-90": "A port of ten thousand people.",
    **{f"other{n}:0-90": f"The spring sale number {n} of the conference goes on." for n in range(8)},
}
TITLES = {"bus": "Harbour Hotel (Lindow)", "town": "Lindow", "hotel": "Spring conference"}


def ask(
    tmp_path,
    question=QUESTION,
    replies=None,
    texts=TEXTS,
    limits=None,
    answers="none",
    forced=None,
    **parameters,
):
    llm = ScriptedLLM(replies or {})
    engine = FakeEngine(tmp_path, llm=llm, texts=texts, titles=TITLES, **(limits or {}))
    request = Request(
        Query(question),
        "tiny",
        ("iterative",),
        {"iterative": parameters},
        answers=answers,
        forced=forced or {},
    )
    return engine.ask(request).results[0], llm, engine


def outputs(result, name):
    return [span.output for span in result.spans if span.name == name]


def searched(result):
    return [span.args["text"] for span in result.spans if span.name == "search BM25"]


def decisions(result):
    named = ("go on or stop", "find a name to look up")
    return [span.output.decision for span in result.spans if span.name in named]


@given(st.lists(st.integers(0, 9), unique=True), st.lists(st.integers(0, 9), unique=True),
       st.integers(1, 5), st.integers(1, 8))  # fmt: skip
def test_collecting_keeps_order_and_caps(before, found, each, keep):
    def hits(numbers):
        return tuple(Hit(Passage(str(n), "d", "", ""), 1.0) for n in numbers)

    ids = [hit.passage.id for hit in collect(hits(before[:keep]), hits(found), each, keep)]
    expected = [str(n) for n in before[:keep]]
    for n in found[:each]:
        if len(expected) < keep and str(n) not in expected:
            expected.append(str(n))
    assert ids == expected
