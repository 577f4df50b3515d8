"""The base of all steps: the route's context with its limits, and calls to the model."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from core.backends.admission import Asker
from core.backends.base import LLM, Completion, Embedder, LLMRequest, Mask, WebSearch
from core.backends.cache_file import EmbeddingCache
from core.backends.calibrations import Decision, DecisionCalibration
from core.backends.evaluators import Evaluator, Which
from core.backends.llm.text import looks_refused
from core.backends.prompting.prompts import FIRMER, Prompt
from core.backends.prompting.replies import By, odds, one_of
from core.backends.prompting.untrusted import in_line, warnings
from core.backends.question_classifier import QuestionClassifier
from core.backends.rerankers import Rerankers
from core.domain.errors import BudgetSpent, Cancelled, DeadlinePassed, ModelFailed, ModelTimedOut, Unavailable
from core.domain.external import PipelineReply
from core.domain.filters import Filter
from core.domain.outputs import Reply
from core.domain.types import Answer, AnswerStyle, Query, Remembered, Tokens
from core.steps.decisions import Decided
from core.steps.memo import CallCharge, Memo, Work, under_way
from core.steps.trace import OpenSpan, Trace

if TYPE_CHECKING:
    from core.backends.fid import FusionInDecoder
    from core.corpus.index import Corpus
    from core.domain.needs import Need

_OPTIONS = [one.name for one in fields(LLMRequest) if one.name not in ("prompt", "messages")]
LETTERS = "abcde"  # of things that the model chooses from
SEEDS = 1000  # between the seeds of one draw and the next: more than the samples of any step
A = TypeVar("A")
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class ExternalReply:
    """An external pipeline's reply."""

    reply: PipelineReply
    ms: float  # duration of the call in milliseconds
    inside_ms: float | None = None  # the duration the pipeline itself reported, if it did
    made: str = ""  # timestamp of a stored reply, ISO 8601; "" for a live one


@dataclass(frozen=True, slots=True)
class ExternalCall:
    """A way to call an external pipeline."""

    door: str  # the kind of access, such as a function or an HTTP endpoint
    timeout_s: float  # deadline in seconds
    # called with (query, k, seconds, cancel)
    ask: Callable[[Query, int, float, threading.Event], ExternalReply]


@dataclass(frozen=True, slots=True)
class OtherRoute:
    """A route that a router may give the question to."""

    run: Callable[[Query, Any], Answer]  # with its default parameters, on the steps given
    why_not: Callable[[], str | None]  # why it cannot run here, or None


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
    prepared: Callable[[Need], Any]  # what was made for the corpus to meet a need, or Unavailable
    rerankers: Rerankers
    answering: AnswerStyle | None  # how the route's answer is to be written; None: not at all
    evidence: float  # P(Yes) that passages hold the answer, below which none is written from them
    reflection: Callable[[], LLM]  # the reflection-token model, or Unavailable
    memory: tuple[Remembered, ...]  # what was said before the question, oldest turn first
    turn_vectors: EmbeddingCache
    sentence_vectors: EmbeddingCache
    draw: int  # from 1 on every model call has another seed than it would have
    llm_name: str  # the table [models.NAME] of `llm`; "" for the default
    llm_context: int  # tokens of prompt and answer together
    fid: Callable[[], FusionInDecoder]  # loads the reader, or raises Unavailable
    evaluator: Callable[[Which], Evaluator]  # its thresholds and coefficients
    classifier: Callable[[], QuestionClassifier]  # of questions, for routers
    asker: Asker  # on whose behalf models are used
    other_route: Callable[[str], OtherRoute | None]  # by name, for routers
    calibration: Callable[[Decision], DecisionCalibration | None]  # for the model in use
    external: Callable[[str], ExternalCall]  # asks a pipeline that is not ours, by its name
    where: tuple[Filter, ...]  # what passages have to meet to be found
    forced: Mapping[str, str]  # by step: how its first decision is to fall
    found: Answer | None = None  # the route's ranking, once it stands
    calls: int = 0
    tokens: int = 0
    turned: set[str] = field(default_factory=set)  # steps whose decision was forced
    used: set[str] = field(default_factory=set)  # steps this route has already had, hence already paid for
    lock: threading.Lock = field(default_factory=threading.Lock)

    def left(self) -> float:
        """Seconds left, waits for others left out; raises Cancelled or DeadlinePassed."""
        if self.cancel.is_set():
            self.trace.cut_short()
            raise Cancelled("stopped by the user")
        left = self.deadline + self.asker.waited() - time.perf_counter()
        if left <= 0:
            self.trace.cut_short()
            raise DeadlinePassed("the route's time is up")
        return left

    @contextmanager
    def at_most(self, seconds: float) -> Iterator[float]:
        """Yield the seconds an operation may take: `seconds`, or the route's remaining time if that is less.

        If less than `seconds` remained and the operation fails, the failure ends this route only and is not
        shared with other routes.
        """
        left = self.left()
        try:
            yield min(seconds, left)
        except Exception:
            if left < seconds:
                self.trace.cut_short()
            raise

    def decided(self, step: str, outcome: Any) -> Any:
        """`outcome` of `step`, or the same decided otherwise where the step's first decision is forced."""
        if step not in self.forced or step in self.turned or not isinstance(outcome, Decided):
            return outcome
        self.turned.add(step)
        return outcome.turned(self.forced[step])

    def take_call(self) -> CallCharge:
        """Count a model call; raises BudgetSpent when no further one is allowed. One look, as parallel calls
        would else all see the last one free.
        """
        with self.lock:
            spent = self._spent(self.calls, self.tokens)
            if not spent:
                self.calls += 1
        if spent:
            self.trace.cut_short()
            raise BudgetSpent(spent)
        charge = CallCharge()
        if (work := under_way()) is not None:
            work.charges.append(charge)
        return charge

    def spend(self, charge: CallCharge, tokens: int) -> None:
        """Count the tokens of a call."""
        with self.lock:
            charge.tokens += tokens
            self.tokens += tokens

    def affords(self, work: Work) -> bool:
        """Return True if the budget covers all calls of a shared step that this route has not paid for. If it
        does not, the route would end within the step if it ran alone.
        """
        with self.lock:
            calls, tokens = self.calls, self.tokens
            for charge in self._unpaid(work):
                if self._spent(calls, tokens):
                    return False
                calls, tokens = calls + 1, tokens + charge.tokens
        return True

    def pay(self, work: Work) -> None:
        """Count the calls of a step that another route did: a budget must not depend on who ran first."""
        with self.lock:
            unpaid = self._unpaid(work)
            self.calls += len(unpaid)
            self.tokens += sum(charge.tokens for charge in unpaid)
            self.used |= {work.key, *work.inner}

    def _unpaid(self, work: Work) -> list[CallCharge]:
        if work.key in self.used:
            return []
        return [charge for charge in work.charges if self.used.isdisjoint(charge.inside)]

    def _spent(self, calls: int, tokens: int) -> str:
        if calls >= self.max_calls:
            return f"the route's budget of {self.max_calls} model calls is spent"
        if tokens >= self.max_tokens:
            return f"the route's budget of {self.max_tokens} model tokens is spent"
        return ""


@dataclass(frozen=True, slots=True)
class YesOrNo:
    """A model's P(Yes), how it was had and whether it is enough; all None if the reply was neither."""

    share: float | None = None
    by: By | None = None
    enough: bool | None = None
    why: str = ""


NO_QUESTION = Query("")
LONG_PROMPT_CHARS = 6_000  # characters of a prompt from which its tokens tell whether all of it was read
MAX_CHARS_PER_TOKEN = 8  # characters a token that no language and no tokenizer reach: prose has about 4


def cut_prompt(request: LLMRequest, answer: Completion) -> str:
    """Say that the service seems to have read only a part of the prompt; "" if it does not seem so."""
    length = sum(len(message.content) for message in request.messages)
    if length < LONG_PROMPT_CHARS or not 0 < answer.prompt_tokens < length / MAX_CHARS_PER_TOKEN:
        return ""
    return (
        f"the service counted {answer.prompt_tokens:,} tokens in a prompt of {length:,} characters: it seems"
        " to have cut it; raise its context length (Ollama: num_ctx)"
    )


class StepBase:
    """The context and the helpers that step methods use."""

    def __init__(self, context: Context, query: Query = NO_QUESTION) -> None:
        self.context, self.query = context, query

    def asking(self, query: Query) -> Self:
        """Return these steps for another question."""
        return type(self)(self.context, query)

    @property
    def question(self) -> str:
        """The text of the question."""
        return self.query.text

    @property
    def span(self) -> OpenSpan:
        """The span of the step under way, for what its result alone does not tell."""
        return self.context.trace.current()

    def note(self, text: str) -> None:
        """Note on the span of the step under way what its result does not tell."""
        self.span.attributes["note"] = text

    def allowed(self) -> Mask | None:
        """Return the mask of corpus rows that may be retrieved, or None for all."""
        return self.context.corpus.allowed(self.context.where)

    @contextmanager
    def filtered(self, where: Sequence[Filter]) -> Iterator[None]:
        """Within it only passages are found that meet `where`, besides what holds already."""
        before = self.context.where
        self.context.where = tuple(dict.fromkeys((*before, *where)))
        try:
            yield
        finally:
            self.context.where = before

    def parallel(self, *calls: Callable[[], R]) -> list[R]:
        """Run several steps at once; the route's clock counts the slowest."""
        return self.context.trace.parallel(calls)

    def each(self, call: Callable[[A], R], items: Iterable[A]) -> tuple[R, ...]:
        """`parallel` with one call over several items; the results in their order."""
        return tuple(self.parallel(*(functools.partial(call, item) for item in items)))

    def afford(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Return the result of `call`, or None if the budget of model calls or tokens ran out during it.

        For loops, which keep their results so far; the step that was cut short shows the error.
        """
        try:
            return call(*args, **kwargs)
        except BudgetSpent:
            return None

    def _ask(
        self,
        prompt: Prompt,
        *,
        stream: bool = False,
        unusable: Callable[[str], str | None] = lambda _: None,
        **given: Any,
    ) -> Completion:
        """Ask the model; if it refuses or its text is unusable, ask once more with a firmer prompt. Each
        attempt is a span.

        `unusable` describes what is wrong with a text, or returns None. A second refusal raises ModelFailed;
        a second unusable text is returned, and the step reports how it read it. `given` are fields of
        `LLMRequest`, and the texts of the prompt; with `stream` the span shows the text while it is written.
        """
        options = {name: given.pop(name) for name in _OPTIONS if name in given}
        if flagged := warnings(given):
            self.span.attributes["instructions"] = flagged  # for people: it changes nothing
        messages = prompt.fill(given)
        for attempt, name in enumerate((prompt.name, f"{prompt.name}/firmer")):
            request = LLMRequest(name, messages, **options)
            completion = self._complete(request, stream=stream, attempt=attempt + 1)
            wrong = "the model refused" if looks_refused(completion.text) else unusable(completion.text)
            if wrong is None:
                return completion
            if attempt == 0:
                messages = prompt.fill(given, firmer=FIRMER.format(wrong=wrong))
        if looks_refused(completion.text):
            raise ModelFailed(f"the model refused twice: {completion.text[:120]!r}")
        return completion

    def _read(self, prompt: Prompt, read: Callable[[str], R | str], **given: Any) -> R | str:
        """Ask the model, again if `read` returns what is wrong as a text; return what `read` does."""

        def unusable(reply: str) -> str | None:
            found = read(reply)
            return found if isinstance(found, str) else None

        return read(self._ask(prompt, unusable=unusable, **given).text)

    def _choose(
        self, prompt: Prompt, options: Sequence[str], called: str, **given: Any
    ) -> tuple[Completion, tuple[float, ...] | None]:
        """Let the model choose one of `options` by its letter; the prompt lists them as `called`. Return the
        reply and the probability of each, or None if the reply is no letter.
        """
        letters = LETTERS[: len(options)]
        grammar = one_of([letter.upper() for letter in letters])
        listed = (f"{letter.upper()}. {in_line(one)}" for letter, one in zip(letters, options, strict=True))
        given |= {"max_tokens": 1, "top_logprobs": 20, "grammar": grammar, called: "\n".join(listed)}
        reply = self._ask(prompt, **given)
        found = odds(reply, tuple(letters))
        return reply, None if found is None else tuple(found.of[letter] for letter in letters)

    def _yes(self, prompt: Prompt, threshold: float = 0.0, **values: Any) -> YesOrNo:
        """Ask for Yes or No, and compare P(Yes) at the first token with `threshold`."""
        reply = self._ask(prompt, max_tokens=1, top_logprobs=10, reuse_prefix=True, **values)
        found = odds(reply, ("yes", "no"))
        if found is None:
            return YesOrNo(why=f"neither Yes nor No but {reply.text[:80]!r}")
        share = found.of["yes"]
        why = f"P(Yes) {share:.2f} is {'at least' if share >= threshold else 'below'} {threshold:g}"
        if found.by == "sampled word":
            why += "; from the word, as the endpoint gives no probabilities"
        return YesOrNo(share, found.by, share >= threshold, why)

    def _complete(
        self, request: LLMRequest, *, stream: bool = False, llm: LLM | None = None, attempt: int = 1
    ) -> Completion:
        """One call of the language model, or of `llm`, as a span of its own."""
        context = self.context
        llm = llm or context.llm
        request = replace(request, seed=request.seed + SEEDS * context.draw)
        charge = context.take_call()
        asked = {
            "text": "\n\n".join(f"{message.role}: {message.content}" for message in request.messages),
            "prompt": request.prompt,
            "max_tokens": request.max_tokens,
            "attempt": attempt,
        }
        with (
            context.at_most(context.llm_timeout_s) as timeout,
            context.trace.span(f"ask {llm.model}", "LLM", asked) as span,
        ):
            span.calls = 1
            written: Callable[[str], None] | None = None
            if stream:
                span.output = Reply("", llm.model, streaming=True)

                def written(text: str) -> None:
                    span.output = Reply(text, llm.model, streaming=True)

            try:
                answer = llm.complete(request, timeout=timeout, cancel=context.cancel, written=written)
            except Unavailable:
                span.calls = 0
                raise
            except ModelTimedOut:
                context.left()  # the route's own time may be what was up
                raise
            finally:
                if isinstance(span.output, Reply):
                    span.output = replace(span.output, streaming=False)
            cut = answer.finish == "length" and request.max_tokens > 1
            if said := cut_prompt(request, answer):
                span.attributes["caution"] = said
            made = "" if answer.source == "live" else answer.created
            span.output = Reply(answer.text, llm.model, made, cut=cut, reasoning=answer.reasoning)
            span.tokens = Tokens(
                answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens, answer.reasoning_tokens
            )
            if answer.source != "live":
                span.cached = answer.source
                span.original_ms = answer.ms
        # Reasoning has an allowance of its own: a route's budget is for prompts and answers.
        context.spend(charge, answer.prompt_tokens + answer.completion_tokens - answer.reasoning_tokens)
        return answer
