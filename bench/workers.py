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
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

os.environ.setdefault("OMP_NUM_THREADS", "1")

from bench.engine import CORPUS
from bench.results import keep, machine
from core.backends.workers.place import WorkPlace
from core.backends.workers.pool import Pool
from core.domain import settings as settings_module
from core.domain.types import Query
from core.engine.engine import Engine
from core.engine.request import Request
from core.evaluation import runner
from core.evaluation.experiment import Prepared, conditions_of, prepare
from core.evaluation.outcome import Journal
from core.evaluation.runner import Spread, spread
from core.evaluation.spec import Spec
from core.store import Store
from core.store.codec import dumps, from_document, to_document

# Those that search, without a reranker's model, which takes all cores for itself.
ROUTES = ("bm25", "dense", "hybrid_rrf", "hybrid_linear", "mmr", "dedupe", "iterative", "memory")
QUESTIONS, ROUNDS, TASKS = 120, 3, 1000


def measure() -> dict[str, Any]:
    """Questions per second of each place, the processor time of each part of it, and what a task costs."""
    about = machine()  # with the load before anything is measured
    engine = Engine(settings_module.load())
    engine.embedder(engine.corpus(CORPUS).info.embedder)
    ready = prepare(engine, Spec(CORPUS, ROUTES, split="all", queries=QUESTIONS))
    places: dict[str, WorkPlace | None] = {
        "one process": None,
        "1 worker": WorkPlace(1),
        "2 workers": WorkPlace(2),
    }
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in places}
    for _ in range(ROUNDS):
        for name, place in places.items():
            taken[name].append(_asked(engine, ready, place))
    rate = {name: QUESTIONS / statistics.median(one["wall"] for one in some) for name, some in taken.items()}
    return {
        "machine": about,
        "routes": list(ROUTES),
        "questions": QUESTIONS,
        "seconds": {name: [round(one["wall"], 2) for one in some] for name, some in taken.items()},
        "questions_per_second": {name: round(value, 2) for name, value in rate.items()},
        "overhead_ms_per_question": round(1000 * (1 / rate["1 worker"] - 1 / rate["one process"]), 2),
        "speedup_2_workers": round(rate["2 workers"] / rate["one process"], 3),
        "processor_ms_per_question": {
            name: {
                part: round(1000 * statistics.median(one[part] for one in some) / QUESTIONS, 2)
                for part in ("client", "scheduler", "workers")
            }
            for name, some in taken.items()
        },
        "load_after": os.getloadavg()[0],
        **_tasks(engine),
        **_client(engine),
    }


def _asked(engine: Engine, ready: Prepared, place: WorkPlace | None) -> dict[str, float]:
    """Seconds of asking all questions with their runs kept, once workers are there and have loaded what they
    need: "wall" by the clock, and processor time by part.
    """
    few = ready.labelled.questions[: 4 * (place.workers if place else 1)]
    with tempfile.TemporaryDirectory() as folder, spread(place, engine) as workers:
        runner.run(engine, replace(ready.labelled, questions=few), ready.plan, workers=workers)
        with (
            closing(Store(Path(folder) / "runs.sqlite")) as store,
            Journal.open(Path(folder), conditions_of(ready.plan, engine)) as journal,
        ):
            before, began = _processor(workers), time.perf_counter()
            runner.run(engine, ready.labelled, ready.plan, journal=journal, runs=store, workers=workers)
            wall, after = time.perf_counter() - began, _processor(workers)
    return {"wall": wall, **{part: after[part] - before[part] for part in after}}


def _processor(workers: Spread | None) -> dict[str, float]:
    """Processor seconds so far of this process, of the scheduler's and of the workers'."""
    found = {"client": time.process_time(), "scheduler": 0.0, "workers": 0.0}
    if workers is not None and (pid := workers.pid) is not None:
        process = psutil.Process(pid)
        for part, some in (("scheduler", [process]), ("workers", process.children(recursive=True))):
            found[part] = sum(sum(one.cpu_times()[:2]) for one in some)
    return found


def _tasks(engine: Engine) -> dict[str, float]:
    """What starting two workers takes, and a task that does nothing."""
    began = time.perf_counter()
    with Pool(WorkPlace(2), engine.settings) as pool:
        start = time.perf_counter() - began
        nothing: dict[str, str] = {}
        calls = ((number, nothing) for number in range(TASKS))
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
    keep("workers", measure())
