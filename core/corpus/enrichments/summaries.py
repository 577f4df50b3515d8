"""A tree over the passages: a summary of each group of like ones, then of groups of summaries, and so on."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.backends.base import LLMRequest, Matrix
from core.backends.llm.text import looks_refused
from core.backends.prompting.prompts import SUMMARY
from core.corpus.chunk import sentences
from core.corpus.corpus import Corpus
from core.corpus.enrichments.keys import Key, KeyRecipe
from core.corpus.enrichments.recipe import Tools

GROUP = 7  # texts in a group on average; the paper's trees have 6.7
TOP = 10  # texts that are not grouped any more
READ = 6_000  # characters of a group that a summary is made from, its texts in equal parts
WORDS = 160  # tokens of a written summary
EXTRACT = 700  # characters of an extracted summary
ROUNDS, TRIES = 20, 3  # of k-means; the best try counts


@dataclass(frozen=True, slots=True)
class Node:
    """A text of one level: a passage, or the summary of a group, with the rows of all passages below it."""

    text: str
    rows: tuple[int, ...]


class Tree(KeyRecipe):
    """A key for each passage and each summary above it: the summary is searched in the passage's place.

    Source: Sarthi et al. 2024, "RAPTOR: Recursive Abstractive Processing for Tree-Organized Retrieval",
    arXiv:2401.18059, section 3. Groups are made by spherical k-means of the vectors, so that a text is in
    one; the paper reduces them by UMAP and has a Gaussian mixture, whose groups overlap.
    """

    words = False

    def entries(self, _characters: int, passages: int, /) -> int:
        """One a passage for each level of the tree."""
        levels = math.ceil(math.log(max(passages, TOP) / TOP, GROUP))
        return passages * levels

    def keys(self, corpus: Corpus, tools: Tools, /) -> list[Key]:
        """Return the keys of all levels; a corpus of at most TOP passages has none."""
        level = [Node(passage.text, (row,)) for row, passage, _ in corpus.everything()]
        vectors = corpus.vectors(range(len(level)))
        keys: list[Key] = []
        while len(level) > TOP:
            groups = [[level[at] for at in group] for group in grouped(vectors)]
            made = self.summaries(corpus, [[node.text for node in group] for group in groups], tools)
            rows = (tuple(row for node in group for row in node.rows) for group in groups)
            level = [Node(text, some) for text, some in zip(made, rows, strict=True) if text]
            keys += [Key(row, node.text, node.text) for node in level for row in node.rows]
            if len(level) > TOP:
                with tools.stages.stage("embed"):
                    vectors = tools.vectors().load().embed([node.text for node in level])
        return keys

    @abstractmethod
    def summaries(self, corpus: Corpus, groups: Sequence[Sequence[str]], tools: Tools) -> list[str]:
        """Return a summary of each group of texts; "" if there is none."""


class Summaries(Tree):
    """Summaries written by a language model."""

    name = "summaries"
    title = "summaries written for groups of passages"
    cost = "one language model call for about every six passages"
    uses_llm = True

    def summaries(self, _corpus: Corpus, groups: Sequence[Sequence[str]], tools: Tools) -> list[str]:
        """One call a group; a group whose call failed is not found by this route, and is counted."""
        asked = [
            LLMRequest(SUMMARY.name, SUMMARY.fill({"passages": "\n\n".join(shortened(group))}), WORDS)
            for group in groups
        ]
        with tools.stages.stage("write summaries"):
            replies = [reply or "" for reply in tools.ask_all(asked)]
        made = ["" if looks_refused(reply) else " ".join(reply.split()) for reply in replies]
        if without := sum(not text for text in made):
            tools.notes.append(f"{without} of {len(made)} groups of passages have no summary")
        return made


class Extracts(Tree):
    """Summaries of sentences taken over as they stand, without a model.

    Source: Radev, Jing, Styś & Tam 2004, "Centroid-based summarization of multiple documents", section 3:
    sentences with most of the terms that count in their group. First-sentence and position scores are left
    out: passages are no news articles.
    """

    name = "extracts"
    title = "summaries extracted for groups of passages"
    cost = "one embedding for about every six passages"

    def summaries(self, corpus: Corpus, groups: Sequence[Sequence[str]], tools: Tools) -> list[str]:
        """One a group, of at most EXTRACT characters."""
        made = []
        with tools.stages.stage("extract summaries"):
            for at, group in enumerate(groups):
                tools.stages.tick(at, len(groups))
                made.append(extract(corpus, shortened(group)))
        return made


def shortened(group: Sequence[str]) -> list[str]:
    """Truncate the texts of a group to equal parts of READ characters."""
    return [text[: READ // len(group)] for text in group]


def extract(corpus: Corpus, group: Sequence[str]) -> str:
    """Return the sentences with the most important terms of a group, in order, up to EXTRACT characters.

    A term counts by its frequency in the group times its IDF in the corpus; a sentence by the sum over its
    distinct terms, without those of sentences already taken.
    """
    spans = [text[a:b] for text in group for a, b in sentences(text, 0, len(text))]
    terms = [dict(corpus.terms(span)) for span in spans]
    often = Counter(term for found in terms for term in found)
    weight = {term: often[term] * idf for found in terms for term, idf in found.items()}
    taken: list[int] = []
    said: set[str] = set()
    left = EXTRACT
    while True:
        fits = [at for at, span in enumerate(spans) if at not in taken and len(span) < left]
        gains = {at: sum(weight[term] for term in terms[at] if term not in said) for at in fits}
        best = max(fits, key=lambda at: gains[at], default=None)
        if best is None or gains[best] <= 0:
            break
        taken.append(best)
        said |= terms[best].keys()
        left -= len(spans[best]) + 1
    return " ".join(" ".join(spans[at].split()) for at in sorted(taken))


def grouped(vectors: Matrix) -> list[NDArray[np.intp]]:
    """Return the rows of unit `vectors`, shape (n, dim), in groups of GROUP on average without empty ones, by
    deterministic spherical k-means.
    """
    import faiss

    count = math.ceil(len(vectors) / GROUP)
    points = np.ascontiguousarray(vectors, np.float32)
    every = {"min_points_per_centroid": 1, "max_points_per_centroid": len(vectors)}
    how = {"niter": ROUNDS, "nredo": TRIES, "spherical": True, "seed": 0, **every}
    made = faiss.Kmeans(vectors.shape[1], count, **how)
    made.train(points)
    _, nearest = made.index.search(points, 1)
    groups = (np.flatnonzero(nearest[:, 0] == at) for at in range(count))
    return [group for group in groups if len(group)]
