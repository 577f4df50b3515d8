"""What the engine takes: a cold start, sharing, searches beside the libraries called bare, an evaluation.

Ratios are taken side by side in one run, because absolute times drift with the machine and the hour.
"""

from __future__ import annotations

import logging
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.results import spread, timed
from core.domain import settings as settings_module
from core.domain.settings import PROJECT, Settings
from core.domain.types import Query, Run
from core.engine.availability import without_model
from core.engine.engine import Engine
from core.engine.request import Request
from core.evaluation import sets
from core.routes.registry import routes

log = logging.getLogger("bench")
CORPUS = "support"
FLOOR = "import numpy, onnxruntime, faiss"
COLD = """
import time; began = time.perf_counter()
from core.engine.engine import Engine
from core.engine.request import Request
from core.domain.settings import load
from core.domain.types import Query
run = Engine(load()).ask(Request(Query("How do I start a return?"), "support", ("hybrid_rrf",)))
print(time.perf_counter() - began, run.results[0].status)
"""


def cold(times: int = 5) -> dict[str, Any]:
    """Seconds from a new process to the first hybrid result, Python's start included in `process_s`.

    In turn with a process that does no more than import the libraries, the floor.
    """
    inside, whole, floor = [], [], []
    for _ in range(times):
        for code, took in ((COLD, whole), (FLOOR, floor)):
            began = time.perf_counter()
            out = subprocess.run(
                [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
            )
            took.append(time.perf_counter() - began)
            if code is COLD:
                inside.append(float(out.stdout.split()[0]))
    figures = {"first_hybrid_result_s": inside, "process_s": whole, "libraries_alone_s": floor}
    return {name: spread(values) for name, values in figures.items()} | {
        "ratios": {"process / libraries alone": statistics.median(whole) / statistics.median(floor)}
    }


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
        "ratios": {"all in one run / alone": statistics.median(ratios)},
    }


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
    middle = {name: statistics.median(values) for name, values in found.items()}
    return {name: spread(values) for name, values in found.items()} | {
        "passages": corpus.size,
        "ratios": {
            "our BM25 / bm25s": middle["our bm25"] / middle["bm25s"],
            "our dense / faiss": middle["our dense"] / middle["faiss"],
        },
    }


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


def asked() -> tuple[Engine, list[Query], tuple[str, ...]]:
    """The engine, the labelled test questions of the corpus, and the routes that need no model."""
    engine = Engine(settings_module.load())
    labelled, _ = sets.tie(sets.read(CORPUS, None, split="test"), engine.corpus(CORPUS))
    free = tuple(route.name for route in without_model(engine, CORPUS))
    return engine, [question.query for question in labelled.questions], free


def share() -> dict[str, Any]:
    """All model-free routes on 30 questions, together and alone."""
    engine, questions, free = asked()
    return sharing(lambda: engine, questions[:30], free)


def search() -> dict[str, Any]:
    """Our searches on 20 questions beside the libraries called bare."""
    engine, questions, _ = asked()
    return bare(engine, questions[:20])


def evaluation() -> dict[str, Any]:
    """The labelled test questions with all model-free routes."""
    engine, _, free = asked()
    return throughput(engine, free)


def model() -> dict[str, Any]:
    """The first routes, which ask the language model, on two questions with an empty cache: minutes."""
    _, questions, _ = asked()
    first = tuple(name for name, route in routes().items() if route.first)
    return sharing(lambda: uncached(settings_module.load()), questions[:2], first)
