"""The embedded reranker: BM25, cosine and MaxSim weighted by IDF, added up; no further model, no training."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from core.backends.array_files import single
from core.backends.base import Matrix
from core.backends.cache_file import DiskCache
from core.backends.late import TokenEmbedder, TokenVectors
from core.backends.weights import clean, in_batches
from core.domain.text import searchable
from core.domain.types import Passage

Numbers = NDArray[np.float64]
Halves = NDArray[np.float16]
SIGNALS = ("bm25", "cosine", "maxsim")
# Equal, because fitting did not pay: of 17 settings, the one best on three of scifact, anthropic-contextual,
# support and hotpotqa was at most 0.001 nDCG@10 better on the fourth, and up to 0.017 worse.
WEIGHTS: Mapping[str, float] = {"bm25": 1.0, "cosine": 1.0, "maxsim": 1.0}
BATCH = 8  # passages embedded between two looks at the clock
HALF = 32  # tokens in half of a window of MaxSim; windows overlap by as many
PIECE = "##"  # what a WordPiece token that continues a word begins with


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Passages to rerank with what is known of each, in the same order.

    `bm25` and `cosine` have shape (n,). `tokens` holds the passages' token vectors, (tokens, dim) each, where
    they are at hand, also in half precision as they are stored; the others are made when they are needed.
    `idf` gives the weight of words, 0 for one that does not count.
    """

    passages: Sequence[Passage]
    bm25: Numbers
    cosine: Numbers
    idf: Callable[[Sequence[str]], Sequence[float]]
    tokens: Mapping[int, Matrix | Halves] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Blended:
    """The score of each candidate, shape (n,), and its components."""

    scores: Numbers
    # the signals as measured; with windows also "window", MaxSim in the best window of a passage, which is
    # not part of this score
    raw: Mapping[str, Numbers]
    parts: Mapping[str, Numbers]  # each signal's contribution: weight times its min-max over the candidates
    words: tuple[tuple[str, float], ...]  # share of each question word in MaxSim
    embedded: int  # passages whose token vectors were not at hand
    cached: int = 0  # passages that were read for an earlier question


class BlendReranker:
    """Safe to call from several threads if its token embedder is."""

    name = "BM25 + cosine + MaxSim weighted by IDF"

    def __init__(self, tokens: TokenEmbedder, cache: TokenCache | None = None) -> None:
        """`cache` keeps the token vectors of passages that were read at question time."""
        self._tokens, self._cache = tokens, cache
        self.tokens = tokens.name

    def blend(
        self,
        text: str,
        candidates: Candidates,
        *,
        asked: TokenVectors | None = None,
        timeout: float = 60.0,
        cancel: threading.Event | None = None,
        windows: bool = False,
    ) -> Blended:
        """Score `candidates` for a question; `asked` are its tokens where they were embedded before. Raises
        ModelTimedOut or Cancelled while it embeds passages.
        """
        if not candidates.passages:
            none = np.zeros(0)
            return Blended(none, dict.fromkeys(SIGNALS, none), dict.fromkeys(SIGNALS, none), (), 0)
        query = asked or self._tokens.embed_query(clean(text))
        words = whole_words(query.tokens)
        weights = token_weights(words, candidates.idf)
        missing = [at for at in range(len(candidates.passages)) if at not in candidates.tokens]
        unknown = [candidates.passages[at] for at in missing]
        texts = [clean(searchable(one.title, one.text)) for one in unknown]
        cached = {missing[at]: found for at, found in (self._cache.get(texts) if self._cache else {}).items()}
        unread = {at: text for at, text in zip(missing, texts, strict=True) if at not in cached}
        vectors = {**candidates.tokens, **cached, **self._embed(unread, timeout, cancel)}
        passages = [vectors[at] for at in range(len(candidates.passages))]
        raw = {
            "bm25": candidates.bm25,
            "cosine": candidates.cosine,
            "maxsim": weighted_maxsim(query.vectors, weights, passages),
        }
        if windows:
            raw["window"] = windowed_maxsim(query.vectors, weights, passages)
        parts = {name: WEIGHTS[name] * min_max(raw[name]) for name in SIGNALS}
        scores: Numbers = np.sum([parts[name] for name in SIGNALS], axis=0)
        shares: dict[str, float] = {}
        for word, weight in zip(words, weights.tolist(), strict=True):
            shares[word] = shares.get(word, 0.0) + weight
        return Blended(scores, raw, parts, tuple(shares.items()), len(unread), len(cached))

    def _embed(
        self, texts: Mapping[int, str], timeout: float, cancel: threading.Event | None
    ) -> dict[int, Matrix]:
        """Compute the token vectors of `texts`, batching texts of similar length. Each finished batch is
        kept.
        """
        order = sorted(texts, key=lambda at: len(texts[at]))
        out: dict[int, Matrix] = {}
        for some in in_batches(order, BATCH, self.tokens, timeout, cancel):
            found = self._tokens.embed_passages([texts[at] for at in some])
            made = {at: rounded(one.vectors) for at, one in zip(some, found, strict=True)}
            if self._cache is not None:
                self._cache.put({texts[at]: vectors for at, vectors in made.items()})
            out |= made
        return out


def whole_words(tokens: Sequence[str]) -> list[str]:
    """For each WordPiece token the word it is part of: the token and the continuations next to it, joined."""
    groups: list[list[str]] = []
    for token in tokens:
        if token.startswith(PIECE) and groups:
            groups[-1].append(token)
        else:
            groups.append([token])
    joined = ["".join(token.removeprefix(PIECE) for token in group) for group in groups]
    return [word for word, group in zip(joined, groups, strict=True) for _ in group]


def token_weights(words: Sequence[str], idf: Callable[[Sequence[str]], Sequence[float]]) -> Numbers:
    """Return the weights of tokens by the words they belong to, summing to 1, shape (tokens,).

    If no word counts (stop words only) all tokens weigh the same.
    """
    weights = np.asarray(idf(words), np.float64).reshape(len(words))
    if not weights.any():
        weights = np.ones(len(words))
    return weights / max(float(weights.sum()), 1e-12)


def weighted_maxsim(query: Matrix, weights: Numbers, passages: Sequence[Matrix | Halves]) -> Numbers:
    """Return for each passage (p, dim) the sum over the question's tokens (q, dim) of weight times the
    highest cosine to any of the passage's tokens, shape (n,). A passage without tokens scores 0.

    Source: Khattab & Zaharia 2020, "ColBERT", arXiv:2004.12832, section 3.3, where every token weighs 1; IDF
    as the importance of tokens: Formal, Piwowarski & Clinchant 2021, "A White Box Analysis of ColBERT",
    arXiv:2012.09650.
    """
    scores = np.zeros(len(passages))
    for at, cosines in _each(query, passages):
        scores[at] = weights @ cosines.max(axis=1)
    return np.round(scores, 6)


def windowed_maxsim(query: Matrix, weights: Numbers, passages: Sequence[Matrix | Halves]) -> Numbers:
    """Compute `weighted_maxsim` on the best window of 2 * HALF tokens instead of each whole passage, shape
    (n,).

    A passage is as good as its best part: Callan 1994, "Passage-Level Evidence in Document Retrieval", SIGIR.
    """
    scores = np.zeros(len(passages))
    for at, cosines in _each(query, passages):
        best = np.maximum.reduceat(cosines, range(0, cosines.shape[1], HALF), axis=1)
        if best.shape[1] > 1:
            best = np.maximum(best[:, :-1], best[:, 1:])
        scores[at] = (weights @ best).max()
    return np.round(scores, 6)


def _each(query: Matrix, passages: Sequence[Matrix | Halves]) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the position of each passage with a token, and the cosines of the question's tokens with its
    own.
    """
    halves = [len(passage) for passage in passages if passage.dtype == np.float16]
    room = np.empty((max(halves, default=0), query.shape[1]), np.float32)  # for one after the other
    for at, stored in enumerate(passages):
        half = stored.dtype == np.float16
        passage = single(cast("Halves", stored), room[: len(stored)]) if half else cast("Matrix", stored)
        if len(passage) and len(query):
            # One product for each: passages that are equal get equal scores wherever they stand, which a
            # product of all in single precision would part, and one in double costs four times as much.
            yield at, query @ passage.T


def min_max(scores: Numbers) -> Numbers:
    """Scores mapped onto [0, 1]; all equal: 1 each."""
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.ones(len(scores))


LIMIT = 512_000_000  # bytes of the file in use, some 5,000 passages of 130 tokens


class TokenCache:
    """Token vectors of the embedder `name`, by text."""

    def __init__(self, path: Path, name: str, limit: int = LIMIT) -> None:
        self._kept, self._name = DiskCache(path, "token vectors", limit), name

    def get(self, texts: Sequence[str]) -> dict[int, Matrix]:
        """Return the known vectors of `texts` by position, each of shape (tokens, dim)."""
        keys = [self._key(text) for text in texts]
        found = self._kept.get(keys)
        vectors: dict[int, Matrix] = {}
        for at, key in enumerate(keys):
            if (value := found.get(key)) is not None:
                halves = np.frombuffer(value, "<f2", offset=4)
                vectors[at] = single(halves).reshape(-1, int.from_bytes(value[:4], "little"))
        return vectors

    def put(self, made: Mapping[str, Matrix]) -> None:
        """Keep vectors by their text."""
        # The dimension, 4 bytes, then the vectors as float16 by rows, both little-endian.
        heads = {text: vectors.shape[1].to_bytes(4, "little") for text, vectors in made.items()}
        self._kept.put({self._key(text): heads[text] + made[text].astype("<f2").tobytes() for text in made})

    def _key(self, text: str) -> str:
        whole = f"{self._name}\0{text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(whole, digest_size=16).hexdigest()


def rounded(vectors: Matrix) -> Matrix:
    """As they come back from the cache."""
    return single(vectors.astype(np.float16))
