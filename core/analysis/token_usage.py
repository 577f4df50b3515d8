"""A route's language model calls and tokens, and what they cost where prices are set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from core.domain.types import RouteResult, Run, Span, Tokens

MILLION = 1_000_000
PRICES = "prices"  # where a route of an evaluation has its model's prices of the day it was begun
Prices = tuple[float | None, float | None]  # of a million prompt and of a million completion tokens


@dataclass(frozen=True, slots=True)
class Totals:
    """Model use of one route as if it ran alone; `cached_prompt` of the prompt tokens came from the
    endpoint's prompt cache, and `reasoning` of the completion tokens were spent before the answers.

    Part of it was not spent in this run: `shared_calls` were made by another route of the run, `stored_calls`
    came from the cache of answers or a recording; `reused_...` are the tokens of both.
    """

    calls: int = 0
    prompt: int = 0
    completion: int = 0
    cached_prompt: int = 0
    reasoning: int = 0
    shared_calls: int = 0
    stored_calls: int = 0
    reused_prompt: int = 0
    reused_completion: int = 0
    reused_reasoning: int = 0

    @property
    def tokens(self) -> int:
        """Return the prompt and completion tokens together."""
        return self.prompt + self.completion

    @property
    def spent(self) -> Totals:
        """Return the model usage of this route in this run: the totals without reused calls."""
        prompt = self.prompt - self.reused_prompt
        return Totals(
            self.calls - self.shared_calls - self.stored_calls,
            prompt,
            self.completion - self.reused_completion,
            min(self.cached_prompt, prompt),  # which reused tokens were cached is unknown
            self.reasoning - self.reused_reasoning,
        )


def totals(result: RouteResult) -> Totals:
    """Add up a route's spans. A span's own figures cover everything below it, so that a step that reports the
    sum of its calls is not counted twice.
    """
    known = {span.id for span in result.spans}
    under: dict[int | None, Totals] = {}  # by the step they were done in; None is the route itself
    for span in reversed(result.spans):  # steps stand before what was done in them
        own = _of(span, under.pop(span.id, Totals()))
        at = span.parent if span.parent in known else None
        under[at] = add([under.get(at, Totals()), own])
    return add(under.values())


def add(parts: Iterable[Totals]) -> Totals:
    """Return the sum of several totals, field by field; of none, nothing."""
    given = list(parts)
    return Totals(*(sum(getattr(part, one.name) for part in given) for one in fields(Totals)))


def prices_in(stored: Mapping[str, Any]) -> Prices:
    """Return the prices stored with a route's figures; None each if none were set then."""
    known = stored.get(PRICES)
    return (known[0], known[1]) if isinstance(known, list) and len(known) == 2 else (None, None)


def price(
    totals: Totals, prompt_per_million: float | None, completion_per_million: float | None
) -> float | None:
    """Return the cost of the tokens, in the currency of the prices, or None if a price is not set.

    Cached prompt tokens count in full: what endpoints take off for them differs.
    """
    if prompt_per_million is None or completion_per_million is None:
        return None
    return (totals.prompt * prompt_per_million + totals.completion * completion_per_million) / MILLION


def _of(span: Span, under: Totals) -> Totals:
    if not span.calls and span.tokens is None:
        return under
    calls = max(span.calls, under.calls)
    # A span that reports only calls leaves their tokens to the spans below it.
    own = span.tokens or Tokens(under.prompt, under.completion, under.cached_prompt, under.reasoning)
    reused = (under.reused_prompt, under.reused_completion, under.reused_reasoning)
    shared, stored = under.shared_calls, under.stored_calls
    if span.shared_with or span.cached:
        shared, stored = (calls, 0) if span.shared_with else (0, calls)
        reused = own.prompt, own.completion, own.reasoning
    return Totals(calls, own.prompt, own.completion, own.cached, own.reasoning, shared, stored, *reused)


def prompt_cache(run: Run) -> str:
    """Return a sentence on the prompt tokens sent in a run that the endpoint had read before, or "" without
    any. Work that was shared, or answered before, was not sent.
    """
    sent = [
        span.tokens
        for result in run.results
        for span in result.spans
        if span.tokens is not None and not span.shared_with and not span.cached
    ]
    prompt, cached = sum(one.prompt for one in sent), sum(one.cached for one in sent)
    if not cached:
        return ""
    return (
        f"Prompt cache: {cached:,} of {prompt:,} prompt tokens ({cached / prompt:.0%}) were the beginning of"
        " an earlier prompt, so the model did not read them again."
    )
