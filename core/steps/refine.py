"""Steps that keep of the passages the sentences that matter for the question."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.backends.base import Vector
from core.backends.prompting.citations import sentences
from core.backends.prompting.prompts import SENTENCES
from core.backends.prompting.untrusted import between
from core.corpus.chunk import pieces
from core.corpus.chunk import sentences as sentence_spans
from core.corpus.enrichments.keys import KeyIndex
from core.domain.errors import ModelFailed, Unavailable
from core.domain.needs import Need
from core.domain.outputs import Excerpts, Merged, Merging, Selection, Sentence, SentenceFilter
from core.domain.text import searchable
from core.domain.types import Passage, Ranking
from core.steps.retrieve import Retrieve
from core.steps.step import step

Piece = tuple[str, str, float]  # passage id, text, cosine with the question
STRIP = (60, 220)  # characters: about one or two sentences, as the paper's strips


def keep(scored: Sequence[tuple[str, float]], floor: float) -> tuple[bool, ...]:
    """Of each strip, given as (passage id, score), whether it is kept: from `floor` on, and each best one."""
    best: dict[str, float] = {}
    for id, score in scored:
        best[id] = max(best.get(id, -math.inf), score)
    return tuple(score >= floor or score == best[id] for id, score in scored)


def cut(text: str) -> list[str]:
    """Split a text into strips in order: one or two sentences, or rows of a table."""
    return [text[start:end] for start, end in pieces(text, STRIP)]


def headed(text: str) -> list[tuple[str, str]]:
    """Split a text into sentences, each with its Markdown heading; table rows and list items count as
    sentences.
    """
    found: list[tuple[str, str]] = []
    heading = ""
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.strip("# \t")
        else:
            found += [(heading, sentence) for sentence in sentences(line)]
    return found


def recompose(strips: tuple[Sentence, ...]) -> dict[str, str]:
    """Join the kept strips of each passage in their order, with each heading once before its strips."""
    kept: dict[str, list[str]] = {}
    said: dict[str, str] = {}
    for strip in strips:
        if strip.kept:
            if strip.heading and said.get(strip.id) != strip.heading:
                kept.setdefault(strip.id, []).append(f"{strip.heading}:")
            said[strip.id] = strip.heading
            kept.setdefault(strip.id, []).append(strip.text)
    return {id: " ".join(texts) for id, texts in kept.items()}


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


class Refine(Retrieve):
    """Splitting passages into pieces, filtering these, and joining what is kept."""

    @step("EVALUATOR", "keep the sentences that matter", returns=tuple[Sentence, ...])
    def whole_sentences(self, text: str, hits: Ranking, floor: float) -> tuple[Sentence, ...]:
        """Cut passages into whole sentences and keep those whose cosine with the question is at least
        `floor`, and each passage's best.

        A sentence is compared with its passage's title and the heading above it, as one alone often does not
        say what it is about.
        Source: Yan et al. 2024, arXiv:2401.15884, section 4.4; there a trained evaluator scores strips of a
        few sentences, here the embedder scores single ones.
        """
        found = [(hit, *one) for hit in hits for one in headed(hit.passage.text)]
        if not found:
            self.span.output = SentenceFilter((), float(floor))
            return ()
        texts = [
            searchable(" ".join(filter(None, (hit.passage.title, heading))), sentence)
            for hit, heading, sentence in found
        ]
        scores = (self.vectors_of_texts(texts) @ self.embed(text)).tolist()
        kept = keep(
            [(hit.passage.id, score) for (hit, _, _), score in zip(found, scores, strict=True)], floor
        )
        strips = tuple(
            Sentence(hit.passage.id, sentence, score, keeps, heading)
            for (hit, heading, sentence), score, keeps in zip(found, scores, kept, strict=True)
        )
        self.span.output = SentenceFilter(strips, float(floor))
        return strips

    @step("EVALUATOR", "keep the strips that matter", returns=tuple[Sentence, ...])
    def strips(self, text: str, hits: Ranking, floor: float, titled: bool = False) -> tuple[Sentence, ...]:
        """Cut passages into strips and keep those whose cosine with the question is at least `floor`, and
        each passage's best.

        `titled` compares each strip with its passage's title before it, as passages are embedded for search:
        a strip alone often does not say what it is about. Where such pieces were made with the corpus
        (`index --with children`), those are the strips, and nothing has to be embedded now.
        Source: Yan et al. 2024, arXiv:2401.15884, section 4.4; there a trained evaluator scores the
        strips, here the embedder does.
        """
        pieces = (self._made(text, hits) if titled else None) or self._cut(text, hits, titled)
        kept = keep([(id, score) for id, _, score in pieces], floor)
        strips = tuple(
            Sentence(id, piece, score, keeps) for (id, piece, score), keeps in zip(pieces, kept, strict=True)
        )
        self.span.output = SentenceFilter(strips, float(floor))
        return strips

    def _made(self, text: str, hits: Ranking) -> list[Piece] | None:
        """Return the pieces of the passages embedded with the corpus, titled; None if some were not."""
        with self.context.trace.aside():  # what is opened once for all questions is no time of this one
            try:
                index: KeyIndex = self.context.prepared(Need.CHILDREN)
            except Unavailable as error:
                self.span.attributes["embedded"] = f"now: {error}"
                return None
        rows = self.rows_of(hits)
        if len(rows) < len(hits):
            self.span.attributes["embedded"] = "now: not all of the passages are of this corpus"
            return None
        vector = self.embed(text)
        self.span.attributes["embedded"] = "with the corpus"
        return [
            (hit.passage.id, piece, score)
            for at, hit in enumerate(hits)
            for piece, score in index.scored(vector, rows[at])
        ]

    def _cut(self, text: str, hits: Ranking, titled: bool) -> list[Piece]:
        """Split the passages into strips and embed them now."""
        found = [(hit.passage, piece) for hit in hits for piece in cut(hit.passage.text)]
        if not found:
            return []
        texts = [searchable(passage.title if titled else "", piece) for passage, piece in found]
        ready = Need.CHILDREN if titled else None  # the pieces of the corpus are under their titles
        scores = self.vectors_of_texts(texts, ready) @ self.embed(text)
        return [
            (passage.id, piece, float(score)) for (passage, piece), score in zip(found, scores, strict=True)
        ]

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
            self.note("every passage reaches the threshold; none is dropped")
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
            self.note("no sentence passed the filter, so the passages stay whole")
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
        index, corpus = self._index(Need.SENTENCES), self.context.corpus
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
            for a, b in sentence_spans(one.text, 0, len(one.text)):
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
        index, corpus = self._index(Need.CHILDREN), self.context.corpus
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
