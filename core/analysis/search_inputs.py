"""The inputs of a search as the trace records them: texts, or a vector and its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.domain.outputs import Embedding, SampleSearches, Search
from core.domain.types import RouteResult, Span

VECTORS = ("vector", "asked")  # arguments that take a vector, or one for each token
LONGEST = 70  # characters of a text that a sentence quotes


@dataclass(frozen=True, slots=True)
class Asked:
    """`texts`, or the vector that `maker` made of them; no text: the route made the vector itself."""

    texts: tuple[str, ...] = ()
    maker: Span | None = None

    @property
    def text(self) -> str | None:
        """The text, where it was one text and nothing else."""
        made = self._made
        return made.single if made is not None else self.texts[0] if len(self.texts) == 1 else None

    @property
    def every(self) -> tuple[str, ...]:
        """All texts that are in it, the question too where that was averaged in."""
        made = self._made
        own = (made.question,) if made is not None and made.question is not None else ()
        return tuple(dict.fromkeys((*self.texts, *own)))

    @property
    def words(self) -> str:
        """The same as a sentence says it."""
        made = self._made
        if not self.texts:
            return "a vector made by the route's own code"
        several = len(self.texts) > 1 or (made is not None and made.question is not None)
        question = " and the question" if made is not None and made.question is not None else ""
        turns = " and recalled turns" if made is not None and made.recalled else ""
        if made is not None and made.feedback:
            turns = f" moved towards the first {len(made.feedback)} passages"
        if several and made is not None:
            return f"the mean of {len(self.texts)} text{'s' * (len(self.texts) > 1)}{question}{turns}"
        return f"{len(self.texts)} texts" if several else f"“{_cut(self.texts[0])}”{turns}"

    @property
    def _made(self) -> Embedding | None:
        output = self.maker.output if self.maker is not None else None
        return output if isinstance(output, Embedding) else None


def asked(result: RouteResult) -> dict[int, Asked]:
    """Return the text of each search, by span."""
    known = {span.id: span for span in result.spans}
    found = ((span.id, _asked(span, known)) for span in result.spans)
    return {id: one for id, one in found if one is not None}


def _asked(span: Span, known: Mapping[int, Span]) -> Asked | None:
    if not isinstance(span.output, Search | SampleSearches):
        return None
    if span.output.texts:
        return Asked(span.output.texts)
    link = next((link for link in span.links if link.arg in VECTORS), None)
    if link is None:
        return None
    maker = known.get(link.span) if link.span is not None else None
    return Asked(maker.output.texts, maker) if maker and isinstance(maker.output, Embedding) else Asked()


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1].rstrip()}…"
