"""The probabilities of a few words as a model's reply. Pure."""

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
        """Return the expected value of odds over digits.

        Source: Liu et al. 2023, "G-Eval", arXiv:2303.16634, section 2 ("Scoring Function").
        """
        return sum(int(digit) * share for digit, share in self.of.items())


def odds(answer: Completion, words: Sequence[str]) -> TokenProbabilities | None:
    """Return the odds of `words` (lower case) at the first token, or from the reply's words without
    probabilities; None if none or several of them occur.

    A token counts for the one word that begins with it: "Part" for "partially". Other tokens are ignored, so
    that the shares of `words` sum to 1.
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
    word = read_verdict(answer.text, words)
    if word is None:
        return None
    return TokenProbabilities({other: float(other == word) for other in words}, "sampled word")


def read_verdict(text: str, words: Sequence[str]) -> str | None:
    """Return the one of `words` (lower case) that a reply gives as its verdict, or None if it is not clear.

    The reply is the word, or begins with it, or names one of them alone. A letter counts only by itself or in
    brackets, and after "passage", "answer", "option" or a colon: "A better passage is B" is B.
    """
    plain = re.sub(r"[*_`#>]+", " ", text).strip()
    first = re.match(r"\W*([^\W_]+)(?P<end>\s*$|[\s]*[.,:;!)\]\n]|\s)?", plain)
    if first is None:
        return None
    letters = all(len(word) == 1 and word.isalpha() for word in words)
    start = first[1].lower()
    if start in words and (
        not letters
        or ((first["end"] is not None and first["end"].strip() != "") or first.end() >= len(plain))
    ):
        return start
    only = plain.strip(" .,!:;()[]\"'").lower()
    cut = [word for word in words if len(only) >= 3 and word.startswith(only)]  # ended at its limit
    if len(cut) == 1:
        return cut[0]
    if letters:
        found = re.findall(
            r"(?i:passage|answer|option|letter|name|is|:)\s*[(\[]?([A-Z])\b|[(\[]([A-Z])[)\]]", plain
        )
        named = {(one or other).lower() for one, other in found}
    else:
        named = {word for word in re.findall(r"[^\W_]+", plain.lower()) if word in words}
    return next(iter(named)) if len(named) == 1 and named <= set(words) else None


def _one_of(text: str, words: Sequence[str]) -> str | None:
    """Return the one of `words` that begins with the first word of a token; None if none or several do."""
    found = _WORD.search(text)
    fitting = [word for word in words if word.startswith(found[0].lower())] if found else []
    return fitting[0] if len(fitting) == 1 else None
