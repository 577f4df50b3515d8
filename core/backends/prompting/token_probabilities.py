"""How likely a model's reply is each of a few words. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.backends.base import Completion

By = Literal["probabilities", "sampled word"]
DIGITS = ("1", "2", "3", "4", "5")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class TokenProbabilities:
    """The share of each word, together 1, and how they were had: a sampled word has the whole share."""

    of: Mapping[str, float]
    by: By

    def mean(self) -> float:
        """The expected value of odds over digits.

        Source: Liu et al. 2023, "G-Eval", arXiv:2303.16634, section 2 ("Scoring Function").
        """
        return sum(int(digit) * share for digit, share in self.of.items())


def odds(answer: Completion, words: Sequence[str]) -> TokenProbabilities | None:
    """The odds of `words` (lower case) at the reply's first token, or from its first word where the endpoint
    gave no probabilities; None if none of them is there.

    A token counts for the one word that begins with it: "Part" for "partially". What other tokens have is
    left out, so that the shares of `words` add up to 1.
    """
    if answer.logprobs:
        first = answer.logprobs[0]
        mass = dict.fromkeys(words, 0.0)
        for token, logprob in (dict(first.top) or {first.token: first.logprob}).items():
            if (word := _one_of(token, words)) is not None:
                mass[word] += math.exp(logprob)
        total = sum(mass.values())
        return (
            TokenProbabilities({word: share / total for word, share in mass.items()}, "probabilities")
            if total
            else None
        )
    word = _one_of(answer.text, words)
    if word is None:
        return None
    return TokenProbabilities({other: float(other == word) for other in words}, "sampled word")


def _one_of(text: str, words: Sequence[str]) -> str | None:
    """The one of `words` that begins with the first word of `text`; None if none does, or several do."""
    found = _WORD.search(text)
    fitting = [word for word in words if word.startswith(found[0].lower())] if found else []
    return fitting[0] if len(fitting) == 1 else None
