"""Options of a new evaluation: parameters, baseline, timing, answers and rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

import streamlit as st

from core.domain.types import AnswerBy, AnswerOrder
from core.evaluation.spec import Spec
from core.routes.registry import routes
from core.store import presets
from ui.app import state
from ui.app.answer_style import BY, ORDERS
from ui.app.help_mark import term
from ui.app.routes import title

T = TypeVar("T")
TIMINGS: dict[Literal["shared", "isolated"], str] = {
    "shared": "together, sharing work",
    "isolated": "one after the other",
}
READ: dict[AnswerOrder, str] = {
    "best first": ORDERS["best first"],
    "best at both ends": ORDERS["best at both ends"],
}
ANSWERS: dict[AnswerBy | Literal["none"], str] = {
    "none": "No answers",
    "model": BY["model"],
    "extract": BY["extract"],
}


def select(
    place: Any,
    name: str,
    label: str,
    options: Sequence[T],
    *,
    usual: T | None = None,
    named: Mapping[T, str] | None = None,
    width: int = 220,
    **widget: Any,
) -> T:
    """Draw a choice of the form at `place`; one that is no longer an option becomes `usual`, or the first."""
    key = f"ev_{name}"
    if st.session_state.get(key) not in options:
        st.session_state[key] = usual if usual in options else options[0]
    if named is not None:
        widget["format_func"] = named.__getitem__
    chosen: T = place.selectbox(label, options, key=key, persist_state="session", width=width, **widget)
    return chosen


def how(spec: Spec, corpus: str) -> Spec:
    """Draw parameters, baseline, timing, answers and repeats."""
    place, now = st.container(horizontal=True, vertical_alignment="bottom"), state.engine().settings
    parameters, evidence = _parameters(place, spec, corpus)
    baseline = select(place, "baseline", "Baseline", spec.routes, format_func=title, help=term("baseline"))
    timing = select(
        place,
        "timing",
        "Routes run",
        list(TIMINGS),
        usual=now.timing,
        named=TIMINGS,
        help="Running together is faster. One after the other measures times more steadily.",
    )
    by = select(place, "answers", "Answers", list(ANSWERS), named=ANSWERS)
    found = replace(spec, parameters=parameters, evidence=evidence, baseline=baseline, timing=timing)
    if by != "none":
        found = replace(found, answers=True, answer_by=by)
    asking = any(routes()[name].asks(routes()[name].settle(parameters.get(name, {}))) for name in spec.routes)
    if not asking and by != "model":
        return found
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        if by == "model":
            label = "The model reads the passages"
            order = select(st, "order", label, list(READ), usual=now.answer_order, named=READ, width=400)
            found = replace(found, answer_order=order)
        rounds = st.number_input(
            "Rounds",
            1,
            20,
            key="ev_repeats",
            persist_state="session",
            width=160,
            help="Each further round calls the model with another seed, to show how much the figures vary",
        )
    return replace(found, repeats=int(rounds))


def _parameters(place: Any, spec: Spec, corpus: str) -> tuple[dict[str, dict[str, Any]], float | None]:
    """Draw the choice of parameters; return them by route, with the evidence that a preset requires."""
    store = state.engine().store
    given: Mapping[str, Any] = st.session_state.get(state.PARAMETERS) or {}
    compared = {name: dict(values) for name, values in given.items() if values and name in spec.routes}
    found: dict[str, tuple[Mapping[str, Mapping[str, Any]], float | None]] = {"defaults": ({}, None)}
    labels = {"defaults": "defaults"}
    if turned := sum(map(len, compared.values())):
        found["compare"] = compared, None
        labels["compare"] = f"as chosen on Compare ({turned} changed)"
    for preset in presets.every(store, corpus) if store is not None else ():
        found[f"preset:{preset.name}"] = preset.parameters, preset.evidence
        labels[f"preset:{preset.name}"] = f"preset “{preset.name}”"
    chosen = select(place, "parameters", "Parameters", list(found), named=labels, width=280)
    values, evidence = found[chosen]
    return {name: dict(one) for name, one in values.items() if name in spec.routes and one}, evidence
