"""Thirty people at one team's server for five minutes: `python -m bench.team [--people 30] [--minutes 5]`.

Half look at pages, a third ask routes that call no model, the rest label; each has an account, named by a
proxy header, and a websocket of their own to a real server. They read between two actions: that long is told
with the figures. An action's time is from the click to the finished page, with whatever else the processors
do beside, the thirty clients included.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import statistics
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil

from bench.engine import CORPUS
from bench.people import spread
from bench.results import keep, machine
from bench.visitor import Visitor
from core.corpus.index import open_corpus
from core.domain import settings as settings_module
from core.domain.settings import Settings
from core.evaluation import sets
from core.evaluation.dataset import Question
from core.evaluation.labels import desk
from core.store import Store
from core.store.labels import Pooled
from scripts.serving import served

log = logging.getLogger("bench")
SET, HEADER = "Team", "X-Forwarded-Email"
PAGES = (
    "why",
    "fusion",
    "latency",
    "sessions",
    "label",
    "evaluate",
    "release",
    "corpus",
    "present",
    "glossary",
)
READ_S = {
    "look": (5.0, 15.0),
    "ask": (10.0, 30.0),
    "label": (2.0, 4.0),
}  # least and most, between two actions
WARM = ("", *PAGES, "settings", "shortcuts", "transform", "evaluators", "tune")


class Team:
    """What the people were shown, shared by all threads."""

    def __init__(self, minutes: float, address: str) -> None:
        self.until, self.address = time.monotonic() + 60 * minutes, address
        self.took: dict[str, list[float]] = defaultdict(list)
        self.errors: list[str] = []
        self.memory: list[int] = []
        self.shared: list[str] = []  # ids of runs that everybody sees
        self.lock = threading.Lock()
        self.ended = threading.Event()

    def over(self) -> bool:
        """Whether the time is up."""
        return self.ended.is_set() or time.monotonic() > self.until

    def read(self, chance: random.Random, kind: str) -> None:
        """Do nothing for as long as somebody reads."""
        self.ended.wait(min(chance.uniform(*READ_S[kind]), max(0.0, self.until - time.monotonic())))

    def note(self, what: str, began: float) -> None:
        """An action that was finished now."""
        with self.lock:
            self.took[what].append(time.perf_counter() - began)


def look(team: Team, person: Visitor, chance: random.Random, questions: list[str]) -> None:  # noqa: ARG001
    """A page about a run that was shared, or about all."""
    page, run = chance.choice(PAGES), chance.choice(team.shared)
    began = time.perf_counter()
    if page in ("why", "fusion", "latency"):
        person.open(page, run=run)
    else:
        person.open(page)
    team.note("look", began)
    if "@example.org" not in person.text():
        raise RuntimeError(f"page {page} was not shown to an account")


def ask(team: Team, person: Visitor, chance: random.Random, questions: list[str]) -> None:
    """A question to the routes that call no model, from the click on Run to the finished page."""
    began = time.perf_counter()
    person.open("", q=chance.choice(questions), corpus=CORPUS)
    team.note("open Compare", began)
    began = time.perf_counter()
    person.press("run")
    if not person.asked("run"):
        raise RuntimeError("Run was pressed, and no run began")
    while person.has("stop"):
        person.wait()
    team.note("ask", began)


def label(team: Team, person: Visitor, chance: random.Random, questions: list[str]) -> None:  # noqa: ARG001
    """One grade, which counts once the page says that it is saved."""
    if not person.has("label_grade_2"):
        began = time.perf_counter()
        person.open("label", set=SET)
        team.note("open Label", began)
    began = time.perf_counter()
    person.press(f"label_grade_{chance.randrange(4)}")
    if "Saved " not in person.text():
        raise RuntimeError("a grade was given, and the page does not say that it is saved")
    team.note("label", began)


def live(team: Team, number: int, kind: str, questions: list[str]) -> None:
    """Do the same until the time is up."""
    act: Callable[..., None] = {"look": look, "ask": ask, "label": label}[kind]
    chance = random.Random(number)
    person = Visitor(team.address, headers={HEADER: f"{kind}{number}@example.org"})
    team.ended.wait(chance.uniform(0, READ_S["look"][0]))
    while not team.over():
        try:
            act(team, person, chance, questions)
        except Exception as error:  # noqa: BLE001 - told with the figures
            person.errors.append(f"{kind}{number}: {type(error).__name__}: {error}")
            person.close()
        with team.lock:
            team.errors += person.errors
        person.errors.clear()
        person.took.clear()
        team.read(chance, kind)
    person.close()


def watch(team: Team, process: subprocess.Popen[bytes]) -> None:
    """The server's memory, every second."""
    server = psutil.Process(process.pid)
    while not team.over():
        team.memory.append(server.memory_info().rss)
        team.ended.wait(1.0)


def prepare(home: Path, settings: Settings) -> list[str]:
    """Roles for everybody and a set of labels; the questions that are asked."""
    (home / "routescope.toml").write_text('[team.roles]\n"*" = "labeller"\n', encoding="utf-8")
    questions = list(sets.read(CORPUS, None, split="test").questions)
    passages = open_corpus(CORPUS, settings=settings).passages(range(20))
    with closing(Store(home / "routescope.sqlite")) as store:
        desk.create(store, SET, CORPUS, [Question(one.id, one.query) for one in questions[:30]])
        pool = [Pooled(one, (("bm25", rank),)) for rank, one in enumerate(passages, 1)]
        desk.add_to_pool(store, SET, {one.id: pool for one in questions[:30]})
    return [one.query.text for one in questions]


def warm(address: str, home: Path, questions: list[str]) -> list[str]:
    """Open each page once, which imports it, and ask three questions that everybody sees."""
    person = Visitor(address, headers={HEADER: "first@example.org"})
    made = []
    for text in questions[:3]:
        person.open("", q=text, corpus=CORPUS)
        person.press("run")
        made.append(person.asked("run"))
        while person.has("stop"):
            person.wait()
    for page in WARM:
        person.open(page)
    person.close()
    with closing(Store(home / "routescope.sqlite")) as store:
        for run in made:
            store.share(run)
    if person.errors:
        raise RuntimeError(f"a page does not work: {person.errors[0]}")
    return made


def measure(people: int = 30, minutes: float = 5.0) -> dict[str, Any]:
    """Seconds by action (p50, p95, longest), errors, and the server's memory in MiB by quarters of time."""
    here = settings_module.load()
    home = Path(tempfile.mkdtemp(prefix="routescope-team-"))
    for name in ("indexes", "enrichments"):
        if (here.home / name).exists():
            (home / name).symlink_to(here.home / name)
    questions = prepare(home, here.model_copy(update={"home": home}))
    environment = {
        "ROUTESCOPE_HOME": str(home),
        "ROUTESCOPE_LLM_MODE": "replay",
        "ROUTESCOPE_PROXY_HEADER": HEADER,
        "ROUTESCOPE_PROXY_ADDRESSES": "127.0.0.1",
    }
    kinds = ["look"] * (people // 2) + ["ask"] * (people // 3)
    kinds += ["label"] * (people - len(kinds))
    about = machine()
    with served(home / "server.log", environment) as (address, process):
        made = warm(address, home, questions)
        team = Team(minutes, address)
        team.shared = made
        threads = [threading.Thread(target=watch, args=(team, process))]
        threads += [
            threading.Thread(target=live, args=(team, n, kind, questions)) for n, kind in enumerate(kinds)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    quarters = [team.memory[n * len(team.memory) // 4 : (n + 1) * len(team.memory) // 4] for n in range(4)]
    return {
        "machine": about,
        "load_after": os.getloadavg()[0],
        "people": {kind: kinds.count(kind) for kind in ("look", "ask", "label")},
        "minutes": minutes,
        "read_between_s": {kind: list(range_) for kind, range_ in READ_S.items()},
        "actions": {what: spread(seconds) for what, seconds in sorted(team.took.items())},
        "errors": team.errors,
        "memory_mib": [round(statistics.mean(one) / 2**20) for one in quarters if one],
    }


def main() -> None:
    """Measure, and add the figures to bench/results.json."""
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--dry", action="store_true", help="print the figures and keep none")
    options = parser.parse_args()
    found = measure(options.people, options.minutes)
    log.info("%s", json.dumps(found, indent=1))
    if not options.dry:
        keep("team", found)


if __name__ == "__main__":
    main()
