"""Steps that compress what was found to the sentences that matter for the question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.backends.prompting.prompts import SENTENCES
from core.backends.prompting.untrusted import between
from core.domain.errors import ModelFailed
from core.domain.outputs import Excerpts, Selection, Sentence, SentenceFilter
from core.domain.types import Passage, Ranking
from core.steps.refine import Refine, cut, recompose
from core.steps.step import step

_TOKEN = re.compile(r"\w+|[^\w\s]")
_NUMBERS = re.compile(r"\d{1,3}(\s*,\s*\d{1,3})*")


@dataclass(frozen=True, slots=True)
class Choice:
    """The strips of a passage that a model chose, numbered from 1; None, and why, if none was usable."""

    id: str
    numbers: tuple[int, ...] | None
    why: str = ""


class Compress(Refine):
    """Contextual compression: far passages out, then sentences that do not matter."""

    @step("EVALUATOR", "drop passages far from the question")
    def near(self, text: str, hits: Ranking, floor: float) -> Ranking:
        """The hits whose embedding's cosine with `text` is at least `floor`, in their old order.

        The span tells each one's cosine.
        """
        cosines = (self.vectors_of(hits) * self.embed(text)).sum(axis=1)
        known = {hit.passage.id: float(cosine) for hit, cosine in zip(hits, cosines, strict=True)}
        self.span.output = Selection("floor", cosines=known, floor=float(floor))
        kept = tuple(hits[at] for at in np.flatnonzero(cosines >= floor))
        if len(kept) == len(hits):
            self.span.attributes["note"] = "every passage reaches the threshold; none is dropped"
        return kept

    @step("EVALUATOR", "ask for the sentences that help")
    def helpful(self, text: str, hits: Ranking) -> tuple[Sentence, ...]:
        """The hits' strips, kept where the model says that they help to answer `text`; a passage at a time.

        A passage whose reply was unusable or failed stays whole, and the span says so ("kept whole"); if all
        calls fail the step fails.
        Source: extractive compression as in Xu, Shi & Choi 2023, "RECOMP", arXiv:2310.04408, section 3; there
        a trained encoder chooses.
        """
        strips: list[Sentence] = []
        whole: dict[str, str] = {}
        failed = 0
        for hit in hits:
            try:
                choice = self.choose(text, hit.passage)
            except ModelFailed as error:
                choice, failed = Choice(hit.passage.id, None, str(error)), failed + 1
            if choice.numbers is None:
                whole[choice.id] = choice.why
            strips += (
                Sentence(choice.id, piece, None, choice.numbers is None or number in choice.numbers)
                for number, piece in enumerate(cut(hit.passage.text), 1)
            )
        if hits and failed == len(hits):
            raise ModelFailed(f"none of {failed} passages could be compressed: {whole[hits[0].passage.id]}")
        if whole:
            self.span.attributes["kept whole"] = whole
        self.span.output = SentenceFilter(tuple(strips))
        return tuple(strips)

    @step("LLM", "choose sentences")
    def choose(self, text: str, passage: Passage) -> Choice:
        """Which strips of `passage` the model says help to answer `text`."""
        pieces = [" ".join(piece.split()) for piece in cut(passage.text)]
        wanted = f"numbers from 1 to {len(pieces)} separated by commas, or none"

        def unusable(reply: str) -> str | None:
            return f"it was not {wanted}" if numbers(reply, len(pieces)) is None else None

        listed = "\n".join(f"{number}. {piece}" for number, piece in enumerate(pieces, 1))
        reply = self._ask(
            SENTENCES,
            max_tokens=4 * len(pieces) + 8,
            unusable=unusable,
            question=text,
            sentences=between(1, "", listed),
        ).text
        chosen = numbers(reply, len(pieces))
        return Choice(passage.id, chosen, "" if chosen is not None else f"not {wanted}: {reply[:80]!r}")

    @step("CHAIN", "write the excerpts")
    def excerpts(self, hits: Ranking, strips: tuple[Sentence, ...]) -> dict[str, str]:
        """The kept strips by passage, and what that saved of `hits`; a passage with none kept is left out.

        With nothing kept at all the passages stay whole: to answer from nothing is no compression.
        """
        kept = recompose(strips)
        if hits and not kept:
            kept = {hit.passage.id: hit.passage.text for hit in hits}
            self.span.attributes["note"] = "no sentence passed the filter, so the passages stay whole"
        before = sum(tokens(hit.passage.text) for hit in hits)
        after = sum(map(tokens, kept.values()))
        self.span.attributes["counted"] = "words and punctuation marks"
        self.span.output = Excerpts(kept, before, after)
        return kept

    @step("CHAIN", "take the passages with excerpts")
    def with_excerpts(self, hits: Ranking, excerpts: Mapping[str, str]) -> Ranking:
        """Those of `hits` of which something was kept, in their old order."""
        self.span.output = Selection("named", why="those of which something was kept")
        return tuple(hit for hit in hits if hit.passage.id in excerpts)


def tokens(text: str) -> int:
    """The number of words and punctuation marks: a count that needs no model's tokenizer."""
    return len(_TOKEN.findall(text))


def numbers(reply: str, count: int) -> tuple[int, ...] | None:
    """The numbers of a reply such as "1, 3", ascending, or () for "none"; None for anything else.

    Each has to be from 1 to `count`. White space around and one full stop at the end are allowed.
    """
    said = reply.strip().removesuffix(".").strip()
    if said.lower() == "none":
        return ()
    if not said.isascii() or _NUMBERS.fullmatch(said) is None:
        return None
    found = sorted({int(number) for number in said.split(",")})
    return tuple(found) if found[0] >= 1 and found[-1] <= count else None
