"""The thresholds of a saved evaluation: chosen on some of its questions, tested on the others, saved."""

from __future__ import annotations

import streamlit as st

from core.domain.program import COMMAND
from core.evaluation import experiment_store
from core.evaluation.calibration import OBJECTIVES, WANTED, Objective
from core.evaluation.dataset import LabelledSet
from core.evaluation.experiment_store import Evaluation
from core.evaluation.tuning import threshold_cases
from core.evaluation.tuning.calibrate_text import NAMES
from core.evaluation.tuning.threshold_cases import Found, Target
from ui.app import address, evaluated, opened, routes, state
from ui.app.choice import choice
from ui.app.markup import cut, md
from ui.tune import calibration_batch, calibration_view
from ui.tune.test_split import divided

ROUTE, STEP, OBJECTIVE, WANTED_KEY = "cal_route", "cal_step", "cal_objective", "cal_wanted"
LEAST_WANTED = 0.01
LATELY = 4  # evaluations whose thresholds are remembered
Source = tuple[str, ...]  # what the cases are from: equal for equal ones


def draw() -> None:
    """Draw the tab Calibration."""
    st.caption(
        "Choose a threshold on dev questions and test it on held-out ones. This uses the stored scores, so no"
        " route is rerun."
    )
    evaluation = evaluated.chosen()
    if evaluation is not None:
        _of(evaluation)
    opened.link()


def _of(evaluation: Evaluation) -> None:
    """Draw the choice of a threshold with its figures.

    It comes from the evaluation, or from a route that can run now.
    """
    in_runs = gathered(evaluation)
    names = list(dict.fromkeys(target.route for target in in_runs.targets))
    asked_now = [route.name for route in threshold_cases.batch_runnable() if route.name not in names]
    if not names:
        _nothing(evaluation, in_runs)
    offered = [*names, *asked_now]
    if not offered:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        route = choice(
            "route",
            ROUTE,
            "Route",
            offered,
            always=True,
            width=270,
            format_func=lambda name: cut(routes.title(name), 40) + " · not measured" * (name in asked_now),
        )
        steps = st.container()
    if route in names:
        where = (str(evaluation.folder), *map(str, experiment_store.stamp(evaluation.folder)))
        _chosen(in_runs, route, evaluation.labelled, where, evaluation, steps)
        return
    batch = calibration_batch.batch_ran(evaluation, route)
    if batch is not None:
        found = calibration_batch.found(batch.name, batch)
        _chosen(found, route, batch.labelled, (batch.name,), evaluation, steps)


def _chosen(
    found: Found, route: str, labelled: LabelledSet, where: Source, evaluation: Evaluation, steps: object
) -> None:
    """Draw one threshold of a route by one objective."""
    targets = {target.key: target for target in found.targets if target.route == route}
    reasons = [f"“{step}”: {why}." for (of, step), why in found.unjudged.items() if of == route]
    if reasons:
        st.caption(md(f"Not calibrated here: {' '.join(reasons)}"))
    if not targets:
        st.info("No step of this route compares a score with a threshold on these questions.")
        return
    with steps:  # type: ignore[attr-defined]
        key = choice(
            "step",
            STEP,
            "Threshold",
            list(targets),
            width=460,
            format_func=lambda one: cut(named(targets[one]), 80),
        )
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
    address.take("objective", OBJECTIVE, address.one_of(list(OBJECTIVES)))
    address.take("wanted", WANTED_KEY, _share)
    st.session_state.setdefault(WANTED_KEY, 0.9)
    if st.session_state.get(OBJECTIVE) not in OBJECTIVES:
        st.session_state[OBJECTIVE] = OBJECTIVES[0]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        objective: Objective = (
            st.segmented_control(
                "Chosen by",
                OBJECTIVES,
                key=OBJECTIVE,
                required=True,
                format_func=lambda one: f"target {one}" if one in WANTED else NAMES[one],
                persist_state="session",
            )
            or OBJECTIVES[0]
        )
        wanted = None
        if objective in WANTED:
            wanted = st.number_input(
                f"At least this {objective}",
                LEAST_WANTED,
                1.0,
                step=0.05,
                key=WANTED_KEY,
                width=180,
                persist_state="session",
            )
    address.keep("objective", objective if objective != OBJECTIVES[0] else None)
    address.keep("wanted", None if wanted is None else f"{wanted:g}")
    return objective, wanted


def named(target: Target) -> str:
    """Return a threshold's name in the list."""
    each = {"question": "", "passage": ", passage by passage", "strip": ", piece by piece"}[target.unit]
    name = {"threshold": "", "strip_floor": "floor · ", "floor": "floor · "}.get(
        target.name, f"{target.name} · "
    )
    return f"{name}{target.step}{each}"


def gathered(evaluation: Evaluation) -> Found:
    """Return the thresholds in an evaluation's runs, cached until its folder changes."""
    known, key = _remembered(), (str(evaluation.folder), experiment_store.stamp(evaluation.folder))
    if key not in known:
        bar = st.progress(0.0, "Reading the steps of the runs")

        def count(done: int, of: int) -> None:
            bar.progress(done / max(1, of), f"Reading the steps of the runs: {done} of {of}")

        known[key] = threshold_cases.gathered(state.engine().settings, evaluation, count)
        bar.empty()
        while len(known) > LATELY:
            known.pop(next(iter(known)))
    return known[key]


@st.cache_resource
def _remembered() -> dict[tuple[str, tuple[float, ...]], Found]:
    return {}


def _nothing(evaluation: Evaluation, found: Found) -> None:
    """Draw why there is no threshold to calibrate, and which evaluation would have one."""
    corpus = str(evaluation.spec.get("corpus") or evaluation.labelled.name)
    st.subheader("No threshold in this evaluation", anchor=False)
    reasons = "; ".join(
        f"{routes.title(route)}, “{step}”: {why}" for (route, step), why in found.unjudged.items()
    )
    no_runs = "" if any(map(evaluation.run_id, evaluation.outcomes)) else " It saved no runs with steps."
    st.caption(
        md(
            f"No step of its {len(evaluation.routes)} routes compared a score with a threshold that labels"
            f" can judge.{no_runs} {reasons}"
        )
    )
    names = ",".join(route.name for route in threshold_cases.having())
    st.caption("Measure routes that grade passages, on dev and test questions:")
    st.code(f"{COMMAND} eval {corpus} --routes {names} --split all --keep NAME", language=None)
    st.page_link("evaluate.py", label="Go to Evaluate")


def _share(text: str) -> float:
    value = float(text)
    if not LEAST_WANTED <= value <= 1:
        raise ValueError(f"wanted {text!r}; give {LEAST_WANTED} to 1")
    return value
