"""Steps that choose among what was found: diverse passages first, near-duplicates out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.backends.base import Matrix, Vector
from core.domain.errors import BadInput
from core.domain.outputs import Duplicate, Inserted, ScoreCut, Selection
from core.domain.outputs import Pick as PickOutput
from core.domain.types import Hit, Ranking
from core.steps.retrieve import POOL, Retrieve
from core.steps.step import step

Alike = Literal["words", "embedding"]
SHINGLE = 3  # words; long enough that sharing one is no accident, short enough for passages of 100 words
REMEMBERED = 5_000  # passages whose shingles are kept, some 5 MB
DECIMALS = 6  # of similarities: what they are exact to, and what a span keeps
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class MmrPick:
    """One selection of MMR: its row, its score then, and what it is most like of those chosen before."""

    row: int
    score: float
    relevance: float
    similarity: float = 0.0
    nearest: int | None = None  # row; the first pick has nothing before it


def mmr(
    relevance: NDArray[np.floating], similarity: NDArray[np.floating], lam: float, k: int
) -> tuple[MmrPick, ...]:
    """Select `k` rows by maximal marginal relevance, in order (fewer if there are fewer).

    Each pick maximises lam * relevance - (1 - lam) * (highest similarity to an earlier pick); before the
    first pick that similarity is 0, ties go to the lower row. `relevance` has shape (n,), best first,
    `similarity` (n, n). Raises BadInput if `lam` is outside 0 to 1 or `k` below 1. Source: Carbonell &
    Goldstein 1998, "The Use of MMR ...", SIGIR, doi:10.1145/290941.291025, section 2.
    """
    if not 0 <= lam <= 1:
        raise BadInput(f"MMR lambda is {lam:g}; it must be from 0 to 1")
    if k < 1:
        raise BadInput(f"MMR k is {k}; it must be 1 or more")
    wanted = relevance.astype(np.float64)
    similar, nearest = np.zeros(len(wanted)), np.full(len(wanted), -1)
    left = np.ones(len(wanted), np.bool_)
    picks: list[MmrPick] = []
    while len(picks) < min(k, len(wanted)):
        scores = np.where(left, lam * wanted - (1 - lam) * similar, -np.inf)
        row = int(scores.argmax())
        before = int(nearest[row]) if picks else None
        picks.append(MmrPick(row, float(scores[row]), float(wanted[row]), float(similar[row]), before))
        left[row] = False
        to_it = similarity[row]
        closer = (to_it > similar) | (nearest < 0)
        similar[closer], nearest[closer] = to_it[closer], row
    return tuple(picks)


def places(n: int) -> NDArray[np.float64]:
    """Relevance by place alone: it falls evenly from 1, shape (n,)."""
    return 1 - np.arange(n) / max(1, n)


def likeness(vectors: Matrix) -> NDArray[np.float64]:
    """Inner products of each two of `vectors`, shape (n, dim) -> (n, n), to 6 decimals: as a span keeps them.

    So that what is chosen by them can be chosen again from the span, exactly.
    """
    rows = vectors.astype(np.float64)
    return np.round(rows @ rows.T, DECIMALS)


def pack(similarity: NDArray[np.float64]) -> list[int]:
    """Flatten the lower triangle of a symmetric (n, n) row by row, without its diagonal, in millionths."""
    rows, columns = np.tril_indices(len(similarity), -1)
    found: list[int] = np.rint(similarity[rows, columns] * 10**DECIMALS).astype(int).tolist()
    return found


def unpack(packed: Sequence[int], n: int) -> NDArray[np.float64]:
    """Invert `pack`, with ones on the diagonal. Raises BadInput unless there are n (n - 1) / 2 numbers."""
    if len(packed) != n * (n - 1) // 2:
        raise BadInput(f"{len(packed)} similarities for {n} passages; there should be {n * (n - 1) // 2}")
    similarity = np.eye(n)
    rows, columns = np.tril_indices(n, -1)
    similarity[rows, columns] = similarity[columns, rows] = np.asarray(packed, np.float64) / 10**DECIMALS
    return similarity


@lru_cache(REMEMBERED)
def shingles(text: str, w: int = SHINGLE) -> NDArray[np.int64]:
    """Hash the sets of `w` consecutive words of a text to 64 bits, each once, shape (n,). Different sets
    collide less than once in 10^12 comparisons of passages. Recent passages are cached.
    """
    words = _WORD.findall(text.lower())
    own = {tuple(words[at : at + w]) for at in range(max(1, len(words) - w + 1))} if words else set()
    return np.fromiter(map(hash, own), np.int64, len(own))


def resemblance(texts: Sequence[str], w: int = SHINGLE) -> NDArray[np.float64]:
    """Jaccard similarity of each two texts' sets of `w` consecutive words, shape (n, n).

    Case and punctuation do not count. A text of fewer words is one shingle of all it has; one without words
    resembles nothing.
    Source: Broder 1997, "On the Resemblance and Containment of Documents", doi:10.1109/SEQUEN.1997.666900.
    """
    having = [shingles(text, w) for text in texts]
    sizes = np.array([len(own) for own in having], np.float64)
    if not sizes.any():
        return np.zeros((len(texts), len(texts)))
    owners = np.repeat(np.arange(len(texts)), sizes.astype(int))
    _, columns, counts = np.unique(np.concatenate(having), return_inverse=True, return_counts=True)
    several = counts[columns] > 1  # most shingles occur once
    _, shared = np.unique(columns[several], return_inverse=True)
    incidence = np.zeros((len(texts), int(shared.max(initial=-1)) + 1), np.float32)  # exact up to 2**24
    incidence[owners[several], shared] = 1
    common = (incidence @ incidence.T).astype(np.float64)
    np.fill_diagonal(common, sizes)
    return common / np.maximum(sizes[:, None] + sizes - common, 1)


def duplicates(similarity: NDArray[np.floating], threshold: float) -> dict[int, int]:
    """Rows to drop -> the kept row each is most like; `similarity` has shape (n, n), rows best first.

    A row is kept unless its similarity to one kept before is `threshold` or more, so what is dropped is
    always like something kept, never only like something dropped.
    """
    dropped: dict[int, int] = {}
    kept = np.ones(len(similarity), bool)
    for row in np.flatnonzero(np.tril(similarity >= threshold, -1).any(axis=1)).tolist():
        like = np.where(kept[:row], similarity[row, :row], -np.inf)
        nearest = int(like.argmax())
        if like[nearest] >= threshold:
            dropped[row] = nearest
            kept[row] = False
    return dropped


LOOKED_AT = 0.9  # share of the scores among which the largest drop is looked for


class Select(Retrieve):
    """Diversity and near-duplicates."""

    @step("RERANKER", "order by marginal relevance", returns=Ranking)
    def mmr(
        self,
        asked: str | Vector,
        hits: Ranking,
        lam: float,
        k: int,
        pool: int = POOL,
        relevance: Literal["cosine", "rank"] = "cosine",
    ) -> Ranking:
        """Return the `k` of the first `pool` hits that MMR selects, then the others in their order; see
        `mmr`.

        Relevance is the cosine with `asked`, a text or its vector, so lam = 1 returns a dense ranking; with
        "rank" it falls evenly from 1 with the place in `hits`, so lam = 1 returns any ranking unchanged.
        Scores become 1 / rank, as MMR's would not compare with the others'. The span records each selected
        passage's score, and the cosines ("near") and similarities ("alike", see `pack`) of the first POOL
        hits, from which other values can be tried.
        """
        vector = self.embed(asked) if isinstance(asked, str) else asked
        known = hits[: max(pool, POOL)]  # more than the pool, so that a larger one can be tried later
        vectors = self.vectors_of(known)
        near = np.round((vectors * vector).sum(axis=1).astype(np.float64), DECIMALS)
        alike = likeness(vectors)
        head = hits[:pool]
        wanted = near if relevance == "cosine" else places(len(head))
        picks = mmr(wanted[: len(head)], alike[: len(head), : len(head)], lam, k)
        small = len(known) <= POOL  # of more the likeness of each two would be too long to keep
        chosen = []
        for pick in picks:
            like = None if pick.nearest is None else head[pick.nearest].passage.id
            scores = (pick.score, pick.relevance, pick.similarity)
            chosen.append(PickOutput(head[pick.row].passage.id, pick.row + 1, *scores, like))
        kept = (tuple(near.tolist()), tuple(pack(alike))) if small else ()
        self.span.output = Selection("mmr", tuple(chosen), *kept)
        if [pick.row for pick in picks] == list(range(len(picks))):
            self.note("no passage moved; the most relevant ones are diverse enough")
        ordered = {head[pick.row].passage.id: head[pick.row].passage for pick in picks}
        ordered |= {hit.passage.id: hit.passage for hit in hits if hit.passage.id not in ordered}
        return tuple(Hit(passage, 1 / rank) for rank, passage in enumerate(ordered.values(), 1))

    @step("GUARDRAIL", "drop near-duplicates", returns=Ranking)
    def dedupe(self, hits: Ranking, by: Alike, threshold: float) -> Ranking:
        """Drop the hits whose similarity to a better hit that is kept is at least `threshold`.

        `by` compares "words", see `resemblance`, or the cosine of the passages' "embedding" (to 6 decimals,
        its precision). The span records the better hit for each one dropped. Raises BadInput for another
        `by`.
        """
        if by == "words":
            similarity = resemblance([hit.passage.text for hit in hits])
        elif by == "embedding":
            vectors = self.vectors_of(hits).astype(np.float64)
            similarity = np.round(vectors @ vectors.T, 6)
        else:
            raise BadInput(f"near-duplicates by {by!r}; use words or embedding")
        dropped = duplicates(similarity, threshold)
        better = {
            hits[row].passage.id: Duplicate(hits[kept].passage.id, float(similarity[row, kept]))
            for row, kept in dropped.items()
        }
        self.span.output = Selection("duplicates", dropped=better)
        if not dropped:
            self.note("no two hits are that similar; none is dropped")
        return tuple(hit for row, hit in enumerate(hits) if row not in dropped)

    @step("CHAIN", "cut at the largest drop of scores", returns=Ranking)
    def cut_at_drop(self, hits: Ranking, least: int, beyond: int) -> Ranking:
        """Keep the passages before the largest drop between adjacent scores, plus `beyond` more, and at least
        `least`: uncalibrated rerankers often score the first hit far above all others.

        Source: Taguchi, Maekawa & Bhutani 2025, "Efficient Context Selection for Long-Context QA: No Tuning,
        No Iteration, Just Adaptive-k", arXiv:2506.08479, section 3; `least` is our addition.
        """
        scores = [hit.score for hit in hits]
        drop = largest_drop(scores)
        wanted = drop + beyond if drop else len(hits)
        kept = min(len(hits), max(least, wanted))
        size = scores[drop - 1] - scores[drop] if drop else 0.0
        self.span.output = ScoreCut(kept, drop, size, guarded=kept > wanted)
        if not drop and len(hits) > 1:
            self.note("all scores are equal: nothing is cut")
        return hits[:kept]

    @step("CHAIN", "put unrelated passages among those found", returns=Ranking)
    def with_noise(self, hits: Ranking, count: int, top: int, seed: int) -> Ranking:
        """`hits` with `count` passages of the corpus, drawn by `seed` from those that it has not, at
        places drawn among its first `top`. Scores become 1 / rank, as the drawn passages have none.

        Source: Cuconasu et al. 2024, "The Power of Noise: Redefining Retrieval for RAG Systems",
        arXiv:2401.14887, section 4.
        """
        corpus = self.context.corpus
        known = {hit.passage.id for hit in hits}
        taken = {corpus.row(id) for id in corpus.by_ids(sorted(known))}
        allowed = self.allowed()
        every = np.arange(corpus.size) if allowed is None else np.flatnonzero(allowed)
        free = np.setdiff1d(every, sorted(taken))
        rng = np.random.default_rng(seed)
        drawn = corpus.passages(rng.choice(free, min(count, len(free)), replace=False).tolist())
        mixed = [hit.passage for hit in hits]
        for passage in drawn:
            mixed.insert(int(rng.integers(0, min(top, len(mixed) + 1))), passage)
        self.span.output = Inserted(tuple(passage.id for passage in drawn))
        if len(drawn) < count:
            self.note(f"{len(drawn)} of {count} passages: the corpus has no more that no search found")
        return tuple(Hit(passage, 1 / rank) for rank, passage in enumerate(mixed, 1))


def largest_drop(scores: list[float]) -> int:
    """Count the scores, best first, before the largest drop between adjacent scores. Only the first LOOKED_AT
    share of them is searched; of equal drops the first counts. Return 0 if the scores never fall.
    """
    looked = max(2, int(len(scores) * LOOKED_AT)) if len(scores) > 1 else 0
    drops = [scores[at] - scores[at + 1] for at in range(looked - 1)]
    largest = max(drops, default=0.0)
    return drops.index(largest) + 1 if largest > 0 else 0
