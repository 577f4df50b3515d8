"""How long people wait who ask at once: `python -m bench.people [--people 10] [--pause 0]`.

All routes that ask no model, over the corpus support. In the engine: from asking to the finished run. On
Compare: from the click on Run to the finished page, as browsers see it that only wait; each person is a
websocket of their own to a real server. The processors also run the ten who wait, so it is at most too slow.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.engine import CORPUS
from bench.results import keep, machine
from bench.visitor import Visitor
from core.domain import settings as settings_module
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine.availability import missing, why_not
from core.engine.engine import Engine
from core.engine.request import Request
from core.evaluation import sets
from core.routes.registry import routes
from core.store import Store
from scripts.serving import served

log = logging.getLogger("bench")
PATIENCE_S = 300.0


def spread(seconds: list[float]) -> dict[str, float]:
    """The median, what 95 % stay below, and the longest."""
    ordered = sorted(seconds)
    return {
        "p50_s": statistics.median(ordered),
        "p95_s": ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))],
        "max_s": ordered[-1],
        "n": len(ordered),
    }


def in_engine(settings: Settings, questions: list[str], people: int, each: int) -> dict[str, Any]:
    """Everybody asks `each` questions, one after the other, in threads of one process."""
    store = Store(settings.home / "routescope.sqlite")
    engine = Engine(settings, store)
    gaps = missing(engine, CORPUS)
    names = tuple(name for name, route in routes().items() if not route.asks() and not why_not(route, gaps))

    def ask(text: str) -> float:
        began = time.perf_counter()
        run = engine.start(Request(Query(text), CORPUS, names, models=False)).wait(PATIENCE_S)
        for result in run.results:
            if result.status != "ok":
                log.warning("%s: %s: %s", text[:40], result.route, result.error)
        return time.perf_counter() - began

    ask(questions[0])  # opens what is opened once
    alone = [ask(text) for text in questions[:each]]
    together: list[float] = []

    def person(number: int) -> None:
        for text in random.Random(number).sample(questions, each):
            together.append(ask(text))  # noqa: PERF401 - what was found before an error counts

    _side_by_side(person, people)
    store.close()
    return {"routes": list(names), "alone": spread(alone), "together": spread(together)}


def ask(person: Visitor, text: str) -> float:
    """Seconds from the click on Run to the finished page."""
    person.open("", q=text, corpus=CORPUS)
    person.press("choose:Without a language model")
    began = time.perf_counter()
    person.press("run")
    if not person.asked("run"):
        raise RuntimeError("Run was pressed, and no run began")
    while person.has("stop"):
        person.wait()
    return time.perf_counter() - began


def on_pages(address: str, questions: list[str], people: int, each: int, pause: float) -> dict[str, Any]:
    """The same through Compare, each in a session of their own, who reads for `pause` seconds on average."""
    first = Visitor(address)
    for text in questions[:2]:  # opens and imports what is opened and imported once
        ask(first, text)
    alone = [ask(first, text) for text in questions[:each]]
    together: list[float] = []
    errors = first.errors

    def person(number: int) -> None:
        one, chance = Visitor(address), random.Random(number)
        for text in chance.sample(questions, each):
            time.sleep(chance.uniform(0.0, 2 * pause))
            together.append(ask(one, text))
        one.close()
        errors.extend(one.errors)

    _side_by_side(person, people)
    first.close()
    return {"alone": spread(alone), "together": spread(together), "errors": errors}


def _side_by_side(work: Callable[[int], None], people: int) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(people)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    """Measure on a store of its own, and add the figures to bench/results.json."""
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=10)
    parser.add_argument("--questions", type=int, default=5, help="that each of them asks")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds people read, on pages")
    parser.add_argument("--only", choices=("engine", "pages"), help="leave the other out")
    parser.add_argument("--dry", action="store_true", help="print the figures and keep none")
    options = parser.parse_args()
    here = settings_module.load()
    home = Path(tempfile.mkdtemp(prefix="routescope-people-"))
    for name in ("indexes", "enrichments"):
        (home / name).symlink_to(here.home / name)
    questions = [question.query.text for question in sets.read(CORPUS, None, split="test").questions]
    found: dict[str, Any] = {"machine": machine(), "people": options.people, "pause_s": options.pause}
    if options.only != "pages":
        settings = here.model_copy(update={"home": home})
        found["engine"] = in_engine(settings, questions, options.people, options.questions)
        log.info("engine: %s", json.dumps(found["engine"]))
    if options.only != "engine":
        with served(environment={"ROUTESCOPE_HOME": str(home)}) as (address, _):
            found["pages"] = on_pages(address, questions, options.people, options.questions, options.pause)
        log.info("pages: %s", json.dumps(found["pages"]))
    if not options.dry:
        reading = f", reading {options.pause:.0f} s" if options.pause else ""
        keep(f"{options.people} people at once, model-free routes{reading}", found)


if __name__ == "__main__":
    main()
