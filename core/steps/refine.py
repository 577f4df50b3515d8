"""Steps that keep of a passage what matters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.backends.prompting.citations import sentences
from core.corpus.chunk import pieces
from core.corpus.enrichments.keys import KeyIndex
from core.domain.errors import Unavailable
from core.domain.needs import Need
from core.domain.outputs import Sentence, SentenceFilter
from core.domain.text import searchable
from core.domain.types import Ranking
from core.steps.retrieve import Retrieve
from core.steps.step import step

Piece = tuple[str, str, float]  # passage id, text, cosine with the question
STRIP = (60, 220)  # characters: about one or two sentences, as the paper's strips


class Refine(Retrieve):
    """Decompose, filter, recompose."""

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
