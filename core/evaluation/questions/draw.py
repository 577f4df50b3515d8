"""The choice of passages to write questions about, spread evenly over documents and topics."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.corpus.corpus import Corpus
from core.domain.errors import BadInput
from core.domain.types import Passage

LEAST_WORDS = 15  # in a passage: with fewer there is nothing to ask
CLUSTERS = 24  # of documents, by what they are about
SAMPLE = 20_000  # documents that are clustered
# Letters with digits (LP-4098, E1203, v2.1), a number of five digits or more, or words joined by _ or ::.
_IDENTIFIER = re.compile(
    r"\b(?=[\w.-]*\d)(?=[\w.-]*[A-Z])[A-Z0-9][\w-]*(?:\.\w+)*\b|\b\d{5,}\b|\b\w+(?:_\w+)+\b|\b\w+(?:::\w+)+\b"
)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A passage to ask about, its row in the corpus, and an identifier in it, "" if it has no identifier."""

    row: int
    passage: Passage
    identifier: str = ""


def passages(corpus: Corpus, seed: int) -> Iterator[Drawn]:
    """Yield the passages of a corpus in the order in which they are asked about: one of each cluster of
    documents in turn, of each document once before any comes twice; equal texts once.

    BadInput where no passage has LEAST_WORDS words.
    """
    draw = random.Random(seed)
    found = _documents(corpus)
    if not found:
        raise BadInput(f"corpus {corpus.name}: no passage has {LEAST_WORDS} words or more to ask about")
    names = sorted(found)
    draw.shuffle(names)
    for rows in found.values():
        draw.shuffle(rows)
    groups = _grouped(corpus, names, found, seed)
    while any(groups):
        for group in groups:
            if not group:
                continue
            name = group.pop(0)
            row = found[name].pop()
            if found[name]:
                group.append(name)
            passage = corpus.passages([row])[0]
            yield Drawn(row, passage, identifier(passage.text))


def identifier(text: str) -> str:
    """Return the longest of the identifiers in a text, the first of equally long ones, or "" if it does not
    exist.
    """
    return max((one[0] for one in _IDENTIFIER.finditer(text)), key=len, default="")


def _documents(corpus: Corpus) -> dict[str, list[int]]:
    """Return the rows of each document whose passages say enough, each text once."""
    seen: set[str] = set()
    found: dict[str, list[int]] = {}
    for row, passage, _ in corpus.everything():
        plain = " ".join(passage.text.split()).casefold()
        if plain.count(" ") + 1 < LEAST_WORDS or plain in seen:
            continue
        seen.add(plain)
        found.setdefault(passage.doc_id, []).append(row)
    return found


def _grouped(
    corpus: Corpus, names: Sequence[str], found: Mapping[str, Sequence[int]], seed: int
) -> list[list[str]]:
    """Return the documents in clusters by the vector of one passage of each, the order inside kept."""
    import faiss

    if len(names) <= CLUSTERS:
        return [[name] for name in names]
    vectors = np.stack([corpus.vectors([found[name][0]])[0] for name in names[:SAMPLE]])
    means = faiss.Kmeans(
        vectors.shape[1], CLUSTERS, niter=10, seed=seed, min_points_per_centroid=1, verbose=False
    )
    means.train(vectors)
    nearest = means.index.search(vectors, 1)[1][:, 0]
    groups: dict[int, list[str]] = {}
    for at, name in enumerate(names):
        groups.setdefault(int(nearest[at]) if at < len(nearest) else at % CLUSTERS, []).append(name)
    return [groups[at] for at in sorted(groups)]
