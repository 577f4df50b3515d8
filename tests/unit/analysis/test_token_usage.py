"""What routes ask of models: nothing is counted twice, what was reused is told apart, prices are optional."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.token_usage import Totals, add, price, prompt_cache, totals
from core.domain.errors import BadInput
from core.domain.settings import load
from core.domain.types import Query, RouteResult, Run, Span, Tokens
from tests.runs import make_run


def span(id, parent=None, calls=0, tokens=None, **marks):
    used = Tokens(*tokens) if tokens else None
    return Span(id, parent, "step", "LLM", 0.0, 1.0, tokens=used, calls=calls, **marks)


def route(*spans):
    return RouteResult("r", "R", "ok", 1.0, spans=spans)


def test_calls_below_steps_are_added_up_once():
    result = route(
        span(1), span(2, 1, 1, (100, 10, 40)), span(3, 1), span(4, 3, 1, (50, 5)), span(5, None, 1, (7, 1))
    )
    assert totals(result) == Totals(3, 157, 16, 40)
    result = route(span(1, None, 2, (150, 15)), span(2, 1, 1, (100, 10)), span(3, 1, 1, (50, 5)))
    assert totals(result) == Totals(2, 150, 15)
    assert totals(route(span(1, None, 1), span(2, 1, 1, (120, 48)))) == Totals(1, 120, 48)
    assert totals(make_run(mishaps=False).results[0]) == Totals()
    assert totals(route(span(9, 77, 1, (3, 2)))).calls == 1
    assert totals(route(span(1, 2, 1, (3, 2)), span(2, 1, 1, (3, 2)))).calls >= 1


def test_reused_work_and_reasoning_are_told_apart():
    result = route(
        span(1, None, 2, (100, 10, 30), shared_with="other#4", cached="cache"),
        span(2),
        span(3, 2, 1, (40, 4), cached="recording"),
        span(4, None, 1, (5, 1)),
    )
    found = totals(result)
    assert found == Totals(4, 145, 15, 30, 0, 2, 1, 140, 14)
    assert found.spent == Totals(1, 5, 1, 5)
    result = route(
        span(1, None, 1, (100, 90, 0, 70), cached="cache"),
        span(2),
        span(3, 2, 1, (10, 40, 0, 30)),
        span(4, 2, 1, (10, 5)),
        span(5, None, 1),
        span(6, 5, 1, (10, 9, 0, 8), shared_with="other#1"),
    )
    found = totals(result)
    assert (found.completion, found.reasoning, found.reused_reasoning) == (144, 108, 78)
    assert (found.spent.completion, found.spent.reasoning) == (45, 30)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 500), st.integers(0, 99)), max_size=12))
def test_where_only_calls_carry_figures_it_is_their_sum(leaves):
    spans = [span(1)]
    for at, (calls, prompt, completion) in enumerate(leaves, 2):
        spans.append(span(at, 1 if at % 2 else None, calls, (prompt, completion)))
    found = totals(route(*spans))
    assert found.calls == sum(leaf[0] for leaf in leaves)
    assert (found.prompt, found.completion) == (
        sum(leaf[1] for leaf in leaves),
        sum(leaf[2] for leaf in leaves),
    )
    assert found.spent == found
    assert add([found, found]).calls == 2 * found.calls


def test_prices_are_of_a_million_tokens_and_not_negative():
    used = Totals(3, 2_000_000, 500_000)
    assert price(used, 0.5, 2.0) == pytest.approx(2.0)
    assert price(used, 0.0, 0.0) == 0.0
    assert price(used, None, 2.0) is None
    assert price(used, 0.5, None) is None
    assert price(replace(used, cached_prompt=1_000_000), 0.5, 2.0) == pytest.approx(2.0)
    assert load(llm_price_prompt=0.15).llm_price_prompt == 0.15
    for wrong in (-1, float("nan"), float("inf"), "much"):
        with pytest.raises(BadInput, match="llm_price_completion"):
            load(llm_price_completion=wrong)


CALL = Span(1, None, "ask", "LLM", 0.0, 1.0, tokens=Tokens(200, 5, 50))


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        ((), ""),
        ((CALL, replace(CALL, id=2, tokens=Tokens(100, 1, 0))), "50 of 300 prompt tokens (17%)"),
        ((CALL, replace(CALL, id=2, shared_with="b#3"), replace(CALL, id=3, cached="cache")), "50 of 200"),
        ((replace(CALL, tokens=None),), ""),
        ((replace(CALL, tokens=Tokens(100, 1, 0)),), ""),
    ],
)
def test_a_prompt_cache_is_counted_over_the_calls_that_were_made(spans, said):
    found = prompt_cache(Run("r", "", Query("q"), "c", "f", {}, (route(*spans),)))
    assert found.startswith(f"Prompt cache: {said}") if said else found == ""
