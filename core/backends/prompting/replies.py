"""Replies of several lines or in JSON, read as what they are. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from core.backends.base import Completion

Form = TypeVar("Form", bound=BaseModel)

_BULLET = re.compile(r"^\s*(?:[-*•]+|[(#]?\d{1,2}[.):])\s+")


def reply_lines(reply: str) -> tuple[str, ...]:
    """Return the non-empty lines without bullets, numbers and quotes, except headings ("Queries:")."""
    cleaned = (_BULLET.sub("", line).strip().strip('"') for line in reply.splitlines())
    return tuple(line for line in cleaned if line and not line.endswith(":"))


def first_line(reply: str) -> str:
    """Return the first non-empty line without quotes, or ""."""
    return next((line.strip().strip('"') for line in reply.splitlines() if line.strip()), "")


def strict_schema(form: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a form for strict structured outputs, by the helper of the openai package."""
    from openai.lib._pydantic import to_strict_json_schema

    return to_strict_json_schema(form)


def read_form(form: type[Form], reply: str) -> Form | str:
    """Parse a reply in JSON into `form`, or describe the first fault in a sentence for the model."""
    try:
        return form.model_validate_json(reply)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        return f"the JSON is wrong{f' at {where}' if where else ''}: {first['msg']}"


_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def literal(text: str) -> str:
    """`text` as a terminal of a grammar."""
    return '"' + "".join(_ESCAPED.get(char, char) for char in text) + '"'


def one_of(texts: Sequence[str]) -> str:
    """Return a grammar of exactly these texts, at least one."""
    return "root ::= " + " | ".join(map(literal, texts))


def questions(least: int, most: int, *, numbered: bool = False) -> str:
    """Return a grammar of `least` to `most` lines, each a question; `numbered` from 1."""
    lines = [f"{literal(f'{n}. ')} question" if numbered else "question" for n in range(1, most + 1)]
    newline = literal("\n")
    rest = ""
    for line in reversed(lines[least:]):
        rest = f" ({newline} {line}{rest})?"
    root = f" {newline} ".join(lines[:least])
    return f'root ::= {root}{rest}\nquestion ::= [A-Z] [^\\n?]{{4,200}} "?"'


By = Literal["probabilities", "sampled word"]
DIGITS = ("1", "2", "3", "4", "5")
_WORD = re.compile(r"[^\W_]+")
_LETTER = re.compile(r"(?i:passage|answer|option|letter|name|is|:)\s*[(\[]?([A-Z])\b|[(\[]([A-Z])[)\]]")


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
        shares = {word: share / total for word, share in mass.items()} if total else None
        return TokenProbabilities(shares, "probabilities") if shares else None
    word = read_verdict(answer.text, words)
    shares = {other: float(other == word) for other in words}
    return TokenProbabilities(shares, "sampled word") if word is not None else None


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
    if start in words and (not letters or (first["end"] or "").strip() or first.end() >= len(plain)):
        return start
    only = plain.strip(" .,!:;()[]\"'").lower()
    cut = [word for word in words if len(only) >= 3 and word.startswith(only)]  # ended at its limit
    if len(cut) == 1:
        return cut[0]
    if letters:
        found = _LETTER.findall(plain)
        named = {(one or other).lower() for one, other in found}
    else:
        named = {word for word in _WORD.findall(plain.lower()) if word in words}
    return next(iter(named)) if len(named) == 1 and named <= set(words) else None


def _one_of(text: str, words: Sequence[str]) -> str | None:
    """Return the one of `words` that begins with the first word of a token; None if none or several do."""
    found = _WORD.search(text)
    fitting = [word for word in words if word.startswith(found[0].lower())] if found else []
    return fitting[0] if len(fitting) == 1 else None
