"""Search over 10,000 to 1,000,000 passages beside the libraries called bare: `python -m bench.run scale`.

Passages are made: words by Zipf's law, vectors around centres. On vectors without neighbourhoods a graph
finds little at any effort, so its recall is told beside its time; measure it on your own. A growth of 1 means
that ten times the passages take ten times as long.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import math
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.results import timed
from core.backends.sparse import COLUMNS, DATA, ROWS, STARTS, TERM_STARTS, TERMS, BM25Index, write_index
from core.backends.terms import Analyzer
from core.backends.vector import SEARCH_EFFORT, FaissIndex, write_graph

log = logging.getLogger("bench")
SIZES = (10_000, 100_000, 1_000_000)
GRAPH_UP_TO = 100_000  # building the graph of a million takes a quarter of an hour
DIM, CENTRES, SPREAD = 384, 2_000, 0.35  # of the vectors
WORDS, LENGTH, ASKED = 50_000, 60, 8  # in the vocabulary, in a passage, in a question
QUESTIONS, TIMES, TOP = 20, 3, 100
Floats = NDArray[np.float32]


def vectors(count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Unit vectors of passages, shape (count, DIM), and of questions near some of them."""
    centres = rng.standard_normal((CENTRES, DIM), np.float32)

    def near(which: NDArray[np.int64], spread: float) -> Floats:
        found = centres[which] + spread * rng.standard_normal((len(which), DIM), np.float32)
        unit: Floats = found / np.linalg.norm(found, axis=1, keepdims=True)
        return unit

    made = np.empty((count, DIM), np.float32)
    for start in range(0, count, 50_000):
        some = made[start : start + 50_000]
        some[:] = near(rng.integers(0, CENTRES, len(some)), SPREAD)
    return made, near(rng.integers(0, CENTRES, QUESTIONS), SPREAD)


def texts(count: int, rng: np.random.Generator) -> Sequence[str]:
    """Passages of `LENGTH` words by Zipf's law; a word is `w` and its rank."""
    weights = 1 / np.arange(1, WORDS + 1)
    edges = np.cumsum(weights / weights.sum())
    named = np.array([f"w{rank}" for rank in range(WORDS)])
    drawn = np.minimum(np.searchsorted(edges, rng.random((count, LENGTH))), WORDS - 1)
    return [" ".join(row) for row in named[drawn].tolist()]


def by_words(size: int, folder: Path, rng: np.random.Generator) -> dict[str, Any]:
    """BM25 over `size` passages: ours, and bm25s on the same matrix."""
    import bm25s

    analyzer = Analyzer("none")
    began = timed_once(lambda: write_index(texts(size, rng), folder, analyzer))
    ours = BM25Index(folder, size)
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    bare = bm25s.BM25()
    names = (("data", DATA), ("indices", ROWS), ("indptr", STARTS))
    bare.scores = {part: np.load(folder / name) for part, name in names} | {"num_docs": size}
    bare.vocab_dict = vocabulary(folder)
    bare.unique_token_ids_set, bare.nonoccurrence_array = set(bare.vocab_dict.values()), None
    took: dict[str, list[float]] = {"bm25s": [], "our BM25": []}
    for _ in range(QUESTIONS):
        ranks = np.exp(rng.uniform(math.log(20), math.log(20_000), ASKED)).astype(int)
        words = [word for rank in ranks if (word := f"w{rank}") in bare.vocab_dict]
        text, columns = " ".join(words), [[bare.vocab_dict[word] for word in words]]
        found = ours.search(text, TOP)
        theirs = bare.retrieve(columns, k=min(TOP, size), show_progress=False)
        given = [score for score in theirs.scores[0].tolist() if score > 0]
        if not np.allclose([score for _, score in found], given, rtol=1e-5):
            raise AssertionError(f"other scores than bm25s for {text!r}")
        took["our BM25"] += timed(lambda t=text: ours.search(t, TOP), TIMES)  # type: ignore[misc]
        took["bm25s"] += timed(
            lambda c=columns: bare.retrieve(c, k=min(TOP, size), show_progress=False),
            TIMES,  # type: ignore[misc]
        )
    return {"build_s": began, **{name: statistics.median(values) for name, values in took.items()}}


def vocabulary(folder: Path) -> dict[str, int]:
    """The column of each term of a stored index."""
    ends, joined = np.load(folder / TERM_STARTS).tolist(), (folder / TERMS).read_bytes()
    terms = [joined[start:end].decode() for start, end in itertools.pairwise(ends)]
    return dict(zip(terms, np.load(folder / COLUMNS).tolist(), strict=True))


def by_vectors(size: int, folder: Path, rng: np.random.Generator) -> dict[str, Any]:
    """Exact search and, up to `GRAPH_UP_TO`, by graph: ours over mapped vectors, and FAISS's own indexes."""
    import faiss

    faiss.omp_set_num_threads(1)
    made, asked = vectors(size, rng)
    np.save(folder / "vectors.npy", made)
    mapped = np.load(folder / "vectors.npy", mmap_mode="r").view(np.ndarray)
    flat = faiss.IndexFlatIP(DIM)
    flat.add(made)
    figures: dict[str, Any] = {}
    pairs: dict[str, tuple[FaissIndex, Any, Any]] = {"exact": (FaissIndex(mapped), flat, None)}
    if size <= GRAPH_UP_TO:
        figures["graph_build_s"] = timed_once(lambda: write_graph(made, folder / "graph"))
        graph = faiss.read_index(str(folder / "graph"))
        graph.storage, graph.own_fields = flat, False
        ours = FaissIndex(mapped, folder / "graph")
        figures["graph_recall@100"] = ours.recall(np.arange(0, size, size // 50), TOP)
        pairs["graph"] = (ours, graph, faiss.SearchParametersHNSW(efSearch=SEARCH_EFFORT))
    for name, (index, bare, parameters) in pairs.items():
        took: dict[str, list[float]] = {"ours": [], "FAISS": []}
        for vector in asked:
            row = np.ascontiguousarray(vector[None])
            took["ours"] += timed(lambda i=index, v=vector: i.search(v, TOP), TIMES)  # type: ignore[misc]
            took["FAISS"] += timed(
                lambda b=bare, r=row, p=parameters: b.search(r, TOP, params=p),
                TIMES,  # type: ignore[misc]
            )
        figures[f"our {name}"] = statistics.median(took["ours"])
        figures[f"FAISS {name}"] = statistics.median(took["FAISS"])
    return figures


def timed_once(work: Callable[[], Any]) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def growth(small: int, large: int, before: float, after: float) -> float:
    """The exponent of time over size."""
    return math.log(after / before) / math.log(large / small)


def measure(sizes: Sequence[int] = SIZES) -> dict[str, Any]:
    """Milliseconds of a search at each size, ratios at the largest, growth between the last two."""
    found: dict[int, dict[str, Any]] = {}
    for size in sizes:
        folder = Path(tempfile.mkdtemp(prefix="routescope-scale-"))
        rng = np.random.default_rng(size)
        try:
            found[size] = by_words(size, folder / "words", rng) | by_vectors(size, folder, rng)
        finally:
            shutil.rmtree(folder)
        log.info("%s passages: %s", f"{size:,}", json.dumps(found[size]))
    largest, graphs = found[sizes[-1]], [size for size in sizes if "our graph" in found[size]]
    ratios = {
        "our BM25 / bm25s": largest["our BM25"] / largest["bm25s"],
        "our exact search / FAISS": largest["our exact"] / largest["FAISS exact"],
    }
    if graphs:
        at = found[graphs[-1]]
        ratios["our graph search / FAISS"] = at["our graph"] / at["FAISS graph"]
    grown = {
        name: growth(known[-2], known[-1], found[known[-2]][name], found[known[-1]][name])
        for name in ("our BM25", "our exact", "our graph")
        if len(known := [size for size in sizes if name in found[size]]) > 1
    }
    return {"ms": {str(size): found[size] for size in sizes}, "growth": grown, "ratios": ratios}


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES)
    log.info(json.dumps(measure(parser.parse_args().sizes), indent=2))
