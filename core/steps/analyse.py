"""The step that looks at a question and chooses how to transform it, by rules that can be read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from core.domain.outputs import Decision
from core.domain.types import Query, Ranking
from core.steps.base import StepBase
from core.steps.gate import exact_terms
from core.steps.step import step

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


class Analyse(StepBase):
    """Deciding on a transformation."""

    @step("CHAIN", "analyse the question", returns=Analysis)
    def analyse(self, query: Query, dense: Ranking, strange: float) -> Analysis:
        """See `choose`; `dense` is what the question as it stands is near to."""
        return choose(query, dense[0].score if dense else None, strange)
