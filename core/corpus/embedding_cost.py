"""The cost and duration of embedding texts by a service, estimated before it starts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from core.backends.hosted_embedder import HostedEmbedder, about_tokens
from core.domain.errors import NotConfirmed
from core.domain.settings import Settings

LEAST_S = 0.2  # of a request with many texts
SLOWER = 2.0  # such a request than one with a word
UNPRICED = 1_000_000  # tokens above which a service without a price is asked about first


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of an embedding job."""

    embedder: str
    texts: int
    tokens: int
    cost: float | None  # None without a price
    seconds: float  # extrapolated from one request
    elsewhere: bool  # whether the service may ask money: it is not on this machine

    def __str__(self) -> str:
        """As one sentence."""
        cost = "price unknown" if self.cost is None else f"cost about {self.cost:.2f}"
        long = f"about {math.ceil(self.seconds / 60)} minutes"
        about = f"embedding {self.texts:,} texts (about {self.tokens:,} tokens) with {self.embedder}"
        return f"{about}: {cost}, {'less than a minute' if self.seconds < 60 else long}"

    def above(self, settings: Settings) -> str:
        """Return the limit of the settings that the estimate exceeds, or ""."""
        if self.cost is not None and self.cost > settings.embed_limit_cost:
            return f"above embed_limit_cost ({settings.embed_limit_cost:g})"
        if self.cost is None and self.elsewhere and self.tokens > UNPRICED:
            return f"more than {UNPRICED:,} tokens without a price ([embedders.{self.embedder}] price)"
        if self.seconds > 60 * settings.embed_limit_minutes:
            return f"above embed_limit_minutes ({settings.embed_limit_minutes:g})"
        return ""


Begin = Callable[[Estimate], None]


def estimate(embedder: HostedEmbedder, tokens: int, texts: int) -> Estimate:
    """Estimate the cost and duration of embedding `texts` texts with `tokens` tokens in all."""
    from urllib.parse import urlsplit

    spec = embedder.spec
    requests = max(math.ceil(texts / spec.texts_at_once), math.ceil(tokens / spec.tokens_at_once))
    one = max(LEAST_S, SLOWER * embedder.probe_ms / 1000)
    cost = None if spec.price is None else tokens * spec.price / 1e6
    here = urlsplit(spec.url).hostname in ("localhost", "127.0.0.1", "::1")
    return Estimate(embedder.name, texts, tokens, cost, one * requests / spec.requests_at_once, not here)


def gate(settings: Settings, *, confirmed: bool, told: Begin = lambda _: None, always: bool = False) -> Begin:
    """Make the function that hears an estimate before anything is embedded: it raises NotConfirmed above a
    limit of the settings, or `always`, unless it was `confirmed`.
    """

    def begin(found: Estimate) -> None:
        told(found)
        above = found.above(settings)
        if above and not confirmed:
            raise NotConfirmed(f"{found}; this is {above}. Confirm it: --yes, or the button on the page")
        if always and not confirmed:
            raise NotConfirmed(str(found))

    return begin


__all__ = ["Begin", "Estimate", "about_tokens", "estimate", "gate"]
