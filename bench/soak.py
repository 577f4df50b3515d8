"""Ten people at one dashboard for an hour, while models die and corpora change: `python -m bench.soak`.

They ask, read, label and evaluate through the pages, each in a session of its own. Meanwhile the language
model's server is killed and starts again, the corpus is indexed anew with other content, and old runs are
deleted for good. At the end the dashboard's memory is flat, every run and label that a page said to be
stored is there, what was deleted is gone, and no page showed an error; else the exit code is 1.

The model is one that is downloaded already (`--llm`); without it nobody asks a model.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.visitor import Visitor
from core.backends.llm import server_state
from core.corpus.index import open_corpus
from core.domain.settings import PROJECT, Settings
from core.domain.types import Query
from core.evaluation import experiment_store
from core.evaluation.dataset import Question
from core.evaluation.labels import desk
from core.store import Store
from core.store.labels import Judgement, Pooled
from scripts.serving import served

log = logging.getLogger("soak")
CORPUS, SET = "notes", "Soak"
TOPICS = ("returns", "refunds", "fragile goods", "express parcels", "customs", "damage", "invoices", "keys")
DOCUMENTS = 80
KEEP = 12  # newest runs that are never deleted: somebody may look at them
GROWTH = 1.10, 60 * 2**20  # of the memory, from its second quarter to its last: factor and bytes


@dataclass
class Told:
    """What the people were told, and what went wrong; shared by all threads."""

    until: float
    runs: list[str] = field(default_factory=list)  # that a page showed as ended
    labels: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # saved, by annotator
    deleted: list[str] = field(default_factory=list)
    evaluated: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    memory: list[int] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)

    def over(self) -> bool:
        """Whether the time is up."""
        return self.ended.is_set() or time.monotonic() > self.until

    def pause(self, seconds: float) -> None:
        """Do nothing for as long, or until the time is up."""
        self.ended.wait(min(seconds, max(0.0, self.until - time.monotonic())))


# --- the people


def ask(person: Visitor, told: Told, chance: random.Random, name: str, *, models: bool) -> None:
    """Ask something, wait for the run's end, look at it on another page."""
    topic = chance.choice(TOPICS)
    person.open("", q=f"What of {topic} on day {chance.randrange(30)}, asks {name}?", corpus=CORPUS)
    person.press("choose:First choice" if models else "choose:Without a language model")
    person.press("run")
    run = person.asked("run")
    if not run:
        raise RuntimeError("Run was pressed, and no run began")
    while person.has("stop"):
        person.wait()
    with told.lock:
        told.runs.append(run)
    person.open(chance.choice(("why", "transform", "fusion", "evaluators", "latency")), run=run)


def label(person: Visitor, told: Told, chance: random.Random, name: str) -> None:
    """Grade twenty passages; each grade counts once the page says that it is saved."""
    person.open("label", set=SET, annotator=name)
    for _ in range(20):
        if not person.has(f"label_grade_{2}") or told.over():
            return
        person.press(f"label_grade_{chance.randrange(4)}")
        if "Saved " not in person.text():
            raise RuntimeError("a grade was given, and the page does not say that it is saved")
        with told.lock:
            told.labels[name] += 1
        told.pause(chance.uniform(0.1, 0.6))


def evaluate(person: Visitor, told: Told, chance: random.Random, name: str) -> None:  # noqa: ARG001
    """Begin an evaluation on the labels, and follow it to its end."""
    person.open("evaluate", labels=SET)
    person.until("ev_name")
    made = person.ending("ev_name")
    person.press("ev_begin")
    while not told.over():
        told.pause(1.0)
        person.open("evaluate", evaluation=made)  # until it is there, the page shows another one or none
        if person.asked("evaluation") == made and not person.has(f"evaluate_stop:{made}"):
            with told.lock:
                told.evaluated.append(made)
            return


def read(person: Visitor, told: Told, chance: random.Random, name: str) -> None:  # noqa: ARG001
    """Look around."""
    with told.lock:
        newest = told.runs[-1:]
    person.open("sessions", search=chance.choice(("", "customs", "day 7")))
    person.open("corpus", corpus=CORPUS)
    for page in chance.sample(("present", "settings", "release", "tune", "shortcuts", "why"), 3):
        person.open(page)
    if newest:
        person.open("latency", run=newest[0], tab="Over all sessions")


def live(told: Told, address: str, name: str, do: Callable[..., None], **more: bool) -> None:
    """Do the same until the time is up; what goes wrong is noted, and the next try is made."""
    chance, person = random.Random(name), Visitor(address)
    while not told.over():
        try:
            do(person, told, chance, name, **more)
        except Exception as error:  # noqa: BLE001 - told at the end, with the exit code
            if not told.over():
                person.errors.append(f"{name}: {type(error).__name__}: {error}")
        with told.lock:
            told.errors += person.errors
            for what, seconds in person.took:
                told.took[what].append(seconds)
        person.errors, person.took = [], []
        told.pause(chance.uniform(0.2, 1.5))
    person.close()


# --- bad luck


def kill_models(told: Told, settings: Settings) -> None:
    """Kill the model's server as soon as it has served for a while; whoever asks next starts it again."""
    while not told.over():
        told.pause(20.0)
        found = server_state(settings)
        if found is not None and found.phase == "ready" and not told.over():
            os.kill(found.pid, signal.SIGKILL)
            told.counts["models killed"] += 1


def rebuild(told: Told, folder: Path, environment: dict[str, str]) -> None:
    """Index the corpus anew with another document changed."""
    turn = 0
    while not told.over():
        told.pause(25.0)
        if told.over():
            return
        turn += 1
        write(folder, turn % DOCUMENTS, f"Changed for the {turn}th time.")
        index(folder, environment)
        told.counts["corpora rebuilt"] += 1


def delete(told: Told, path: Path) -> None:
    """Delete old runs; the undo time is a second."""
    with closing(Store(path, undo_s=1.0)) as store:
        while not told.over():
            told.pause(5.0)
            with told.lock:
                old = [run for run in told.runs[:-KEEP] if run not in told.deleted][:5]
            for run in old:
                store.delete(run)
                told.deleted.append(run)
        store.deletion.undo_s = 0
        store.deletion.run()


def watch(told: Told, process: subprocess.Popen[bytes]) -> None:
    """The server's memory, every second."""
    server = psutil.Process(process.pid)
    while not told.over():
        told.memory.append(server.memory_info().rss)
        told.pause(1.0)


# --- before and after


def write(folder: Path, number: int, more: str = "") -> None:
    """One document of the corpus."""
    topic = TOPICS[number % len(TOPICS)]
    said = " ".join(f"On day {day} {topic} are looked at by desk {(number + day) % 9}." for day in range(8))
    text = f"# {topic.title()} {number}\n\n{said} {more}\n"
    (folder / f"{number:03}.md").write_text(text, encoding="utf-8")


def index(folder: Path, environment: dict[str, str]) -> None:
    """Index the folder as the corpus."""
    command = [sys.executable, "-m", "core", "index", str(folder), "--name", CORPUS, "--json"]
    subprocess.run(command, cwd=PROJECT, env=environment, check=True, capture_output=True)


def prepare(home: Path, environment: dict[str, str]) -> Settings:
    """The corpus, and a set of labels in which somebody has graded something of each question."""
    folder = home / CORPUS
    folder.mkdir()
    for number in range(DOCUMENTS):
        write(folder, number)
    index(folder, environment)
    here = {"home": home, "llm": environment["ROUTESCOPE_LLM"]}
    if "ROUTESCOPE_MODELS_DIR" in environment:
        here["models_dir"] = environment["ROUTESCOPE_MODELS_DIR"]
    settings = Settings(**here)
    corpus = open_corpus(CORPUS, settings=settings)
    passages = corpus.passages(range(corpus.size))
    with closing(Store(home / "routescope.sqlite")) as store:
        asked = [Question(f"q{n}", Query(f"What of {topic}?")) for n, topic in enumerate(TOPICS)]
        desk.create(store, SET, CORPUS, asked)
        for n, question in enumerate(asked):
            pool = [Pooled(one, (("bm25", rank),)) for rank, one in enumerate(passages, 1)]
            desk.add_to_pool(store, SET, {question.id: pool})
            good = [one for one in passages if one.doc_id == f"{n:03}.md"]
            given = [Judgement(question.id, one.id, "before", "person", "grade", 3) for one in good]
            desk.judge_all(store, SET, given)
    return settings


def linked(models: Path, llm: str, home: Path) -> Path | None:
    """A models folder of our own with that model, so that no other program's server is met; None without."""
    found = sorted(models.glob(f"{llm}*.gguf"))
    if not found:
        return None
    own = home / "models"
    own.mkdir()
    for file in models.iterdir():
        if file.name.startswith(found[0].name) or (file.is_dir() and file.name == "onnx"):
            (own / file.name).symlink_to(file)
    return own


def lost(told: Told, settings: Settings) -> list[str]:
    """What a page said to be stored and is not there, or to be deleted and is."""
    path = settings.home / "routescope.sqlite"
    with closing(Store(path)) as store:
        there = set(store.ids())
        with closing(sqlite3.connect(path)) as connection:
            sound = connection.execute("PRAGMA integrity_check").fetchone()[0]
        judged: dict[str, int] = defaultdict(int)
        for one in desk.load(store, SET).judgements:
            judged[one.annotator] += 1
        kept = [run for run in told.runs if run not in told.deleted]
        missing = [f"run {run} is lost" for run in kept if run not in there]
        missing += [f"run {run} was deleted and is there" for run in told.deleted if run in there]
        missing += [
            f"{count - judged[who]} labels of {who} are lost"
            for who, count in told.labels.items()
            if judged[who] < count
        ]
        for run in kept[:: max(1, len(kept) // 200)]:
            if run in there and store.load(run).status not in ("done", "cancelled"):
                missing.append(f"run {run} is {store.load(run).status}")
    missing += [
        f"evaluation {name} has no figures"
        for name in told.evaluated
        if not (experiment_store.place(settings, name) / experiment_store.FIGURES).is_file()
    ]
    return missing if sound == "ok" else [*missing, f"the file is damaged: {sound}"]


def growth(memory: list[int]) -> tuple[float, float, bool]:
    """The memory in its second quarter and in its last (medians, bytes), and whether that is flat."""
    quarter = max(1, len(memory) // 4)
    early = statistics.median(memory[quarter : 2 * quarter] or memory)
    late = statistics.median(memory[-quarter:])
    return early, late, late <= early * GROWTH[0] + GROWTH[1]


def report(told: Told, minutes: float, missing: list[str], log_file: Path) -> bool:
    """Log the figures; whether all held."""
    told_by_server = log_file.read_text(encoding="utf-8", errors="replace")
    tracebacks = len(re.findall(r"Traceback|Uncaught", told_by_server))
    early, late, flat = growth(told.memory)
    log.info("%.1f minutes, ten people", minutes)
    counts = {
        "runs": len(told.runs),
        "labels": sum(told.labels.values()),
        "evaluations": len(told.evaluated),
        "runs deleted": len(told.deleted),
        **told.counts,
    }
    log.info("%s", ", ".join(f"{count} {what}" for what, count in counts.items()))
    for what, times in sorted(told.took.items()):
        ordered = sorted(times)
        middle, p95 = statistics.median(times), ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
        log.info("%-32s %6d times, median %6.2f s, p95 %6.2f s", what, len(times), middle, p95)
    log.info("memory in MB by minute: %s", " ".join(f"{one / 1e6:.0f}" for one in told.memory[::60]))
    shown = "" if flat else ": NOT FLAT"
    log.info("memory in MB: %.0f in the second quarter, %.0f in the last%s", early / 1e6, late / 1e6, shown)
    counted: dict[str, int] = defaultdict(int)
    for error in (*told.errors, *missing):
        counted[error[:300]] += 1
    for error, count in sorted(counted.items(), key=lambda one: -one[1])[:40]:
        log.info("ERROR %d times: %s", count, error)
    log.info("%d errors on pages, %d rows lost", len(told.errors), len(missing))
    if tracebacks:
        log.info("%d tracebacks in the server's log, which ends: %s", tracebacks, told_by_server[-4000:])
    worked = bool(told.runs and told.labels and told.evaluated and told.deleted)
    if not worked:
        log.info("NOT ENOUGH was done to tell anything: let it run for longer")
    return worked and flat and not told.errors and not missing and not tracebacks


def main() -> int:
    """Run it and say how it went."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    logging.getLogger("websockets").setLevel(logging.WARNING)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--llm", default="smollm2-135m", help="a model that is downloaded already")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        home = Path(folder)
        models = linked(Settings().models_dir, given.llm, home)
        environment = {**os.environ, "ROUTESCOPE_HOME": str(home), "ROUTESCOPE_LLM": given.llm}
        environment |= {"ROUTESCOPE_ROUTE_TIMEOUT_S": "40", "ROUTESCOPE_LLM_TIMEOUT_S": "20"}
        if models is not None:
            environment["ROUTESCOPE_MODELS_DIR"] = str(models)
        log.info("model: %s", given.llm if models else f"none, as {given.llm} is not downloaded")
        settings = prepare(home, environment)
        with served(home / "server.log", environment) as (address, server):
            told = Told(time.monotonic() + 60 * given.minutes)
            people = [(f"asker-{n}", ask, {"models": n == 0 and models is not None}) for n in range(6)]
            people += [("ann", label, {}), ("bob", label, {}), ("eve", evaluate, {}), ("ray", read, {})]
            work = [
                threading.Thread(target=live, args=(told, address, name, do), kwargs=more, name=name)
                for name, do, more in people
            ]
            work += [
                threading.Thread(target=target, args=arguments, name=target.__name__)
                for target, arguments in (
                    (rebuild, (told, home / CORPUS, environment)),
                    (delete, (told, home / "routescope.sqlite")),
                    (watch, (told, server)),
                    *(((kill_models, (told, settings)),) if models is not None else ()),
                )
            ]
            for one in work:
                one.start()
            try:
                for one in work:
                    one.join()
            finally:
                told.ended.set()
            if server.poll() is not None:
                told.errors.append(f"the server ended with code {server.returncode}")
        if (found := server_state(settings)) is not None and found.pid:
            os.kill(found.pid, signal.SIGTERM)
        held = report(told, given.minutes, lost(told, settings), home / "server.log")
    log.info("it holds" if held else "it does NOT hold")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
