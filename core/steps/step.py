"""`@step`: makes a method a traced step whose work the routes of a run share."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, TypeVar, cast, get_origin

import numpy as np

from core.domain.outputs import Output, Pass
from core.domain.parameters import parameter_of
from core.domain.types import Hit, Link, Origin, Passage, Ranking, SpanKind, TracedTuple
from core.steps.base import Context, StepBase
from core.steps.decisions import FORCED
from core.steps.memo import Work, add_tokens, digest, doing, under_way
from core.steps.trace import OpenSpan, Trace, plain

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class StepContract:
    """The properties shared by all calls of a step."""

    kind: SpanKind
    name: str
    returns: Any  # the type of its result; for Ranking, the span records the hits
    optional: bool  # the result may be None
    lists: frozenset[str]  # the parameters that take a ranking, or several

    @property
    def ranks(self) -> bool:
        """Return True if the step returns a ranking."""
        return bool(self.returns == Ranking)

    def check(self, result: Any) -> None:
        """Raise TypeError if `result` is not of the declared type."""
        if self.optional and result is None:
            return
        if not isinstance(result, _class_of(self.returns)):
            raise TypeError(f"step {self.name!r} returned {type(result).__name__}, not {self.returns}")


def _class_of(annotation: Any) -> type:
    """Return the class of a type; NumPy's arrays are a type alias in Python 3.12 and newer."""
    found = get_origin(annotation) or annotation
    alias = getattr(found, "__value__", None)
    return _class_of(alias) if alias is not None else cast(type, found)


CONTRACTS: dict[str, StepContract] = {}  # by the method's qualified name


def step(kind: SpanKind, name: str, *, returns: Any, optional: bool = False) -> Callable[[F], F]:
    """Make a method a traced step: one span with its arguments and their origins, shared by the routes of a
    run.

    `returns` is the type of the result. For `Ranking` the span records the hits. Another result is recorded
    as one of `core.domain.outputs`: set on the span by the method, or the result itself, or the value of its
    method `recorded`. With `optional` the result may be None. A call raises TypeError for another type.

    All data the method reads must be among its arguments, or the same for all routes of the run (except the
    filters on passages, which count as well): a step's work is shared by its arguments.
    """

    def wrap(method: F) -> F:
        signature = inspect.signature(method)
        lists = frozenset(p.name for p in signature.parameters.values() if "Ranking" in str(p.annotation))
        known = CONTRACTS[method.__qualname__] = StepContract(kind, name, returns, optional, lists)

        def call(self: StepBase, *args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            given = {key: value for key, value in bound.arguments.items() if key != "self"}
            context, do = self.context, functools.partial(method, self, *args, **kwargs)
            context.left()
            named = [context.llm_name] if context.llm_name else []
            key = digest([method.__module__, method.__qualname__, given, context.where, *named])
            arguments = read(given, context.trace, known.lists)
            while True:
                work, mine = context.memo.claim(key, context.asker)
                if mine:
                    return _do(context, work, known, arguments, do)
                with context.asker.behind(work.asker):
                    while not work.done.wait(0.05):
                        context.left()
                if work.cut_short:
                    continue  # it was dropped: this route may do it
                if not context.affords(work):  # so it ends within, as it would alone
                    return _do(context, Work(key, context.asker), known, arguments, do)
                return _reuse(context, work, known, arguments)

        return cast("F", functools.wraps(method)(call))

    return wrap


def _do(
    context: Context, work: Work, known: StepContract, given: Arguments, method: Callable[[], Any]
) -> Any:
    """Do a step's work in a span and leave the outcome for the other routes."""
    trace, around = context.trace, under_way()
    opened: OpenSpan | None = None
    try:
        with trace.span(known.name, known.kind, given.args, given.links, given.set_by) as opened, doing(work):
            outcome = method()
            known.check(outcome)
            result = context.decided(known.name, outcome)
            if result is not outcome:
                opened.attributes[FORCED] = outcome.decision
            if known.ranks:
                opened.hits = tuple([(hit.passage.id, hit.score) for hit in result])
                trace.keep(result)
            if opened.output is None:
                opened.output = _output(result, known.ranks)
        work.result = _traced(result, opened.id, trace)
        return work.result
    except BaseException as error:
        work.error = error
        raise
    finally:
        if opened is not None:
            work.cut_short = opened.cut_short
            work.span = trace.find(opened.id)
            work.owner = f"{trace.owner}#{opened.id}"
            below = trace.below(opened.id)
            work.calls = sum(span.calls for span in below)
            work.tokens = add_tokens([span.tokens for span in below])
            work.cached = next((span.cached for span in below if span.cached), None)
        if around is not None:
            around.include(work)
        if work.cut_short:
            context.memo.drop(work)
        else:
            context.used.add(work.key)
        work.done.set()


def _reuse(context: Context, work: Work, known: StepContract, given: Arguments) -> Any:
    """Take over a step's outcome. The first time the route is charged what it took; a repeat is free."""
    first = work.key not in context.used
    trace = context.trace
    with trace.span(known.name, known.kind, given.args, given.links, given.set_by) as opened:
        opened.shared_with = work.owner
        if work.span is not None:
            opened.kind = work.span.kind
            opened.output, opened.hits, opened.cached = work.span.output, work.span.hits, work.cached
            opened.attributes = dict(work.span.attributes)
            if first:
                opened.original_ms = work.span.ms
                opened.calls, opened.tokens = work.calls, work.tokens
        context.pay(work)
        if (around := under_way()) is not None:
            around.include(work)
        if work.error is not None:
            raise work.error
        if known.ranks:
            trace.keep(work.result)
    return _traced(work.result, opened.id, trace)


def _output(result: Any, ranks: bool) -> Output:
    if isinstance(result, Output):
        return result
    if hasattr(result, "recorded"):
        return cast("Output", result.recorded())
    return Pass(None if ranks or isinstance(result, np.ndarray) else plain(result))


def _traced(result: Any, span: int, trace: Trace) -> Any:
    """Mark `result` as produced by `span`, so that a later step can name the origin of its arguments."""
    if isinstance(result, tuple):
        return TracedTuple(result, Origin(span, 0, len(result)))
    if isinstance(result, np.ndarray) and result.ndim == 1:
        vector = result.view(TracedVector)
        vector.origin = Origin(span, 0, len(result))
        return vector
    if is_dataclass(result) and not isinstance(result, type):
        own = copy.copy(result)  # of its own, as another step may give an equal one
        trace.remember(own, span)
        return own
    return result


_GONE = object()  # stands for a value that a link names


@dataclass(slots=True)
class Arguments:
    """A step's arguments as plain JSON, what steps made of them, and what the route's parameters set."""

    args: dict[str, Any] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    set_by: dict[str, str] = field(default_factory=dict)


def read(given: Mapping[str, Any], trace: Trace, lists: frozenset[str]) -> Arguments:
    """Read a step's arguments by name. `lists` names the parameters that take rankings; there () is an empty
    ranking that the route created itself.
    """
    reader = _Reader(trace)
    for name, value in given.items():
        found = reader.value(value, name, name, name in lists)
        if found is not _GONE:
            reader.read.args[name] = found
    reader.read.links = tuple(reader.links)
    return reader.read


class _Reader:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.links: list[Link] = []
        self.read = Arguments()

    def value(self, value: Any, arg: str, name: str, ranking: bool = False) -> Any:
        """`value` as plain JSON, or _GONE; links call it `arg` ("lists[1]"), settings `name` ("weights.1")"""
        if isinstance(value, TracedTuple):
            self.links.append(Link(arg, value.origin.span, len(value), value.origin.start))
            return plain(value) if value and all(isinstance(item, str) for item in value) else _GONE
        if isinstance(value, np.ndarray):
            origin = value.origin if isinstance(value, TracedVector) else None
            self.links.append(Link(arg, origin.span if origin else None, len(value)))
            return _GONE
        if isinstance(value, tuple | list):
            if all(isinstance(item, Hit) for item in value) and (value or ranking):
                self.links.append(Link(arg, None, len(value)))
                return _GONE
            some = (self.value(item, f"{arg}[{n}]", f"{name}.{n}", ranking) for n, item in enumerate(value))
            kept = [item for item in some if item is not _GONE]
            return kept if kept or not value else _GONE
        if isinstance(value, Mapping):
            parts = {
                str(key): self.value(item, f"{arg}.{key}", f"{name}.{key}") for key, item in value.items()
            }
            named = {key: item for key, item in parts.items() if item is not _GONE}
            return named if named or not value else _GONE
        if is_dataclass(value) and not isinstance(value, type | Passage):
            return self._object(value, arg, name)
        if (parameter := parameter_of(value)) is not None:
            self.read.set_by[name] = parameter
        return plain(value)

    def _object(self, value: Any, arg: str, name: str) -> Any:
        made = self.trace.made(value)
        if made is not None:
            self.links.append(Link(arg, made, 1))
            return _GONE
        before = len(self.links)
        found = {
            one.name: self.value(getattr(value, one.name), f"{arg}.{one.name}", f"{name}.{one.name}")
            for one in fields(value)
        }
        return found if len(self.links) == before else _GONE


class TracedVector(np.ndarray[Any, np.dtype[Any]]):
    """A vector that knows the span it is from; what is computed of it does not."""

    origin: Origin | None

    def __array_finalize__(self, made_from: Any) -> None:
        self.origin = None
