"""Listwise and setwise reranking: against sorting, scipy's Kendall tau, and a model that knows the order."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from core.domain.errors import ModelFailed
from core.steps.order_by_model import LABELS, heap_top, order_grammar, permutation, tau
from tests.asking import ask, span
from tests.fakes import ScriptedLLM

ASKED = "send a fragile parcel back in its box"
ORDERS = st.integers(2, 12).flatmap(lambda n: st.permutations(range(n)))


def shown(request):
    """The first line of each passage that the request shows, in order."""
    text = request.messages[-1].content
    return [found.strip() for found in re.findall(r"<passage \w+>\n(.*?)\n</passage", text, re.S)]


def by_length(request):
    """A model that knows one thing, whatever the order given: the longest passage is the best."""
    texts = shown(request)
    order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
    return " > ".join(f"[{at + 1}]" for at in order)


def longest(request):
    texts = shown(request)
    total = sum(map(len, texts))
    return {LABELS[at]: len(text) / total for at, text in enumerate(texts)}


def first_label(request):
    return {"A": 0.9, "B": 0.1}


def run(tmp_path, route, llm, **parameters):
    return ask(tmp_path, route, ASKED, llm, **parameters)[0]


def step(result):
    return span(result, "rerank")


def length(hit):
    one = hit.passage
    return len(f"{' '.join(one.title.split())}\n{one.text.strip()}" if one.title else one.text.strip())


@given(ORDERS, st.integers(2, 6), st.integers(1, 12))
def test_heap_sort_fills_the_first_places_as_sorting_does(order, size, top):
    got = heap_top(order, size, top, lambda of: max(range(len(of)), key=lambda at: of[at]))
    best = sorted(order, reverse=True)[:top]
    assert got == best + [one for one in order if one not in best]


@given(ORDERS, st.randoms())
def test_tau_is_scipys(order, random):
    other = list(order)
    random.shuffle(other)
    ranks = [[one.index(at) for at in range(len(order))] for one in (list(order), other)]
    assert tau(order, other) == pytest.approx(kendalltau(*ranks).statistic)


@pytest.mark.parametrize(
    ("reply", "order"),
    [
        ("[2] > [3] > [1]", (1, 2, 0)),
        ("[2] > [2] > [9] > [0]", (1, 0, 2)),
        ("3", (2, 0, 1)),
        ("none of them", (0, 1, 2)),
        ("[99999999999999]", (0, 1, 2)),
    ],
)
def test_a_reply_becomes_a_permutation_whatever_it_says(reply, order):
    assert permutation(reply, 3) == order


def test_the_grammar_names_each_number():
    assert order_grammar(3) == 'root ::= one " > " one " > " one\none ::= "[1]" | "[2]" | "[3]"'


def test_sliding_windows_bring_the_best_to_the_front(tmp_path):
    llm = ScriptedLLM({"order-passages": by_length})
    result = run(tmp_path, "listwise", llm, candidates=7, window=3, stride=1, check_order=True)
    assert result.status == "ok", result.error
    lengths = [length(hit) for hit in result.hits]
    assert lengths[:2] == sorted(lengths, reverse=True)[:2]  # a pass of stride 1 sorts window - stride places
    assert len(llm.requests) <= 10
    assert "Kendall's tau" in step(result).attributes["order sensitivity"]


def test_setwise_takes_the_likeliest_label(tmp_path):
    llm = ScriptedLLM({"best-passage": longest})
    result = run(tmp_path, "setwise", llm, candidates=7, size=3, top=3, check_order=True)
    assert result.status == "ok", result.error
    lengths = [length(hit) for hit in result.hits]
    assert lengths[:3] == sorted(lengths, reverse=True)[:3]
    assert "is the same" in step(result).attributes["order sensitivity"]


def test_a_model_that_answers_by_place_is_shown_as_such(tmp_path):
    """It always takes the first label: the order given comes back, and so does its reverse."""
    llm = ScriptedLLM({"best-passage": first_label})
    result = run(tmp_path, "setwise", llm, candidates=5, size=5, top=1, check_order=True)
    assert "is another one" in step(result).attributes["order sensitivity"]
    copy = ScriptedLLM({"order-passages": "[1] > [2] > [3] > [4] > [5]"})
    result = run(tmp_path / "b", "listwise", copy, candidates=5, window=5, stride=3, check_order=True)
    assert "Kendall's tau -1.00" in step(result).attributes["order sensitivity"]
    assert step(result).attributes["note"].startswith("no passage moved")


@pytest.mark.parametrize(("route", "prompt"), [("listwise", "order-passages"), ("setwise", "best-passage")])
def test_failures_are_said(tmp_path, route, prompt):
    broken = run(tmp_path, route, ScriptedLLM({prompt: ModelFailed("answered HTML")}))
    assert broken.status == "failed"
    assert "answered HTML" in str(broken.error)
