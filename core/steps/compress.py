"""Steps that compress what was found to the sentences that matter for the question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.backends.base import Vector
from core.backends.prompting.prompts import SENTENCES
from core.backends.prompting.untrusted import between
from core.corpus.sections import sentences
from core.domain.errors import ModelFailed
from core.domain.outputs import Excerpts, Merged, Merging, Selection, Sentence, SentenceFilter
from core.domain.types import Passage, Ranking
from core.steps.refine import Refine, cut, recompose
from core.steps.step import step

_TOKEN = re.compile(r"\w+|[^\w\s]")
_NUMBERS = re.compile(r"\d{1,3}(\s*,\s*\d{1,3})*")


@dataclass(frozen=True, slots=True)
class StripChoice:
    """The strips of a passage that a model chose, numbered from 1; None, and why, if none was usable."""

    id: str
    numbers: tuple[int, ...] | None
    why: str = ""


def tokens(text: str) -> int:
    """Count the words and punctuation marks, which needs no model's tokenizer."""
    return len(_TOKEN.findall(text))


def numbers(reply: str, count: int) -> tuple[int, ...] | None:
    """Parse a reply such as "1, 3" into ascending numbers, or () for "none". Return None for anything else.

    Each number must be from 1 to `count`. Surrounding white space and one final full stop are allowed.
    """
    said = reply.strip().removesuffix(".").strip()
    if said.lower() == "none":
        return ()
    if not said.isascii() or _NUMBERS.fullmatch(said) is None:
        return None
    found = sorted({int(number) for number in said.split(",")})
    return tuple(found) if found[0] >= 1 and found[-1] <= count else None


REACH = 2_000  # characters before and behind a passage in which neighbouring sentences are looked for


class Compress(Refine):
    """Contextual compression: far passages out, then sentences that do not matter."""

    @step("EVALUATOR", "drop passages far from the question", returns=Ranking)
    def near(self, text: str, hits: Ranking, floor: float) -> Ranking:
        """Keep the hits whose cosine with `text` is at least `floor`, in their order.

        The span records each cosine.
        """
        cosines = (self.vectors_of(hits) * self.embed(text)).sum(axis=1)
        known = {hit.passage.id: float(cosine) for hit, cosine in zip(hits, cosines, strict=True)}
        self.span.output = Selection("floor", cosines=known, floor=float(floor))
        kept = tuple(hits[at] for at in np.flatnonzero(cosines >= floor))
        if len(kept) == len(hits):
            self.span.attributes["note"] = "every passage reaches the threshold; none is dropped"
        return kept

    @step("EVALUATOR", "ask for the sentences that help", returns=tuple[Sentence, ...])
    def helpful(self, text: str, hits: Ranking) -> tuple[Sentence, ...]:
        """Split the hits into strips, and keep the strips that the model considers helpful to answer `text`,
        one passage per call.

        A passage whose reply failed or was unusable stays whole, which the span records ("kept whole"). If
        all calls fail, raises ModelFailed. Source: extractive compression as in Xu, Shi & Choi 2023,
        "RECOMP", arXiv:2310.04408, section 3; there a trained encoder chooses.
        """
        strips: list[Sentence] = []
        whole: dict[str, str] = {}
        failed = 0
        for hit in hits:
            try:
                choice = self.choose(text, hit.passage)
            except ModelFailed as error:
                choice, failed = StripChoice(hit.passage.id, None, str(error)), failed + 1
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

    @step("LLM", "choose sentences", returns=StripChoice)
    def choose(self, text: str, passage: Passage) -> StripChoice:
        """Ask the model which strips of `passage` help to answer `text`."""
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
        return StripChoice(passage.id, chosen, "" if chosen is not None else f"not {wanted}: {reply[:80]!r}")

    @step("CHAIN", "write the excerpts", returns=dict[str, str])
    def excerpts(self, hits: Ranking, strips: tuple[Sentence, ...]) -> dict[str, str]:
        """Join the kept strips by passage and record the size saved. Passages without a kept strip are left
        out.

        If no strip is kept, the passages stay whole.
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

    @step("CHAIN", "take the passages with excerpts", returns=Ranking)
    def with_excerpts(self, hits: Ranking, excerpts: Mapping[str, str]) -> Ranking:
        """Those of `hits` of which something was kept, in their old order."""
        self.span.output = Selection("named", why="those of which something was kept")
        return tuple(hit for hit in hits if hit.passage.id in excerpts)

    @step("CHAIN", "take the sentences around", returns=dict[str, str])
    def sentences_around(self, hits: Ranking, vector: Vector, window: int) -> dict[str, str]:
        """By passage, its sentence nearest to `vector` with `window` sentences on each side of it, also those
        of the passages before and behind.

        Source: LlamaIndex 2023, SentenceWindowNodeParser and MetadataReplacementPostProcessor.
        """
        index, corpus = self._index("sentences"), self.context.corpus
        found = {}
        for hit in hits:
            known = index.scored(vector, corpus.row(hit.passage.id))
            nearest = max(known, key=lambda one: one[1])[0]
            found[hit.passage.id] = self._around(hit.passage, nearest, window)
        before = sum(tokens(hit.passage.text) for hit in hits)
        self.span.output = Excerpts(found, before, sum(map(tokens, found.values())))
        return found

    def _around(self, passage: Passage, sentence: str, window: int) -> str:
        """Return the text from the first to the last sentence of the window."""
        parts: dict[tuple[int, int], str] = {}  # by place in the document, as passages may overlap
        near = self.context.corpus.spanning(passage.doc_id, passage.start - REACH, passage.end + REACH)
        for one in near:
            for a, b in sentences(one.text, 0, len(one.text)):
                parts[one.start + a, one.start + b] = one.text[a:b]
        places = sorted(parts)
        at = next(
            at for at, place in enumerate(places) if place[0] >= passage.start and parts[place] == sentence
        )
        return " ".join(parts[place] for place in places[max(0, at - window) : at + window + 1])

    @step("CHAIN", "merge pieces into their passages", returns=Merging)
    def merge_pieces(self, hits: Ranking, vector: Vector, pieces: int, share: float) -> Merging:
        """Choose the text read for each of `hits`: the whole passage if more than `share` of its pieces are
        among the `pieces` nearest to `vector`, else those pieces; at least the nearest one of each passage.

        Source: LlamaIndex 2023, AutoMergingRetriever, with one level of parents.
        """
        index, corpus = self._index("children"), self.context.corpus
        near = index.nearest(vector, pieces)
        found = []
        for hit in hits:
            row = corpus.row(hit.passage.id)
            known = index.scored(vector, row)
            at = near.get(row) or [max(range(len(known)), key=lambda place: known[place][1])]
            merged = len(at) > share * len(known)
            text = "" if merged else " … ".join(known[place][0] for place in sorted(at))
            found.append(Merged(hit.passage.id, len(at), len(known), text))
        return Merging(tuple(found), share)
