"""The question, the texts written for it and the passages found, as points of the embedder's space."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.analysis.run_view import worked
from core.analysis.searches import imagined, written
from core.backends.base import Embedder, Matrix, Vector
from core.corpus.corpus import Corpus
from core.domain.rank_changes import ranks
from core.domain.text import searchable
from core.domain.types import Run

Kind = Literal["question", "text", "imagined", "stored", "passage"]
BATCH = 16  # passages embedded between two reports of progress


@dataclass(frozen=True, slots=True)
class Point:
    """A text of the run or a passage; `key` is the passage's id, or the text itself. `routes`: titles of
    those that wrote it, or that have it in their top.
    """

    key: str
    kind: Kind
    label: str
    routes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plane:
    """Points on their first two principal components: `xy` has shape (n, 2); `explained` is the share of the
    variance that each of the two axes shows, 0 to 1.
    """

    xy: Matrix
    explained: tuple[float, float]


def points(run: Run, gold: Mapping[str, int], depth: int) -> list[Point]:
    """Return the question, every other text of the run, and the passages in any route's top `depth` with the
    labelled ones; passages that the run does not hold are left out.
    """
    texts: dict[str, list[str]] = {}
    proxies: set[str] = set()
    having: dict[str, list[str]] = {id: [] for id, grade in gold.items() if grade > 0}
    for result in run.results:
        proxies.update(imagined(result))
        for text in written(run, result):
            texts.setdefault(text, []).append(result.title)
    for result in worked(run):
        for id, rank in ranks(result.hits).items():
            if rank <= depth:
                having.setdefault(id, []).append(result.title)
    known = run.passages
    return [
        Point(run.query.text, "question", "the question"),
        *(Point(one, "imagined" if one in proxies else "text", one, tuple(by)) for one, by in texts.items()),
        *(
            Point(id, "passage", known[id].title or known[id].doc_id, tuple(by))
            for id, by in having.items()
            if id in known
        ),
    ]


def embed(
    run: Run,
    wanted: Sequence[Point],
    embedder: Embedder,
    corpus: Corpus | None,
    known: MutableMapping[tuple[str, str], Vector],
) -> Iterator[int]:
    """Put the unit vectors, shape (dim,), of what `known` lacks into it by (kind, key); yields how many are
    in after each part.

    Passages come from `corpus`, where it is given and holds the very passage; all else is embedded.
    """
    for one in wanted:
        if one.kind != "passage" and (one.kind, one.key) not in known:
            known[one.kind, one.key] = np.asarray(embedder.embed_query(one.key), np.float32)
    lacking = [one for one in wanted if one.kind == "passage" and ("passage", one.key) not in known]
    if corpus is not None and lacking:
        held = corpus.by_ids([one.key for one in lacking])
        same = [one.key for one in lacking if held.get(one.key) == run.passages[one.key]]
        vectors: Sequence[Vector] = list(corpus.vectors([corpus.row(id) for id in same])) if same else []
        known.update(
            {("passage", id): np.asarray(v, np.float32) for id, v in zip(same, vectors, strict=True)}
        )
        lacking = [one for one in lacking if ("passage", one.key) not in known]
    yield len(wanted) - len(lacking)
    for start in range(0, len(lacking), BATCH):
        part = [run.passages[one.key] for one in lacking[start : start + BATCH]]
        made = zip(part, embedder.embed([searchable(p.title, p.text) for p in part]), strict=True)
        known.update({("passage", one.id): np.asarray(v, np.float32) for one, v in made})
        yield len(wanted) - len(lacking) + start + len(part)


def plane(vectors: Matrix) -> Plane:
    """Principal component analysis of `vectors`, shape (n, dim). Each axis points to where its largest
    loading is positive, so that the same vectors always give the same map.

    Fewer than two directions leave the other coordinates, and their share, 0.
    Source: Jolliffe 2002, "Principal Component Analysis", chapter 1.
    """
    from sklearn.decomposition import PCA

    xy, explained = np.zeros((len(vectors), 2), np.float32), [0.0, 0.0]
    given = np.asarray(vectors, np.float64)
    if len(given) < 2 or np.allclose(given, given[:1]):
        return Plane(xy, (0.0, 0.0))
    model = PCA(min(2, *given.shape), svd_solver="full")
    placed = model.fit_transform(given)
    for axis, loadings in enumerate(model.components_):
        sign = 1.0 if loadings[np.argmax(np.abs(loadings))] > 0 else -1.0
        xy[:, axis] = sign * placed[:, axis]
        explained[axis] = float(model.explained_variance_ratio_[axis])
    return Plane(xy, (explained[0], explained[1]))


def cosine(one: Vector, other: Vector) -> float:
    """Return the cosine of two vectors; 0 if one has no direction, as the vector of an empty text."""
    length = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / length if length else 0.0


def nearest(at: int, among: Sequence[int], vectors: Matrix) -> int | None:
    """Return the member of `among` with the highest cosine with the vector at `at`, the first of equal ones,
    or None if there is no other.
    """
    others = [one for one in among if one != at]
    return max(others, key=lambda one: cosine(vectors[at], vectors[one]), default=None)


def nearest_on(at: int, among: Sequence[int], xy: Matrix) -> int | None:
    """Return the member of `among` nearest to `at` on the map, or None if there is no other."""
    others = [one for one in among if one != at]
    return min(others, key=lambda one: float(np.linalg.norm(xy[at] - xy[one])), default=None)
