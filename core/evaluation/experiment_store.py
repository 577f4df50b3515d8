"""Evaluations on the disk: a folder each, opened by pages and commands without asking anything again."""

from __future__ import annotations

import json
import logging
import re
import shutil
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from core.analysis.metrics import Values
from core.domain import people
from core.domain.errors import BadInput
from core.domain.settings import Settings
from core.domain.types import Run
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.outcome import JOURNAL, Journal, Outcomes, alone
from core.evaluation.scoring import route_values
from core.evaluation.stored import checked, whole_lines

FOLDER = "evaluations"  # in the home
log = logging.getLogger("routescope.evaluation")
DELETED = ".deleted"  # in that folder: evaluations that can be brought back
LABELLED, FIGURES, RUNS = "labelled.json", "metrics.json", "runs.sqlite"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


@dataclass(frozen=True)
class Evaluation:
    """An evaluation as it is on the disk: its questions, what each route did with each, and the figures.

    `figures` is the content of metrics.json, {} before the first end. `outcomes` has the finished questions.
    """

    name: str
    folder: Path
    spec: Mapping[str, Any]
    labelled: LabelledSet
    outcomes: Outcomes
    figures: Mapping[str, Any]

    @property
    def routes(self) -> tuple[str, ...]:
        """Return the routes measured, in order."""
        return tuple(self.figures.get("routes") or next(iter(self.outcomes.values()), {}))

    @property
    def baseline(self) -> str:
        """Return the route that the others are compared with."""
        return str(self.figures.get("baseline") or self.spec.get("baseline") or self.routes[0])

    @cached_property
    def questions(self) -> dict[str, Question]:
        """Return the questions by id, in order."""
        return {question.id: question for question in self.labelled.questions}

    @cached_property
    def values(self) -> dict[str, dict[str, Values]]:
        """Return route -> question -> metric -> value, of the labelled questions at which the route ended
        well.
        """
        return {route: route_values(self.labelled, self.outcomes, route) for route in self.routes}

    def run_id(self, question: str) -> str:
        """Return the id of the run in which the question was asked, or "" if none was kept."""
        return next((one.run for one in self.outcomes.get(question, {}).values() if one.run), "")

    def run(self, question: str) -> Run:
        """Return the run in which a question was asked, with its spans. Raises BadInput if none was kept."""
        return self.stored(self.run_id(question), question)

    def stored(self, id: str, question: str) -> Run:
        """Return a run of a question by its id, or "" if it does not exist; an audit keeps several of one
        question.
        """
        from core.store import Store

        if not id or not (self.folder / RUNS).is_file():
            raise BadInput(f"evaluation {self.name} saved no run of question {question!r}")
        with closing(Store(self.folder / RUNS)) as store:
            return store.load(id)


def place(settings: Settings, name: str) -> Path:
    """Return the folder of the evaluation of that name, there or not. Raises BadInput for a name that is not
    allowed.
    """
    if not NAME.fullmatch(name):
        raise BadInput(
            f"evaluation {name!r}: give up to 80 letters, digits, '.', '_', '-', a letter or digit first"
        )
    return settings.home / FOLDER / name


def names(settings: Settings) -> list[str]:
    """Return the evaluations kept here, the one changed last first."""
    empty(settings)
    folders = [path.parent for path in (settings.home / FOLDER).glob(f"[!.]*/{LABELLED}")]
    return [path.name for path in sorted(folders, key=lambda one: max(stamp(one)), reverse=True)]


def opened(folder: Path) -> Evaluation:
    """Return the evaluation in a folder. Raises BadInput if it does not exist, or it is damaged or of an
    earlier version.
    """
    try:
        document = json.loads((folder / LABELLED).read_text(encoding="utf-8"))
        labelled, spec = checked(TypeAdapter(LabelledSet), document["set"]), document["spec"]
        path = folder / FIGURES
        figures = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        outcomes = Journal.saved(folder)
    except FileNotFoundError as error:
        missing = Path(str(error.filename)).name
        raise BadInput(f"{folder} contains no evaluation: {missing} is missing") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise BadInput(f"the evaluation in {folder} is damaged: {type(error).__name__}: {error}") from None
    asked = {q.id: outcomes[q.id] for q in labelled.questions if q.id in outcomes}
    return Evaluation(folder.name, folder, spec, labelled, asked, figures)


def stamp(folder: Path) -> tuple[float, ...]:
    """Equal as long as nothing in the folder was written: what a page may keep an opened evaluation by."""
    paths = (folder / name for name in (LABELLED, JOURNAL, FIGURES))
    return tuple(path.stat().st_mtime if path.is_file() else 0.0 for path in paths)


def remove(settings: Settings, name: str) -> None:
    """Delete an evaluation with its runs; until the undo time has passed `restore` brings it back.

    Raises BadInput if it does not exist or another process writes to it, NotAllowed for another person's.
    """
    people.require_own(people.maker("evaluation begun", name))
    folder = place(settings, name)
    if not folder.is_dir():
        raise BadInput(f"there is no evaluation {name!r}; there are: {', '.join(names(settings)) or 'none'}")
    with alone(folder):
        there = folder.parent / DELETED / f"{time.time():.6f} {name}"
        there.parent.mkdir(exist_ok=True)
        folder.rename(there)
    people.record("evaluation deleted", name)
    timer = threading.Timer(60 * settings.delete_undo_minutes, empty, (settings,))
    timer.daemon = True  # a process that opens the home later does what this one leaves
    timer.start()


def restore(settings: Settings, name: str) -> None:
    """Bring back the evaluation that was deleted last under that name.

    Raises BadInput if none can be brought back or the name is in use again, NotAllowed for another person's.
    """
    people.require_own(people.maker("evaluation begun", name))
    folder = place(settings, name)
    empty(settings)
    found = [path for path in _deleted(settings) if path.name.partition(" ")[2] == name]
    if not found:
        known = ", ".join(deleted(settings))
        raise BadInput(f"no deleted evaluation {name!r} can be restored; there are: {known or 'none'}")
    if folder.exists():
        raise BadInput(f"an evaluation {name!r} exists; delete that one first")
    found[0].rename(folder)
    people.record("evaluation restored", name)


def deleted(settings: Settings) -> list[str]:
    """Return the names of the evaluations that can be brought back, the one deleted last first."""
    return list(dict.fromkeys(path.name.partition(" ")[2] for path in _deleted(settings)))


def empty(settings: Settings) -> None:
    """Delete for good the evaluations that were deleted longer ago than the undo time."""
    until = time.time() - 60 * settings.delete_undo_minutes
    for path in _deleted(settings):
        if float(path.name.partition(" ")[0]) > until:
            continue
        try:
            shutil.rmtree(path)
        except OSError as error:  # another process is at it, or may alone
            log.warning("the deleted evaluation in %s is not permanently deleted yet: %s", path, error)


def _deleted(settings: Settings) -> list[Path]:
    """Return the folders of deleted evaluations, "SECONDS NAME", the one deleted last first."""
    return sorted((settings.home / FOLDER / DELETED).glob("*.?????? *"), reverse=True)


def write_labelled(folder: Path, labelled: LabelledSet, spec: Mapping[str, Any]) -> None:
    """Write the questions with their judgements, so that the figures can be made again from the folder."""
    asked = {question.id for question in labelled.questions}
    qrels = {id: grades for id, grades in labelled.qrels.items() if id in asked}
    places = {id: known for id, known in labelled.places.items() if id in asked}
    kept = replace(labelled, qrels=qrels, places=places, reading=(), warnings=())
    document = {"spec": dict(spec), "set": to_jsonable_python(kept)}
    whole_lines(folder / LABELLED, [json.dumps(document)])
