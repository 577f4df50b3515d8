"""Options of a new evaluation: parameters, baseline, timing, answers and rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar

import streamlit as st

from core.domain.types import AnswerBy
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
ANSWERS: dict[AnswerBy | Literal["none"], str] = {
    "none": "No answers",
    "model": BY["model"],
    "extract": BY["extract"],
}


def select(
    place: Any, name: str, label: str, options: Mapping[T, str], *, usual: T | None = None, **widget: Any
) -> T:
    """Draw a choice of the form at `place`; one that is no longer an option becomes `usual`, or the first."""
    key, names = f"ev_{name}", list(options)
    if st.session_state.get(key) not in names:
        st.session_state[key] = usual if usual in names else names[0]
    given = {"persist_state": "session", "width": 220, "format_func": options.__getitem__, **widget}
    found: T = place.selectbox(label, names, key=key, **given)
    return found


def how(spec: Spec, corpus: str) -> Spec:
    """Draw parameters, baseline, timing, answers and repeats."""
    place, now = st.container(horizontal=True, vertical_alignment="bottom"), state.engine().settings
    parameters, evidence = _parameters(place, spec, corpus)
    titles, note = (
        {name: title(name) for name in spec.routes},
        "Running together is faster, one by one steadier.",
    )
    baseline = select(place, "baseline", "Baseline", titles, help=term("baseline"))
    timing = select(place, "timing", "Routes run", TIMINGS, usual=now.timing, help=note)
    by = select(place, "answers", "Answers", ANSWERS)
    found = replace(spec, parameters=parameters, evidence=evidence, baseline=baseline, timing=timing)
    if by != "none":
        found = replace(found, answers=True, answer_by=by)
    if by != "none" and spec.labels:
        given: Any = {"key": "ev_nuggets", "persist_state": "session", "help": term("nugget")}
        found = replace(found, nuggets=st.checkbox("Have the model assign nuggets", **given))
    asking = any(routes()[name].asks(routes()[name].settle(parameters.get(name, {}))) for name in spec.routes)
    if not asking and by != "model":
        return found
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        if by == "model":
            label = "The model reads the passages"
            order = select(st, "order", label, ORDERS, usual=now.answer_order, width=400)
            found = replace(found, answer_order=order)
        note = "Each further round calls the model with another seed, to show how much the figures vary"
        given = {"key": "ev_repeats", "persist_state": "session", "width": 160, "help": note}
        rounds = st.number_input("Rounds", 1, 20, **given)
    return replace(found, repeats=int(rounds))


def _parameters(place: Any, spec: Spec, corpus: str) -> tuple[dict[str, dict[str, Any]], float | None]:
    """Draw the choice of parameters; return them by route, with the evidence that a preset requires."""
    given: Mapping[str, Any] = st.session_state.get(state.PARAMETERS) or {}
    compared = {name: dict(values) for name, values in given.items() if values and name in spec.routes}
    found: dict[str, tuple[str, Mapping[str, Mapping[str, Any]], float | None]]
    found = {"defaults": ("defaults", {}, None)}
    if turned := sum(map(len, compared.values())):
        found["compare"] = f"as chosen on Compare ({turned} changed)", compared, None
    for preset in presets.every(state.store(), corpus):
        found[f"preset:{preset.name}"] = f"preset “{preset.name}”", preset.parameters, preset.evidence
    labels = {name: label for name, (label, *_) in found.items()}
    chosen = select(place, "parameters", "Parameters", labels, width=280)
    _, values, evidence = found[chosen]
    return {name: dict(one) for name, one in values.items() if name in spec.routes and one}, evidence
