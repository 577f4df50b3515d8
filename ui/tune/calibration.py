"""The thresholds of a saved evaluation: chosen on some of its questions, tested on the others, saved."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.domain.types import RouteResult
from core.evaluation.calibration import OBJECTIVES, WANTED, Objective
from core.evaluation.dataset import LabelledSet
from core.evaluation.experiment_store import Evaluation
from core.evaluation.tuning import batch_run as batches
from core.evaluation.tuning import threshold_cases
from core.evaluation.tuning.batch_run import BatchRun
from core.evaluation.tuning.calibrate import NAMES
from core.evaluation.tuning.threshold_cases import Found
from core.routes.registry import routes as known_routes
from ui.app import address, evaluated, routes, say, state
from ui.app.choice import choice, number
from ui.app.markup import cut
from ui.components import batch_run
from ui.tune import calibration_view
from ui.tune.test_split import divided

ROUTE, STEP, OBJECTIVE, WANTED_KEY = "cal_route", "cal_step", "cal_objective", "cal_wanted"
LEAST_WANTED, USUAL_WANTED = 0.01, 0.9
UNITS = {"question": "", "passage": ", passage by passage", "strip": ", piece by piece"}
FLOORS = {"threshold": "", "strip_floor": "floor · ", "floor": "floor · "}


def draw(evaluation: Evaluation) -> None:
    """Draw the choice of a threshold with its figures: of the evaluation, or of a route that can run now."""
    settings = state.engine().settings
    in_runs: Found = evaluated.once(
        evaluation, "thresholds", compute=lambda: threshold_cases.gathered(settings, evaluation)
    )
    names = list(dict.fromkeys(target.route for target in in_runs.targets))
    asked_now = [route.name for route in threshold_cases.batch_runnable() if route.name not in names]
    if not names:
        _nothing(evaluation, in_runs)
    if not (offered := [*names, *asked_now]):
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        titles = {
            name: cut(routes.title(name), 40) + " · not measured" * (name in asked_now) for name in offered
        }
        route = choice("route", ROUTE, "Route", titles, always=True, width=270)
        steps = st.container()
    if route in names:
        _chosen(in_runs, route, evaluation.labelled, ("runs",), evaluation, steps)
    elif (batch := _batch(evaluation, route)) is not None:
        found = _found_in(batch.name, batch)
        _chosen(found, route, batch.labelled, (batch.name,), evaluation, steps)


def _chosen(
    found: Found,
    route: str,
    labelled: LabelledSet,
    where: tuple[str, ...],
    evaluation: Evaluation,
    steps: Any,
) -> None:
    """Draw one threshold of a route by one objective."""
    targets = {target.key: target for target in found.targets if target.route == route}
    reasons = [f"“{step}”: {why}." for (of, step), why in found.unjudged.items() if of == route]
    if reasons:
        say.caption(f"Not calibrated here: {' '.join(reasons)}")
    if not targets:
        st.info("No step of this route compares a score with a threshold on these questions.")
        return
    with steps:
        named = {
            key: cut(f"{FLOORS.get(one.name, f'{one.name} · ')}{one.step}{UNITS[one.unit]}", 80)
            for key, one in targets.items()
        }
        key = choice("step", STEP, "Threshold", named, width=460)
    objective, wanted = _objective()
    parts = divided(labelled)
    if parts is None:
        return
    asked, total = len(evaluation.outcomes), len(labelled.questions)
    if labelled is not evaluation.labelled:
        asked = total  # the route was run over all of them
    elif asked < total:
        st.info(f"This evaluation is not finished: {asked} of {total} questions have been asked so far.")
    calibration_view.draw(targets[key], parts, objective, wanted, where, evaluation, asked=asked)


def _objective() -> tuple[Objective, float | None]:
    """Draw the choice of the objective."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        named = {one: f"target {one}" if one in WANTED else NAMES[one] for one in OBJECTIVES}
        objective = choice("objective", OBJECTIVE, "Chosen by", named, segmented=True)
        if objective not in WANTED:
            address.keep("wanted", None)
            return objective, None
        label = f"At least this {objective}"
        wanted = number("wanted", WANTED_KEY, label, LEAST_WANTED, 1.0, USUAL_WANTED, step=0.05, width=180)
    return objective, wanted or USUAL_WANTED


def _nothing(evaluation: Evaluation, found: Found) -> None:
    """Draw why there is no threshold to calibrate, and how to measure routes that have one."""
    st.subheader("No threshold in this evaluation", anchor=False)
    reasons = "; ".join(
        f"{routes.title(route)}, “{step}”: {why}" for (route, step), why in found.unjudged.items()
    )
    no_runs = "" if any(map(evaluation.run_id, evaluation.outcomes)) else " It saved no runs with steps."
    say.caption(
        f"No step of its {len(evaluation.routes)} routes compared a score with a threshold that labels can "
        f"judge.{no_runs} {reasons} Evaluate routes that grade passages, on dev and test questions."
    )
    having = [route.name for route in threshold_cases.having()]
    evaluated.begin("Evaluate routes that grade", "cal_evaluate", having)


def _batch(evaluation: Evaluation, route: str) -> BatchRun | None:
    """Return the route's batch run with the evaluation's parameters, or None with a way to start it."""
    corpus = str(evaluation.spec.get("corpus") or evaluation.labelled.name)
    parameters = dict((evaluation.spec.get("parameters") or {}).get(route, {}))
    if batches.begun(state.engine(), corpus, {route: parameters}) is None:
        say.caption(
            f"The evaluation has no steps of {routes.title(route)}. You can run the route now on all labelled"
            f" questions of {corpus}, without a language model or web search. The results are not stored."
        )
        if not st.button("Run the route", key=f"cal_survey:{route}"):
            return None
    result = RouteResult(route, known_routes()[route].title, "ok", 0.0)
    return batch_run.batch_ran(corpus, result, parameters, "calibrate")


@st.cache_resource(max_entries=4, show_spinner="Reading the scores")
def _found_in(name: str, _batch: BatchRun) -> Found:  # noqa: ARG001 - the name is the cache key
    """Return the thresholds in a finished batch run."""
    quotes = threshold_cases.quoted(state.engine().settings, {"corpus": _batch.corpus, "split": "all"})
    pairs = ((id, result) for id, by in _batch.results.items() for result in by.values())
    return threshold_cases.found(pairs, _batch.labelled, quotes)
