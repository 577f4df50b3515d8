"""An LLM route's reported time alone and with three others asking at once: `python -m bench.turns`.

On the embedded model that the settings name. Each time the route is asked alone and then while others keep
the model busy, in turn, as absolute times drift with the machine and the hour. Nothing comes from the cache.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import tempfile
import threading
from pathlib import Path
from typing import Any

from bench.engine import CORPUS
from bench.results import keep, machine, spread
from core.analysis.waits import waited
from core.domain import settings as settings_module
from core.domain.types import Query, RouteResult
from core.engine.engine import Engine
from core.engine.request import Request
from core.evaluation import sets

log = logging.getLogger("bench")


def measured(engine: Engine, route: str, questions: list[Query], times: int, others: int) -> dict[str, Any]:
    """The route's time on one question, `times` times alone and with `others` who ask all the while."""
    draws = iter(range(1, 1_000_000))  # another seed each time: at temperature 0 the same text, asked anew
    lock = threading.Lock()

    def ask(query: Query) -> RouteResult:
        with lock:
            draw = next(draws)
        return engine.ask(Request(query, CORPUS, (route,), draw=draw, stored=False)).results[0]

    def busy(query: Query, stop: threading.Event, kept: list[RouteResult]) -> None:
        while not stop.is_set():
            kept.append(ask(query))

    ask(questions[0])  # starts the server
    alone: list[RouteResult] = []
    together: list[RouteResult] = []
    besides: list[RouteResult] = []
    for number in range(times):
        alone.append(ask(questions[0]))
        stop = threading.Event()
        threads = [
            threading.Thread(target=busy, args=(query, stop, besides)) for query in questions[1 : others + 1]
        ]
        for thread in threads:
            thread.start()
        together.append(ask(questions[0]))
        stop.set()
        for thread in threads:
            thread.join()
        told = [(one[-1].status, one[-1].ms, waited(one[-1].spans)) for one in (alone, together)]
        log.info("%d: alone %s, with others %s", number + 1, *told)
    every = (*alone, *together, *besides)
    return {
        "route": route,
        "model": engine.llm().model,
        "others": others,
        "alone_ms": spread([one.ms for one in alone]),
        "with_others_ms": spread([one.ms for one in together]),
        "ratio_of_medians": statistics.median(one.ms for one in together)
        / statistics.median(one.ms for one in alone),
        "on_the_clock_with_others_ms": spread([one.wall_ms for one in together]),
        "waited_for_others_ms": spread([waited(one.spans) for one in together]),
        "runs": len(every),
        "not_ok": [one.error for one in every if one.status != "ok"],
    }


def main() -> None:
    """Measure, and add the figures to bench/results.json."""
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--others", type=int, default=3)
    parser.add_argument("--route", default="hyde")
    parser.add_argument("--dry", action="store_true", help="print the figures and keep none")
    options = parser.parse_args()
    here = settings_module.load()
    home = Path(tempfile.mkdtemp(prefix="routescope-turns-"))
    (home / "indexes").symlink_to(here.home / "indexes")
    engine = Engine(here.model_copy(update={"home": home}))
    questions = [question.query for question in sets.read(CORPUS, None, split="test").questions]
    found = measured(engine, options.route, questions, options.times, options.others)
    log.info("%s", json.dumps(found))
    if not options.dry:
        keep("an LLM route alone and with others", {"machine": machine(), **found})


if __name__ == "__main__":
    main()
