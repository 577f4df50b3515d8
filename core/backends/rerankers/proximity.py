"""The proximity of a question's words in a passage: pairs of its words, and its best window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from core.backends.sparse import K1, B

Numbers = NDArray[np.float64]
NEAR = 8  # terms from the first word of a pair to the second, both counted, at most
# Chosen on anthropic-contextual, MTRAG, HotpotQA, clapnq-dev and `support` dev: bench/notebook/2026-11.md.
PAIRS, WINDOW = 0.5, 0.5  # the weights of pairs beside BM25 and of the best window beside the other signals


def pair_scores(asked: Sequence[tuple[str, float]], passages: Sequence[Sequence[str]]) -> Numbers:
    """Score how close the neighbouring words of a question are in each of `passages`, shape (n,).

    `asked` are the question's terms in order with their IDF, `passages` the terms of each. A pair of
    neighbours adds the mean of its two IDFs times f / (f + K), where f counts the occurrences of one with the
    other at most `NEAR` terms on, in either order, and K is BM25's, by length over the mean of `passages`.
    Source: Metzler & Croft 2005, "A Markov Random Field Model for Term Dependencies", SIGIR, section 3
    (sequential dependence, unordered windows of 8); with BM25's saturation: Rasolofo & Savoy 2003, "Term
    Proximity Scoring for Keyword-Based Retrieval Systems", ECIR.
    """
    idf = dict(asked)
    terms = [term for term, _ in asked]
    weights = {frozenset(two): (idf[two[0]] + idf[two[1]]) / 2 for two in pairwise(terms) if two[0] != two[1]}
    mean = max(1.0, float(np.mean([len(one) for one in passages]))) if passages else 1.0
    scores = np.zeros(len(passages))
    for at, passage in enumerate(passages):
        k = K1 * (1 - B + B * len(passage) / mean)
        found = _pairs(passage, idf, weights)
        scores[at] = sum(weights[pair] * count / (count + k) for pair, count in found.items())
    return scores


def _pairs(
    passage: Sequence[str], asked: Mapping[str, float], wanted: Mapping[frozenset[str], float]
) -> Counter[frozenset[str]]:
    """Count the `wanted` pairs in a passage; each occurrence of a word counts a pair once."""
    places = [(place, term) for place, term in enumerate(passage) if term in asked]
    found: Counter[frozenset[str]] = Counter()
    for at, (place, term) in enumerate(places):
        near = set()
        for other, partner in places[at + 1 :]:
            if other - place >= NEAR:
                break
            near.add(frozenset((term, partner)))
        found.update(near & wanted.keys())
    return found


def parts(raw: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Return each signal's contribution to the score of each passage, shape (n,) each.

    `raw` holds bm25, pairs, cosine, maxsim and window. Each is standardised over the candidates, pairs on the
    scale of BM25 with them; signals that are equal everywhere add 0.
    """
    words = raw["bm25"] + PAIRS * raw["pairs"]
    return {
        "bm25": standard(raw["bm25"], words),
        "pairs": PAIRS * standard(raw["pairs"], words),
        "cosine": standard(raw["cosine"]),
        "maxsim": standard(raw["maxsim"]),
        "window": WINDOW * standard(raw["window"]),
    }


def standard(scores: Numbers, scale: Numbers | None = None) -> Numbers:
    """Scores less their mean, in standard deviations of `scale`, or their own; all equal: 0 each."""
    spread = float((scores if scale is None else scale).std()) if len(scores) else 0.0
    return (scores - scores.mean()) / spread if spread > 1e-9 else np.zeros(len(scores))
