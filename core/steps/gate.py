"""The step that tells questions with exact identifiers, which must match letter by letter, from others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from core.domain.outputs import Decision
from core.domain.program import table
from core.domain.types import Query, Ranking
from core.steps.base import StepBase
from core.steps.decisions import Decided
from core.steps.step import step

Kind = Literal["quoted", "uuid", "address", "path", "price", "date", "version", "name", "code", "number"]


@dataclass(frozen=True, slots=True)
class ExactTerm:
    """A piece of a question that only an exact match finds."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class ExactTermsDecision(Decided):
    """The exact terms of a question and what follows: search for its words, or for an imagined answer."""

    decision: Literal["hybrid", "hyde"]
    terms: tuple[ExactTerm, ...]

    FIRES = (("hyde", "hybrid"),)


# 24h, 30-day, 60x40, FY25
_QUANTITY = re.compile(r"\d+-?[A-Za-z]+(?:-[A-Za-z]+)*|(?!0[xX])\d+(?:[xX]\d+)+|FY\d+")
_STANDING_YEAR = re.compile(r"(?<![A-Za-z0-9])(?:19|20)\d\d(?![A-Za-z0-9])")


def exact_terms(text: str) -> tuple[ExactTerm, ...]:
    """Find the exact identifiers in `text`, in order and without overlap.

    Included: quoted strings, UUIDs, addresses (URL, e-mail, IP), paths and file names, prices with a
    currency, calendar days, versions, names from code (snake_case, three humps of CamelCase, camelCase,
    a.b.c, call()), codes of letters and digits (LP-4092, ZT411) and long or #numbers. Excluded, because such
    a question depends on its other words: quantities ("2 days", "24-hour", "60x40", round numbers), a year or
    month without a day ("in 2025", "March 2026"), brands of two humps ("DynamoDB"), single letters with a
    digit ("H3") unless the word code, error, form or status precedes.
    """
    taken = bytearray(len(text))  # 1: the letter belongs to a term
    found: dict[int, ExactTerm] = {}  # by where it begins
    for kind, pattern in _compiled():
        for match in pattern.finditer(text):
            start, end = match.span()
            if taken.find(1, start, end) >= 0:
                continue
            if kind != "code" or " " in match[0] or _is_code(match[0]):
                taken[start:end] = b"\1" * (end - start)
                found[start] = ExactTerm(kind, match[0].rstrip(".,;:!?"))
    return tuple(found[start] for start in sorted(found))


@cache
def _compiled() -> tuple[tuple[Kind, re.Pattern[str]], ...]:
    """Compile the patterns on first use, so that processes which only list routes do not wait for them."""
    rows = table(__file__)["identifiers"]
    return tuple((row["kind"], re.compile(pattern)) for row in rows for pattern in row["patterns"])


def _is_code(token: str) -> bool:
    """Letters with digits that name a thing: capitals with two digits (three after a single letter), or any
    letters with three. A year between hyphens is no digit of it ("mid-2025").
    """
    if _QUANTITY.fullmatch(token):
        return False
    bare = _STANDING_YEAR.sub("", token)
    digits = sum(char.isdigit() for char in bare)
    letters = [char for char in bare if char.isalpha()]
    if len(letters) > 1 and all(char.isupper() for char in letters):
        return digits >= 2
    return bool(letters) and digits >= 3


Transformation = Literal["none", "rewrite", "decompose", "hyde", "variants"]
_SEVERAL = re.compile(
    r"\b(?:compared?|versus|vs\.?|difference between|differ|both|as well as)\b"
    r"|\band (?:how|what|when|where|which|who|why|does|do|is|are|can)\b|\?.+\?",
    re.IGNORECASE | re.DOTALL,
)
STRANGE = 0.45  # best cosine below which the corpus seems to speak of it in other words


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of a question: the transformation to apply and the reason."""

    transformation: Transformation  # how to rewrite the question
    reason: str  # one sentence for readers
    nearest: float | None  # cosine of the nearest passage

    def recorded(self) -> Decision:
        """Return the output stored on the span."""
        return Decision(
            self.transformation, get_args(Transformation), self.reason, details={"nearest": self.nearest}
        )


def choose(query: Query, nearest: float | None, strange: float) -> Analysis:
    """Apply the first matching rule: an earlier conversation, exact identifiers, several things asked, a
    corpus with no near passage. Otherwise rephrase the question.
    """
    if query.history:
        return Analysis("rewrite", "there is a conversation before it", nearest)
    if terms := exact_terms(query.text):
        named = ", ".join(repr(term.text) for term in terms[:3])
        return Analysis("none", f"it has exact identifiers: {named}", nearest)
    if found := _SEVERAL.search(query.text):
        return Analysis("decompose", f"it asks several things: {found[0].strip()!r}", nearest)
    if nearest is not None and nearest < strange:
        far = f"the nearest passage has cosine {nearest:.2f}, below {strange:g}"
        return Analysis("hyde", f"{far}: other words may be used there", nearest)
    return Analysis("variants", "nothing else stands out: other wordings may find more", nearest)


class Gatekeeper(StepBase):
    """Deciding by the look of the question alone."""

    @step("CHAIN", "look for exact terms", returns=ExactTermsDecision)
    def gate(self, text: str) -> ExactTermsDecision:
        """See `exact_terms`; a question with any of them goes to hybrid search, each other to HyDE: a model
        that imagines an answer makes up other numbers than the ones asked for.
        """
        if terms := exact_terms(text):
            named = ", ".join(repr(term.text) for term in terms[:3])
            return ExactTermsDecision("hybrid", f"it has exact identifiers: {named}", terms)
        why = "it has no exact identifier: a hypothetical answer may be nearer"
        return ExactTermsDecision("hyde", why, terms)

    @step("CHAIN", "analyse the question", returns=Analysis)
    def analyse(self, query: Query, dense: Ranking, strange: float) -> Analysis:
        """See `choose`; `dense` is what the question as it stands is near to."""
        return choose(query, dense[0].score if dense else None, strange)
