"""The share of prompts that an endpoint read from its cache."""

from __future__ import annotations

from dataclasses import dataclass

from core.domain.types import Run


@dataclass(frozen=True, slots=True)
class PromptCache:
    """Tokens of the prompts that were sent in a run, and those of them that the endpoint had read before."""

    prompt: int
    cached: int

    @property
    def rate(self) -> float:
        """Return the share served from the cache, 0 to 1."""
        return self.cached / self.prompt if self.prompt else 0.0


def prompt_cache(run: Run) -> PromptCache:
    """Count over the calls made in this run: what was shared, or answered before, was not sent."""
    sent = [
        span.tokens
        for result in run.results
        for span in result.spans
        if span.tokens is not None and not span.shared_with and not span.cached
    ]
    return PromptCache(sum(one.prompt for one in sent), sum(one.cached for one in sent))


def in_words(found: PromptCache) -> str:
    """Return one sentence, or "" if nothing was sent or the endpoint does not report its cache."""
    if not found.cached:
        return ""
    return (
        f"Prompt cache: {found.cached:,} of {found.prompt:,} prompt tokens ({found.rate:.0%}) were the"
        " beginning of an earlier prompt, so the model did not read them again."
    )
