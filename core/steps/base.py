"""What every step shares: a span, work shared between routes, limits, and calls to the model."""

from __future__ import annotations

import functools
import hashlib
import inspect
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np

from core.backends.base import LLM, Completion, Embedder, LLMRequest, WebSearch
from core.backends.llm.text import looks_refused
from core.errors import BudgetSpent, Cancelled, DeadlinePassed, ModelFailed, ModelTimedOut, Stopped
from core.steps.prompts import FIRMER, Prompt
from core.trace import OpenSpan, Trace
from core.types import Hit, Reuse, Span, SpanKind, Tokens

if TYPE_CHECKING:
    from core.corpus.index import Corpus

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="StepBase")


@dataclass(slots=True)
class Work:
    """One distinct step of a run: done once, by whichever route comes first."""

    done: threading.Event = field(default_factory=threading.Event)
    result: Any = None
    error: BaseException | None = None
    span: Span | None = None
    owner: str = ""
    calls: int = 0
    tokens: Tokens | None = None
    cached: Reuse | None = None


class Memo:
    """The steps of one run by content; a route that asks for a step under way waits for it."""

    def __init__(self) -> None:
        self._work: dict[str, Work] = {}
        self._lock = threading.Lock()

    def claim(self, key: str) -> tuple[Work, bool]:
        """The step's work and whether the caller is to do it."""
        with self._lock:
            if key in self._work:
                return self._work[key], False
            self._work[key] = Work()
            return self._work[key], True

    def drop(self, key: str) -> None:
        """Forget a step that its route was stopped in, so that another route may do it."""
        with self._lock:
            self._work.pop(key, None)


@dataclass(slots=True)
class Context:
    """All a route's steps may touch, and its limits: seconds, model calls and model tokens."""

    corpus: Corpus
    embedder: Embedder
    llm: LLM
    web: WebSearch | None
    trace: Trace
    memo: Memo
    cancel: threading.Event
    deadline: float  # time.perf_counter() at which the route must end
    llm_timeout_s: float
    max_calls: int
    max_tokens: int
    write_answer: bool = False
    calls: int = 0
    tokens: int = 0
    used: set[str] = field(default_factory=set)  # steps this route has already had, hence already paid for
    lock: threading.Lock = field(default_factory=threading.Lock)

    def left(self) -> float:
        """Seconds left; raises Cancelled or DeadlinePassed."""
        if self.cancel.is_set():
            raise Cancelled("stopped by the user")
        left = self.deadline - time.perf_counter()
        if left <= 0:
            raise DeadlinePassed("the route's time is up")
        return left

    def spend(self, calls: int, tokens: int) -> None:
        """Count model use, also of work another route did: a budget must not depend on who ran first."""
        with self.lock:
            self.calls += calls
            self.tokens += tokens

    def check_budget(self) -> None:
        """Raises BudgetSpent when no further model call is allowed."""
        with self.lock:
            if self.calls >= self.max_calls:
                raise BudgetSpent(f"the route's budget of {self.max_calls} model calls is spent")
            if self.tokens >= self.max_tokens:
                raise BudgetSpent(f"the route's budget of {self.max_tokens} model tokens is spent")


class StepBase:
    """The context and the helpers that step methods use."""

    def __init__(self, context: Context) -> None:
        self.context = context

    @property
    def span(self) -> OpenSpan:
        """The span of the step under way, for what its result alone does not tell."""
        return self.context.trace.current()

    def parallel(self, *calls: Callable[[], R]) -> list[R]:
        """Run several steps at once; the route's clock counts the slowest."""
        return self.context.trace.parallel(calls)

    def _ask(
        self,
        prompt: Prompt,
        *,
        max_tokens: int,
        temperature: float = 0.0,
        seed: int = 0,
        top_logprobs: int = 0,
        unusable: Callable[[str], str | None] = lambda _: None,
        **values: str,
    ) -> Completion:
        """One model answer; a refusal or an unusable text is tried once more, more firmly, as a span of its
        own.

        `unusable` tells what is wrong with a text, or None. A second refusal raises ModelFailed; a second
        unusable text is returned, for the step to say what it made of it.
        """
        messages = prompt.fill(values)
        for attempt, name in enumerate((prompt.name, f"{prompt.name}/firmer")):
            request = LLMRequest(name, messages, max_tokens, temperature, seed, top_logprobs)
            completion = self._complete(request)
            wrong = "the model refused" if looks_refused(completion.text) else unusable(completion.text)
            if wrong is None:
                return completion
            if attempt == 0:
                messages = prompt.fill(values, firmer=FIRMER.format(wrong=wrong))
        if looks_refused(completion.text):
            raise ModelFailed(f"the model refused twice: {completion.text[:120]!r}")
        return completion

    def _complete(self, request: LLMRequest) -> Completion:
        context = self.context
        context.check_budget()
        timeout = min(context.llm_timeout_s, context.left())
        shown = "\n\n".join(f"{message.role}: {message.content}" for message in request.messages)
        with context.trace.span(
            f"ask {context.llm.model}",
            "LLM",
            text=shown,
            prompt=request.prompt,
            max_tokens=request.max_tokens,
        ) as span:
            span.calls = 1
            context.spend(1, 0)
            try:
                answer = context.llm.complete(request, timeout=timeout, cancel=context.cancel)
            except ModelTimedOut:
                context.left()  # the route's own time may be what was up
                raise
            span.output = answer.text
            span.tokens = Tokens(answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens)
            if answer.source != "live":
                span.cached = answer.source
                span.original_ms = answer.ms
                span.inputs["made"] = answer.created
            if answer.finish == "length" and request.max_tokens > 1:
                span.inputs["finish"] = "cut at max_tokens"
        context.spend(0, answer.prompt_tokens + answer.completion_tokens)
        return answer


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
                work, mine = context.memo.claim(key)
                if mine:
                    return _do(
                        context, work, key, (name, kind, shown(given)), lambda: method(self, *args, **kwargs)
                    )
                while not work.done.wait(0.05):
                    context.left()
                if not isinstance(work.error, Stopped):
                    reused: R = _reuse(context, work, key, (name, kind, shown(given)))
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


def _reuse(context: Context, work: Work, key: str, head: Head) -> Any:
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


def digest(value: Any) -> str:
    """A content hash of a step's name and arguments (text, numbers, vectors, rankings, tuples and dicts of
    them).
    """
    sha = hashlib.sha256()

    def feed(item: Any) -> None:
        if isinstance(item, np.ndarray):
            sha.update(item.tobytes())
        elif isinstance(item, Hit):
            feed([item.passage.id, item.score])
        elif is_dataclass(item) and not isinstance(item, type):
            feed([getattr(item, f.name) for f in fields(item)])
        elif isinstance(item, dict):
            feed([[key, item[key]] for key in sorted(item)])
        elif isinstance(item, Sequence) and not isinstance(item, str):
            sha.update(b"(")
            for part in item:
                feed(part)
            sha.update(b")")
        else:
            sha.update(repr(item).encode("utf-8", "surrogatepass") + b"\0")

    feed(value)
    return sha.hexdigest()


def add_tokens(parts: Sequence[Tokens | None]) -> Tokens | None:
    """The sum, or None where there is nothing to add."""
    known = [part for part in parts if part]
    if not known:
        return None
    return Tokens(
        sum(t.prompt for t in known), sum(t.completion for t in known), sum(t.cached for t in known)
    )
