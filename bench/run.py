"""Measure what docs/figures.md quotes under Speed: `python -m bench.run [--model]`, into bench/results.json.

Ratios are taken side by side in one run, because absolute times drift with the machine and the hour.
`--model` adds the routes that ask the language model, with an empty cache: some minutes.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from core.domain import settings as settings_module
from core.domain.machine import processor
from core.domain.settings import PROJECT, Settings
from core.domain.types import Query, Run
from core.engine.engine import Engine, Request
from core.evaluation import sets
from core.routes.registry import routes

log = logging.getLogger("bench")
OUT = PROJECT / "bench" / "results.json"
CORPUS = "support"
COLD = """
import time; began = time.perf_counter()
from core.engine.engine import Engine, Request
from core.domain.settings import load
from core.domain.types import Query
run = Engine(load()).ask(Request(Query("How do I start a return?"), "support", ("hybrid_rrf",)))
print(time.perf_counter() - began, run.results[0].status)
"""


def machine() -> dict[str, Any]:
    """What the figures come from."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
        "at": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


def spread(values: list[float]) -> dict[str, float]:
    """Minimum, median and maximum."""
    return {"min": min(values), "median": statistics.median(values), "max": max(values), "n": len(values)}


def cold(times: int = 5) -> dict[str, Any]:
    """Seconds from a new process to the first hybrid result, Python's start included in `process_s`."""
    inside, whole = [], []
    for _ in range(times):
        began = time.perf_counter()
        out = subprocess.run(
            [sys.executable, "-c", COLD], cwd=PROJECT, capture_output=True, text=True, check=True
        )
        whole.append(time.perf_counter() - began)
        inside.append(float(out.stdout.split()[0]))
    return {"first_hybrid_result_s": spread(inside), "process_s": spread(whole)}


def own_ms(run: Run) -> float:
    """The time of the work that was done in this run: its steps, without those taken over."""
    return sum(
        span.ms
        for result in run.results
        for span in result.spans
        if span.parent is None and span.shared_with is None
    )


def sharing(fresh: Callable[[], Engine], questions: list[Query], names: tuple[str, ...]) -> dict[str, Any]:
    """One run of all routes against the same routes run one at a time, question by question.

    `fresh` gives the engine for each run: one with an empty cache where a model is asked.
    """
    ratios, overheads, together_ms, alone_ms = [], [], [], []
    for query in questions:
        together = fresh().ask(Request(query, CORPUS, names))
        alone = [fresh().ask(Request(query, CORPUS, (name,), timing="isolated")) for name in names]
        for run in (together, *alone):
            for result in run.results:
                if result.status != "ok":
                    log.warning("%s: %s: %s", query.text[:40], result.route, result.error)
        summed = sum(run.wall_ms for run in alone)
        ratios.append(together.wall_ms / summed)
        overheads.append(together.wall_ms - own_ms(together))
        together_ms.append(together.wall_ms)
        alone_ms.append(summed)
    return {
        "routes": list(names),
        "questions": len(questions),
        "wall_ms_of_all_in_one_run": spread(together_ms),
        "sum_of_wall_ms_alone": spread(alone_ms),
        "ratio": spread(ratios),
        "engine_overhead_ms": spread(overheads),
    }


def timed(work: Callable[[], Any], times: int) -> list[float]:
    """Milliseconds of each of several calls, after one that does not count."""
    work()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append((time.perf_counter() - began) * 1000)
    return found


def bare(engine: Engine, questions: list[Query]) -> dict[str, Any]:
    """Our searches and the libraries called bare on the same corpus, in turn."""
    import bm25s
    import faiss
    import numpy as np
    import Stemmer

    corpus = engine.corpus(CORPUS)
    embedder = engine.embedder(corpus.info.embedder)
    passages = corpus.passages(range(corpus.size))
    stemmer = Stemmer.Stemmer("english")
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    library = bm25s.BM25()
    texts = [f"{p.title} {p.text}" for p in passages]
    library.index(
        bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False
    )
    flat = faiss.IndexFlatIP(corpus.info.dim)
    flat.add(corpus.vectors(range(corpus.size)))
    found: dict[str, list[float]] = {"bm25s": [], "our bm25": [], "faiss": [], "our dense": []}
    for query in questions:
        tokens = bm25s.tokenize([query.text], stopwords="en", stemmer=stemmer, show_progress=False)
        vector = embedder.embed_query(query.text)
        row = np.ascontiguousarray(vector[None])
        found["bm25s"] += timed(lambda t=tokens: library.retrieve(t, k=100, show_progress=False), 5)
        found["our bm25"] += timed(lambda q=query: corpus.search_sparse(q.text, 100), 5)
        found["faiss"] += timed(lambda r=row: flat.search(r, 100), 5)
        found["our dense"] += timed(lambda v=vector: corpus.search_dense(v, 100), 5)
    return {name: spread(values) for name, values in found.items()} | {"passages": corpus.size}


def throughput(engine: Engine, names: tuple[str, ...]) -> dict[str, Any]:
    """Labelled questions a second, all model-free routes, nothing cached."""
    labelled, _ = sets.tie(sets.read(CORPUS, None, split="test"), engine.corpus(CORPUS))
    began = time.perf_counter()
    for question in labelled.questions:
        engine.ask(Request(question.query, CORPUS, names))
    seconds = time.perf_counter() - began
    return {
        "questions": len(labelled.questions),
        "seconds": seconds,
        "a_second": len(labelled.questions) / seconds,
    }


def uncached(settings: Settings) -> Engine:
    """An engine with an empty cache and the same indexes and models."""
    home = Path(tempfile.mkdtemp(prefix="routescope-bench-"))
    (home / "indexes").symlink_to(settings.home / "indexes")
    return Engine(
        settings.model_copy(update={"home": home, "route_timeout_s": 600.0, "llm_timeout_s": 300.0})
    )


def main() -> None:
    """Write bench/results.json; a part that was not asked for keeps its last figures."""
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="store_true", help="also the routes that ask the language model")
    options = parser.parse_args()
    settings = settings_module.load()
    engine = Engine(settings)
    labelled, _ = sets.tie(sets.read(CORPUS, None, split="test"), engine.corpus(CORPUS))
    questions = [question.query for question in labelled.questions]
    free = tuple(name for name, route in routes().items() if not route.needs)
    known = json.loads(OUT.read_text()) if OUT.exists() else {}
    parts: dict[str, Callable[[], Any]] = {
        "cold start": cold,
        "sharing, model-free routes": lambda: sharing(lambda: engine, questions[:30], free),
        "search against the libraries called bare": lambda: bare(engine, questions[:20]),
        "evaluation, model-free routes": lambda: throughput(engine, free),
    }
    if options.model:
        first = tuple(name for name, route in routes().items() if route.first)
        parts["sharing, first routes"] = lambda: sharing(lambda: uncached(settings), questions[:2], first)
    known["machine"] = machine()
    for name, part in parts.items():
        log.info("%s ...", name)
        known[name] = part()
        OUT.write_text(json.dumps(known, indent=2) + "\n")
    log.info("%s", OUT.relative_to(PROJECT))


if __name__ == "__main__":
    main()
