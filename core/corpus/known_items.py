"""The weight of dense search next to BM25 in a corpus, measured without labels by known-item questions.

A sentence is taken out of a passage and asked; the passage without it must be found among all others. Source
of the method: Azzopardi, de Rijke & Balog 2007, "Building Simulated Queries for Known-Item Topics", SIGIR.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.backends.base import Embedder, Matrix
from core.backends.hosted_embedder import HostedEmbedder, Use
from core.backends.onnx_text import in_bulk
from core.backends.sparse import BM25Index
from core.corpus.chunk import sentences
from core.corpus.embeddings import KEY_BYTES, Known, Vectors
from core.corpus.passages import PassageStore
from core.corpus.stages import Stages
from core.corpus.types import UNMEASURED, DenseWeight
from core.domain.errors import ModelFailed
from core.domain.text import searchable

ITEMS = 300  # with 100 a third of the draws lost over 0.02 nDCG@10 on one labelled set
FEWEST = 20  # items from which a weight is chosen
EXAMINED = 10 * ITEMS  # passages looked at for a sentence to take out
WORDS = range(4, 31)  # in a sentence that is asked
SEED = b"known items"  # with a passage's text it decides the draw, so a refresh draws mostly the same
WEIGHTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, UNMEASURED, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
DEPTH = 10  # ranks that count, as in nDCG@10
NEAR = 3  # rows on each side that may repeat a sentence, because passages overlap
BATCH = 32  # questions scored against all passages at once
DRAWS = 1_000
USES: tuple[Use, Use] = ("query", "document")
KEPT = "known_items.npz"  # the vectors of questions and shortened passages, by what they are of


@dataclass(frozen=True, slots=True)
class KnownItem:
    """A sentence taken out of a passage: the question, and the passage that is left."""

    row: int
    question: str
    rest: str  # title and text without the sentence, as searches read them


def draw(passages: PassageStore) -> list[KnownItem]:
    """Return up to ITEMS known items, drawn by a hash of each passage's text."""
    digests = [hashlib.blake2b(SEED + text.encode(), digest_size=16).digest() for text in passages.texts()]
    found: list[KnownItem] = []
    for row in sorted(range(len(digests)), key=digests.__getitem__)[:EXAMINED]:
        passage = passages.at([row])[row]
        text = passage.text
        spans = [span for span in sentences(text, 0, len(text)) if len(text[slice(*span)].split()) in WORDS]
        if not spans or len(text) == spans[0][1] - spans[0][0]:
            continue
        start, end = spans[int.from_bytes(digests[row][:8]) % len(spans)]
        rest = searchable(passage.title, f"{text[:start]} {text[end:]}")
        found.append(KnownItem(row, text[start:end], rest))
        if len(found) == ITEMS:
            break
    return found


def weigh(
    passages: PassageStore,
    words: BM25Index,
    vectors: Matrix,
    source: Vectors,
    folder: Path,
    stages: Stages,
) -> DenseWeight:
    """Measure the weight of `vectors`, shape (passages, dim), next to `words`; raises Cancelled. What is
    embedded for it by `source` is kept in `folder`.

    Where too few passages have a sentence to take out, or the embedder fails, the weight is UNMEASURED and
    says why: the index is whole without it.
    """
    items = draw(passages)
    if len(items) < FEWEST:
        why = f"only {len(items)} passages have a sentence to ask for; {FEWEST} are needed"
        return unmeasured(why, len(items))
    try:
        asked, rests = embedded(items, source, folder, stages.cancel)
    except ModelFailed as error:
        return unmeasured(f"the known-item questions were not embedded: {error}")
    return choose(gains(items, asked, rests, words, vectors, passages, stages.tick), words.size)


def unmeasured(why: str, items: int = 0) -> DenseWeight:
    """Return the weight of a corpus that shows none."""
    return DenseWeight(UNMEASURED, 0.0, 1.0, items, why=why)


def embedded(
    items: Sequence[KnownItem], source: Vectors, folder: Path, cancel: threading.Event
) -> tuple[Matrix, Matrix]:
    """Return the vectors of the questions and of the shortened passages, each of shape (items, dim), and keep
    them in `folder`. Those that earlier indexes keep are not embedded again. Raises ModelFailed, Cancelled.
    """
    texts = [one.question for one in items] + [one.rest for one in items]
    uses = [USES[0]] * len(items) + [USES[1]] * len(items)
    salted = (f"{source.identity}\0{use}\0{text}".encode() for use, text in zip(uses, texts, strict=True))
    digests = b"".join(hashlib.blake2b(one, digest_size=KEY_BYTES).digest() for one in salted)
    keys = np.frombuffer(digests, np.uint8).reshape(-1, KEY_BYTES)
    missing = ~_known(source).has(keys)
    for use in USES:
        if new := [at for at in np.flatnonzero(missing) if uses[at] == use]:
            made = _embed(source.load(), [texts[at] for at in new], use, cancel)
            source.checkpoint.add(keys[new], made)
    known = _known(source)
    vectors = known.take(keys, known.dim(keys))
    np.savez(folder / KEPT, keys=keys, vectors=vectors)
    return vectors[: len(items)], vectors[len(items) :]


def _known(source: Vectors) -> Known:
    """Return the vectors that a stopped build and earlier indexes have."""
    found = [*source.checkpoint.sound()]
    for index in source.former:
        if (index / KEPT).is_file():
            with np.load(index / KEPT, allow_pickle=False) as kept:
                found.append((kept["keys"], kept["vectors"]))
    return Known(found)


def _embed(embedder: Embedder, texts: list[str], use: Use, cancel: threading.Event) -> Matrix:
    if isinstance(embedder, HostedEmbedder):  # several texts a request
        return embedder.embed_within(texts, cancel, use)
    if use == "query":
        return np.stack([embedder.embed_query(text) for text in texts])
    with in_bulk(embedder, len(texts)) as bulk:
        return bulk.embed(texts)


def choose(found: NDArray[np.float64], passages: int) -> DenseWeight:
    """Choose the weight that finds the items best: `found` holds their `gains` in a corpus of `passages`.

    The weight is the mean of those that are best in DRAWS resamples of the items, which varies less than the
    best of all (bagging: Breiman 1996). It is UNMEASURED if the best mean is within two standard errors of
    chance.
    """
    items = len(found)
    mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / math.sqrt(items)
    most = int(mean.argmax())
    chance = sum(1 / math.log2(rank + 1) for rank in range(1, DEPTH + 1)) / passages
    if mean[most] - 2 * error[most] <= chance:
        return unmeasured("no weight finds the sentences' passages better than chance", items)
    shares = np.random.default_rng(0).multinomial(items, np.full(items, 1 / items), DRAWS)
    means = shares @ found
    best = means == means.max(axis=1, keepdims=True)  # several where the weight makes no difference
    chosen = best @ np.array(WEIGHTS) / best.sum(axis=1)
    low, high = np.quantile(chosen, (0.025, 0.975), method="nearest")
    curve = tuple(zip(np.round(WEIGHTS, 3).tolist(), np.round(mean, 4).tolist(), strict=True))
    weight, low, high = (round(float(one), 3) for one in (chosen.mean(), low, high))
    return DenseWeight(weight, low, high, items, curve)


def gains(
    items: Sequence[KnownItem],
    asked: Matrix,
    rests: Matrix,
    words: BM25Index,
    vectors: Matrix,
    passages: PassageStore,
    tick: Callable[[int, int], None] = lambda _done, _total: None,
) -> NDArray[np.float64]:
    """Return the nDCG@10 of each item's passage at each of WEIGHTS; in a tie it takes the middle rank.

    `asked` and `rests` are the vectors of questions and shortened passages, see `embedded`; `vectors` those
    of the corpus, shape (passages, dim).
    """
    found = np.zeros((len(items), len(WEIGHTS)))
    for at, item in enumerate(items):
        tick(at, len(items))
        if at % BATCH == 0:
            cosines = vectors @ asked[at : at + BATCH].T
        total = sum(idf for _, idf in words.terms(item.question)) or 1.0
        near = passages.at(range(max(0, item.row - NEAR), min(words.size, item.row + NEAR + 1)))
        others = np.ones(words.size, bool)
        others[[row for row, one in near.items() if item.question in one.text]] = False
        bm25, cosine = words.scores(item.question)[others] / total, cosines[others, at % BATCH]
        own = words.score_of(item.rest, item.question) / total, float(rests[at] @ asked[at])
        ranks = []
        for weight in WEIGHTS:
            margin = (1 - weight) * (bm25 - own[0]) + weight * (cosine - own[1])
            ranks.append(1 + np.count_nonzero(margin > 1e-9) + np.count_nonzero(abs(margin) <= 1e-9) // 2)
        rank = np.array(ranks)
        found[at] = np.where(rank <= DEPTH, 1 / np.log2(rank + 1), 0.0)
    return found
