"""The decisions that an audit turns, and the routes that make them, read from the steps' own declarations."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from core.routes.declare import Route
from core.routes.registry import routes
from core.steps import Steps
from core.steps.decisions import ANY, Decided
from core.steps.step import CONTRACTS

BASELINE = "hybrid_rrf"
BASELINES = (BASELINE, "rerank")
Pairs = tuple[tuple[str, str], ...]  # (the decision that fires, the decision that changes nothing)


@cache
def fires() -> Mapping[str, Pairs]:
    """By the name of a step: the pairs its outcome declares (`Decided.FIRES`). Steps without any are left
    out.
    """
    found: dict[str, Pairs] = {}
    for one in CONTRACTS.values():
        if isinstance(one.returns, type) and issubclass(one.returns, Decided) and one.returns.FIRES:
            found[one.name] = one.returns.FIRES
    return found


def other_way(step: str, decision: str) -> tuple[bool, str] | None:
    """Return whether a decision of a step fired and the decision to turn it to, or None if no pair names it.
    A quiet decision of several pairs is turned to the first of them.
    """
    pairs = fires().get(step, ())
    for fired, quiet in pairs:
        if decision == fired or (fired == ANY and decision != quiet):
            return True, quiet
    return next(((False, fired) for fired, quiet in pairs if decision == quiet and fired != ANY), None)


@cache
def own(route: str) -> frozenset[str]:
    """Return the deciding steps that a route's function calls, itself or through steps, and the baseline's
    does not: whether to abstain is decided by every answer alike, and is no choice of a loop. Of the
    baselines all are their own.
    """
    common = frozenset() if route in BASELINES else _called(routes()[BASELINE].function, "do")
    return (_called(routes()[route].function, "do") - common) & fires().keys()


def loops() -> list[Route]:
    """Return the routes that make decisions of their own."""
    return [route for route in routes().values() if route.name not in BASELINES and own(route.name)]


def _called(function: Callable[..., Any], owner: str) -> frozenset[str]:
    """Return the names of the steps that a function takes from its variable `owner`, and those that they
    take, or functions that it hands the variable to.
    """
    found: set[str] = set()
    seen: set[Callable[..., Any]] = set()
    waiting = [(function, owner)]
    while waiting:
        one, variable = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if one.__qualname__ in CONTRACTS:
            found.add(CONTRACTS[one.__qualname__].name)
        for node in ast.walk(_text(one)):
            if isinstance(node, ast.Attribute) and _is(node.value, variable):
                method = getattr(Steps, node.attr, None)
                if inspect.isfunction(method):
                    waiting.append((inspect.unwrap(method), "self"))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                # a function of its module that is called with the variable
                other = one.__globals__.get(node.func.id)
                if inspect.isfunction(other):
                    given = [*zip(inspect.signature(other).parameters, node.args, strict=False)]
                    given += [(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg]
                    waiting += [(other, name) for name, value in given if _is(value, variable)]
    return frozenset(found)


def _is(node: ast.AST, variable: str) -> bool:
    return isinstance(node, ast.Name) and node.id == variable


@cache
def _text(function: Callable[..., Any]) -> ast.Module:
    return ast.parse(textwrap.dedent(inspect.getsource(function)))
