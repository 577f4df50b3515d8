"""The share of labelled quotes that remain after passages were compressed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.steps.refine import cut


def survived(quotes: Sequence[str], kept: Iterable[str]) -> tuple[bool, ...]:
    """Return for each quote whether one of the `kept` texts still contains it.

    A text contains a quote if it has the whole quote or, of a quote of several sentences, its longest, as
    `cut` splits it. White space is ignored, case is not. An empty quote did not survive.
    """
    texts = [_plain(text) for text in kept]
    return tuple(
        any(part in text for part in {_plain(quote), best_sentence(quote)} - {""} for text in texts)
        for quote in quotes
    )


def best_sentence(quote: str) -> str:
    """Return the longest strip of a quote, the first of equally long ones; "" of an empty one."""
    return max(map(_plain, cut(quote)), key=len, default="")


def _plain(text: str) -> str:
    return " ".join(text.split())
