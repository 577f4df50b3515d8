"""The text read for a passage that was found by a part of it: surrounding sentences, or pieces that may
merge.
"""

from __future__ import annotations

from core.backends.base import Vector
from core.corpus.sections import sentences
from core.domain.outputs import Excerpts, Merged, Merging
from core.domain.types import Passage, Ranking
from core.steps.compress import tokens
from core.steps.indexed import Indexed
from core.steps.step import step

REACH = 2_000  # characters before and behind a passage in which neighbouring sentences are looked for


class Windows(Indexed):
    """Reading less than a passage, or more."""

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
