"""The source of a decision's regressions: an evaluation of their set, or the set asked now."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from core.domain.errors import BadInput
from core.domain.types import AnswerStyle
from core.evaluation import experiment_store
from core.evaluation.labels import desk as desks
from core.evaluation.release import regressions
from core.evaluation.release.facts import used_parameters
from core.evaluation.release.gate import Decision
from core.evaluation.release.measured import Measured
from core.evaluation.release.regressions import Regressions

if TYPE_CHECKING:
    from core.domain.settings import Settings
    from core.engine.engine import Engine
    from core.evaluation.experiment_store import Evaluation


def with_regressions(
    engine: Engine,
    given: str,
    measured: Measured,
    decision: Decision,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    ended: Callable[[], bool] = lambda: False,
) -> Decision:
    """Return the decision with the regressions of the route to ship, else of the nearest one.

    `given` is a label set, whose questions are asked now with the parameters of the evaluation, and with
    answers where it has answers; or the folder or name of an evaluation of one. BadInput for what is neither.
    """
    route = decision.chosen or decision.nearest or decision.baseline
    found = _evaluated(engine, given, route)
    if found is None:
        answering = measured.figures.answering
        found = regressions.ask(
            engine,
            given,
            route,
            used_parameters(measured, route),
            style=AnswerStyle(**answering) if answering else None,
            corpus=measured.figures.corpus or None,
            progress=progress,
            ended=ended,
        )
    return replace(decision, regressions=found)


def newest(settings: Settings, name: str, route: str) -> Evaluation | None:
    """Return the saved evaluation of a regression set in which a route was asked last, or None if it does not
    exist.
    """
    for saved in experiment_store.names(settings):
        folder = experiment_store.place(settings, saved)
        try:
            document = json.loads((folder / experiment_store.LABELLED).read_text(encoding="utf-8"))
            if document["spec"].get("labels") != name:
                continue
            opened = experiment_store.opened(folder)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, BadInput):
            continue  # damaged: the list of evaluations reports it
        if route in opened.routes and opened.outcomes:
            return opened
    return None


def _evaluated(engine: Engine, given: str, route: str) -> Regressions | None:
    """Return the regressions of a folder, or of a saved evaluation. None if a label set has that name."""
    if Path(given).is_dir():
        return regressions.of_evaluation(experiment_store.opened(Path(given)), route)
    known = [one.name for one in desks.sets(engine.store)] if engine.store is not None else []
    if given in known:
        return None
    saved = experiment_store.names(engine.settings)
    if given in saved:
        place = experiment_store.place(engine.settings, given)
        return regressions.of_evaluation(experiment_store.opened(place), route)
    raise BadInput(
        f"there are no regressions {given!r}: give a label set ({', '.join(known[:20]) or 'none'}), or an "
        f"evaluation of one ({', '.join(saved[:20]) or 'none'})"
    )
