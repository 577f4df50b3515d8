"""Every step declares the type of its result, and its span records what the declaration says."""

import builtins
import inspect
import typing
from dataclasses import replace

import numpy as np
import pytest
from typing_extensions import TypeAliasType

from core.domain.types import Hit, Query, Ranking
from core.engine.request import Request
from core.steps import Steps
from core.steps.base import StepBase
from core.steps.step import CONTRACTS, step
from tests.fakes import FakeEngine

DECLARED = {
    name: inspect.unwrap(method)
    for name, method in inspect.getmembers(Steps, inspect.isfunction)
    if inspect.unwrap(method).__qualname__ in CONTRACTS
}


def resolved(name, annotation):
    """Return an annotation's type; names that only type checkers import become unrelated types."""
    module = DECLARED[name].__globals__

    class Known(dict):
        def __missing__(self, key):
            if hasattr(builtins, key):
                raise KeyError(key)
            return type(key, (), {})

    return eval(annotation, {}, Known(vars(typing) | module))


def takes_rankings(kind):
    return kind == Ranking or Ranking in typing.get_args(kind)


@pytest.mark.parametrize("name", DECLARED)
def test_a_contract_agrees_with_the_annotations(name):
    method = DECLARED[name]
    contract = CONTRACTS[method.__qualname__]
    wanted = contract.returns | None if contract.optional else contract.returns
    signature = inspect.signature(method)
    assert resolved(name, signature.return_annotation) == wanted
    lists = {
        one.name
        for one in signature.parameters.values()
        if one.name != "self" and takes_rankings(resolved(name, one.annotation))
    }
    assert lists == contract.lists


def test_a_step_that_does_not_say_what_it_returns_fails_when_it_is_declared():
    with pytest.raises(TypeError, match="returns"):
        step("CHAIN", "silent")(lambda self: ())


def test_a_ranking_is_recorded_however_its_type_is_written():
    class Spelled(StepBase):
        @step("CHAIN", "spelled out", returns=tuple[Hit, ...])
        def spelled(self, hits: Ranking) -> tuple[Hit, ...]:
            return hits

    assert CONTRACTS[Spelled.spelled.__qualname__].ranks


def test_a_result_of_another_type_is_an_error_and_none_is_one_unless_declared():
    contract = CONTRACTS["Retrieve.embed"]
    with pytest.raises(TypeError, match="embed"):
        contract.check("no vector")
    with pytest.raises(TypeError, match="NoneType"):
        contract.check(None)
    CONTRACTS["Transform.short_answer"].check(None)


def test_arrays_are_checked_where_numpy_names_them_by_an_alias():
    kind = typing.TypeVar("kind", bound=np.generic)
    array = TypeAliasType("array", np.ndarray[typing.Any, np.dtype[kind]], type_params=(kind,))
    contract = replace(CONTRACTS["Retrieve.embed"], returns=array[np.float32])
    contract.check(np.zeros(3, np.float32))
    with pytest.raises(TypeError, match="embed"):
        contract.check([0.0])


def test_spans_record_hits_for_the_steps_that_return_rankings_and_for_no_other(tmp_path):
    run = FakeEngine(tmp_path).ask(Request(Query("Which fragile goods need customs keys?"), "tiny"))
    ranks = {one.name: one.ranks for one in CONTRACTS.values()}
    spans = [span for result in run.results for span in result.spans if span.name in ranks and not span.error]
    assert len({span.name for span in spans}) > 15
    assert [span.name for span in spans if (span.hits is not None) != ranks[span.name]] == []
