"""Indexing 10,000 to 1,000,000 passages: `python -m bench.run indexing`.

The embedder costs next to nothing, so that what is left is the program's own work: reading, cutting, storing,
words, checkpoints, the graph. Each size is indexed by a process of its own from one file of rows, then opened
by another one.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.scale import CENTRES, DIM, SPREAD, texts
from core.backends.base import Matrix, Vector
from core.corpus import index
from core.domain import settings as settings_module
from core.domain.process_setup import settle

log = logging.getLogger("bench")
SIZES = (10_000, 100_000, 1_000_000)
NAME = "rows"
BLOCK = 50_000  # texts made at once
NOISE = 4_093  # rows of noise, a prime: texts rarely share one and its centre


class FreeEmbedder:
    """Vectors around centres, told by a checksum of the text: a few microseconds each."""

    name, dim = "free", DIM

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self._centres = rng.standard_normal((CENTRES, DIM), np.float32)
        self._noise = SPREAD * rng.standard_normal((NOISE, DIM), np.float32)

    def embed(self, texts: Sequence[str]) -> Matrix:
        sums = np.array([zlib.crc32(text.encode()) for text in texts])
        found = self._centres[sums % CENTRES] + self._noise[sums % NOISE]
        unit: Matrix = found / np.linalg.norm(found, axis=1, keepdims=True)
        return unit

    def embed_query(self, text: str) -> Vector:
        return self.embed([text])[0]


def rows(size: int, file: Path) -> None:
    """Documents of one passage each, as JSON lines."""
    rng = np.random.default_rng(size)
    with file.open("w", encoding="utf-8") as out:
        for start in range(0, size, BLOCK):
            for at, text in enumerate(texts(min(BLOCK, size - start), rng), start):
                out.write(json.dumps({"_id": f"{at:07d}", "title": f"row {at}", "text": text}) + "\n")


def one(folder: Path) -> dict[str, Any]:
    """Index the rows in `folder`; seconds, those of the processor by process, MiB of memory of its own."""
    settle()
    most, done = [0], threading.Event()
    watching = threading.Thread(target=_watch, args=(most, done))
    watching.start()
    settings = settings_module.load(home=folder / "home")
    began = time.perf_counter()
    corpus = index.build(NAME, folder / f"{NAME}.jsonl", settings=settings, embedder=FreeEmbedder())
    took = time.perf_counter() - began
    done.set()
    watching.join()
    own, child = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "passages": corpus.size,
        "index": corpus.info.vector_index,
        "recall": corpus.info.recall,
        "seconds": took,
        "processor_s": own.ru_utime + own.ru_stime,
        "reader_s": child.ru_utime + child.ru_stime,
        "own_mib": most[0] / 1024,
        "vectors_mib": corpus.size * DIM * 4 / 2**20,
        "on_disk_mib": corpus.info.bytes / 2**20,
        "stages_s": {name: round(ms / 1000, 2) for name, ms in corpus.info.build_ms.items()},
    }


def opened(folder: Path) -> dict[str, Any]:
    """Seconds of opening the index, and of its first search by words and by a vector."""
    settings = settings_module.load(home=folder / "home")
    began = time.perf_counter()
    corpus = index.open_corpus(NAME, settings=settings)
    took = time.perf_counter() - began
    corpus.search_sparse("w300 w2000", 10)
    words = time.perf_counter() - began
    corpus.search_dense(FreeEmbedder().embed_query("w300 w2000"), 10)
    dense = time.perf_counter() - began
    return {"open_s": took, "first_words_s": words - took, "first_dense_s": dense - words}


def _watch(most: list[int], done: threading.Event) -> None:
    """The most memory of this process that is no mapped file, in KiB."""
    while not done.wait(0.2):
        status = Path("/proc/self/status").read_text(encoding="ascii")
        most[0] = max(most[0], int(status.split("RssAnon:")[1].split()[0]))


def measure(sizes: Sequence[int] = SIZES) -> dict[str, Any]:
    """The figures of each size."""
    found = {}
    for size in sizes:
        folder = Path(tempfile.mkdtemp(prefix="routescope-indexing-"))
        try:
            rows(size, folder / f"{NAME}.jsonl")
            told: dict[str, Any] = {}
            for what in ("one", "opened"):
                command = [sys.executable, "-m", "bench.indexing", "--in", str(folder), "--what", what]
                told |= json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            found[f"{size}"] = told
        finally:
            shutil.rmtree(folder)
        log.info("%s passages: %s", f"{size:,}", json.dumps(told))
    return {"load_after": os.getloadavg()[0], "sizes": found}


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--in", dest="folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--what", choices=("one", "opened"), default="one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is None:
        log.info(json.dumps(measure(options.sizes), indent=2))
    else:
        print(json.dumps((one if options.what == "one" else opened)(options.folder)))  # noqa: T201
