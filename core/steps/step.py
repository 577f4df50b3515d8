"""`@step`: makes a method a traced step whose work the routes of a run share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from core.errors import Stopped
from core.steps.base import Context, StepBase
from core.steps.memo import Work, add_tokens, digest
from core.trace import OpenSpan
from core.types import Hit, SpanKind, Tokens

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=StepBase)
LISTS = "lists"  # the input that names the spans whose rankings a step combined


def step(
    kind: SpanKind, name: str
) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
    """Make a method a traced step: one span, its arguments as inputs, shared with other routes of the run."""

    def wrap(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
        signature = inspect.signature(method)

        def call(self: S, *args: P.args, **kwargs: P.kwargs) -> R:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            given = {key: value for key, value in bound.arguments.items() if key != "self"}
            context = self.context
            context.left()
            key = digest([method.__qualname__, given])
            while True:
                work, mine = context.memo.claim(key, context.asker)
                if mine:
                    return _do(
                        context, work, key, (name, kind, shown(given)), lambda: method(self, *args, **kwargs)
                    )
                with context.asker.behind(work.asker):
                    while not work.done.wait(0.05):
                        context.left()
                if not isinstance(work.error, Stopped):
                    reused: R = _reuse(context, work, key, (name, kind, shown(given)), given)
                    return reused

        return cast("Callable[Concatenate[S, P], R]", functools.wraps(method)(call))

    return wrap


Head = tuple[str, SpanKind, dict[str, Any]]


def _do(context: Context, work: Work, key: str, head: Head, method: Callable[[], R]) -> R:
    """Do a step's work in a span and leave the outcome for the other routes."""
    name, kind, inputs = head
    trace = context.trace
    opened: OpenSpan | None = None
    try:
        with trace.span(name, kind, **inputs) as opened:
            result = work.result = method()
            _record(opened, result)
            trace.remember(result, opened.id)
        return result
    except BaseException as error:
        work.error = error
        if isinstance(error, Stopped):
            context.memo.drop(key)
        raise
    finally:
        context.used.add(key)
        if opened is not None:
            work.span = trace.find(opened.id)
            work.owner = f"{trace.owner}#{opened.id}"
            below = trace.below(opened.id)
            work.calls = sum(span.calls for span in below)
            work.tokens = add_tokens([span.tokens for span in below])
            work.cached = next((span.cached for span in below if span.cached), None)
        work.done.set()


def _reuse(context: Context, work: Work, key: str, head: Head, given: Mapping[str, Any]) -> Any:
    """Take over a step's outcome. The first time the route is charged what it took; a repeat is free."""
    name, kind, inputs = head
    first = key not in context.used
    context.used.add(key)
    with context.trace.span(name, kind, **inputs) as opened:
        opened.shared_with = work.owner
        if work.span is not None:
            opened.kind = work.span.kind
            opened.output, opened.hits, opened.cached = work.span.output, work.span.hits, work.cached
            opened.inputs = {**work.span.inputs, **inputs}
            if LISTS in work.span.inputs:  # named by the owner's spans; these are the same lists' here
                lists = given.get(LISTS, (given.get("hits", ()),))
                opened.inputs[LISTS] = [context.trace.made(ranking) for ranking in lists]
            if first:
                opened.original_ms = work.span.ms
                opened.calls, opened.tokens = work.calls, work.tokens
                total = work.tokens or Tokens()
                context.spend(work.calls, total.prompt + total.completion)
        if work.error is not None:
            raise work.error
        context.trace.remember(work.result, opened.id)
    return work.result


def _record(span: OpenSpan, result: Any) -> None:
    if isinstance(result, tuple) and all(isinstance(item, Hit) for item in result):
        span.hits = tuple((hit.passage.id, hit.score) for hit in result)
    elif span.output is None:
        span.output = result


def shown(given: dict[str, Any]) -> dict[str, Any]:
    """A step's arguments as a span shows them: rankings by length, the rest as it is."""

    def brief(value: Any) -> Any:
        if isinstance(value, tuple) and value and all(isinstance(item, Hit) for item in value):
            return f"{len(value)} hits"
        if isinstance(value, tuple):
            return tuple(brief(item) for item in value)
        return value

    return {key: brief(value) for key, value in given.items()}
