"""The server's memory over 1,000 visits of pages and 5 evaluations: `python -m bench.run visits`.

Anonymous memory and mapped files, of the server's process alone. One person looks at all pages in turn, with
three runs; after each 200 visits the routes that the page offers are evaluated on the example questions.
"""

from __future__ import annotations

import logging
import os
import random
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from bench.engine import CORPUS
from bench.people import ask
from bench.results import machine
from bench.team import WARM
from bench.visitor import Visitor
from core.domain import settings as settings_module
from core.evaluation import sets
from scripts.serving import served

log = logging.getLogger("bench")
VISITS, EVALUATIONS = 1_000, 5
RUN_PAGES = ("why", "transform", "fusion", "evaluators", "latency")  # which show one run
LOOK_S = 1.0  # between two looks whether an evaluation has ended


def resident(process: subprocess.Popen[bytes]) -> int:
    """MiB of memory that a process holds."""
    return round(psutil.Process(process.pid).memory_info().rss / 2**20)


def look(person: Visitor, chance: random.Random, runs: list[str]) -> None:
    """One visit of one page."""
    page = chance.choice((*RUN_PAGES, *WARM))
    if page in RUN_PAGES:
        person.open(page, run=chance.choice(runs))
    else:
        person.open(page)


def evaluate(person: Visitor) -> float:
    """Seconds of an evaluation as the page offers it, from its button to the page with its figures."""
    person.open("evaluate", labels=CORPUS)
    person.until("ev_name")
    made = person.ending("ev_name")
    began = time.perf_counter()
    person.press("ev_begin")
    while True:
        time.sleep(LOOK_S)
        person.open("evaluate", evaluation=made)  # until it is there, the page shows another one or none
        if person.asked("evaluation") == made and not person.has(f"evaluate_stop:{made}"):
            return time.perf_counter() - began


def measure(visits: int = VISITS, evaluations: int = EVALUATIONS) -> dict[str, Any]:
    """MiB at the first page, after each page was opened once, and then after each part of the visits."""
    here = settings_module.load()
    home = Path(tempfile.mkdtemp(prefix="routescope-visits-"))
    for name in ("indexes", "enrichments"):
        (home / name).symlink_to(here.home / name)
    questions = [one.query.text for one in sets.read(CORPUS, None, split="test").questions][:3]
    chance, about = random.Random(0), machine()
    with served(home / "server.log", {"ROUTESCOPE_HOME": str(home)}) as (address, process):
        person = Visitor(address)
        person.open("")
        memory = {"first page": resident(process)}
        runs = []
        for text in questions:
            ask(person, text)
            runs.append(person.asked("run"))
        for page in (*RUN_PAGES, *WARM):
            person.open(page, **({"run": runs[0]} if page in RUN_PAGES else {}))
        memory["each page once, three runs"] = resident(process)
        took = []
        for part in range(1, evaluations + 1):
            for _ in range(visits // evaluations):
                look(person, chance, runs)
            memory[f"{part * (visits // evaluations)} visits"] = resident(process)
            took.append(evaluate(person))
            memory[f"and {part} evaluations"] = resident(process)
            log.info("%s", memory)
        errors = person.errors
        person.close()
    return {
        "machine": about,
        "load_after": os.getloadavg()[0],
        "memory_mib": memory,
        "evaluation_s": took,
        "errors": errors,
    }
