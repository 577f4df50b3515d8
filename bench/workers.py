"""Measure what workers cost and give: `python -m bench.workers`, into bench/results.json under its own name.

The model-free routes over the example questions, asked by one process and by 1 and 2 workers of this machine,
in turns of one run, because absolute times drift; and what one task costs that does nothing.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from bench.run import CORPUS, OUT, machine
from core.backends.workers.place import Place
from core.backends.workers.pool import Pool
from core.domain import settings as settings_module
from core.domain.types import Query
from core.engine.engine import Engine, Request
from core.evaluation import runner
from core.evaluation.experiment import Prepared, conditions_of, prepare
from core.evaluation.journal import Journal
from core.evaluation.spec import Spec
from core.evaluation.spread import spread
from core.store import Store
from core.store.codec import dumps, from_document, to_document

NAME = "workers, model-free routes"
# Those that search, without a reranker's model, which takes all cores for itself.
ROUTES = ("bm25", "dense", "hybrid_rrf", "hybrid_linear", "mmr", "dedupe", "iterative", "memory")
QUESTIONS, ROUNDS, TASKS = 120, 3, 1000


def measure() -> dict[str, Any]:
    """Questions per second of each place, what a task and a start cost, and what the client does of each."""
    engine = Engine(settings_module.load())
    engine.embedder(engine.corpus(CORPUS).info.embedder)
    ready = prepare(engine, Spec(CORPUS, ROUTES, split="all", queries=QUESTIONS))
    seconds: dict[str, list[float]] = {"one process": [], "1 worker": [], "2 workers": []}
    places: dict[str, Place | None] = {"one process": None, "1 worker": Place(1), "2 workers": Place(2)}
    for _ in range(ROUNDS):
        for name, place in places.items():
            seconds[name].append(_seconds(engine, ready, place))
    rate = {name: QUESTIONS / statistics.median(took) for name, took in seconds.items()}
    return {
        "machine": machine(),
        "routes": list(ROUTES),
        "questions": QUESTIONS,
        "seconds": seconds,
        "questions_per_second": {name: round(value, 2) for name, value in rate.items()},
        "overhead_ms_per_question": round(1000 * (1 / rate["1 worker"] - 1 / rate["one process"]), 2),
        "speedup_2_workers": round(rate["2 workers"] / rate["one process"], 3),
        **_tasks(engine),
        **_client(engine),
    }


def _seconds(engine: Engine, ready: Prepared, place: Place | None) -> float:
    """Of asking all questions with their runs kept, once workers are there and have loaded what they need."""
    with tempfile.TemporaryDirectory() as folder:
        with spread(place, engine) as workers:
            few = ready.labelled.questions[: 4 * (place.workers if place else 1)]
            runner.run(
                engine, replace(ready.labelled, questions=few), ready.plan, workers=workers
            )  # opens all
            store = Store(Path(folder) / "runs.sqlite")
            with Journal.open(Path(folder), conditions_of(ready.plan, engine)) as journal:
                began = time.perf_counter()
                runner.run(engine, ready.labelled, ready.plan, journal=journal, runs=store, workers=workers)
                took = time.perf_counter() - began
            store.close()
        return took


def _tasks(engine: Engine) -> dict[str, float]:
    """What starting two workers takes, and a task that does nothing."""
    began = time.perf_counter()
    with Pool(Place(2), engine.settings) as pool:
        start = time.perf_counter() - began
        calls = ((number, {}) for number in range(TASKS))
        began = time.perf_counter()
        for _ in pool.each("core.backends.workers.inside:nothing", calls, lambda: False):
            pass
        each = (time.perf_counter() - began) / TASKS
    return {"start_s": round(start, 2), "task_ms": round(1000 * each, 2)}


def _client(engine: Engine) -> dict[str, float]:
    """What the process that writes the journal does of each question: the bound on any number of workers."""
    run = engine.ask(Request(Query("How do I start a return?"), CORPUS, ROUTES, stored=False))
    text = dumps(to_document(run))
    took = []
    for _ in range(50):
        began = time.perf_counter()
        from_document(json.loads(text))
        took.append(time.perf_counter() - began)
    return {"run_kb": round(len(text) / 1000, 1), "read_run_ms": round(1000 * statistics.median(took), 2)}


if __name__ == "__main__":
    found = json.loads(OUT.read_text(encoding="utf-8"))
    found[NAME] = measure()
    OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
