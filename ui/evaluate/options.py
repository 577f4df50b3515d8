"""Options of a new evaluation: parameters, baseline, timing, answers and rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.domain.types import AnswerBy, AnswerOrder
from core.evaluation.spec import Spec
from core.routes.registry import routes
from core.store import presets
from ui.app import state
from ui.app.answer_style import BY, ORDERS
from ui.app.help_mark import term
from ui.app.routes import title

DEFAULTS, COMPARE = "defaults", "compare"
TIMINGS: dict[Literal["shared", "isolated"], str] = {
    "shared": "together, sharing work",
    "isolated": "one after the other",
}
READ: dict[AnswerOrder, str] = {
    "best first": ORDERS["best first"],
    "best at both ends": ORDERS["best at both ends"],
}


def hold(name: str, options: list[Any], usual: Any = None) -> None:
    """Reset a choice that is not among `options`, before its widget is drawn."""
    key = f"ev_{name}"
    if st.session_state.get(key) not in options:
        st.session_state[key] = usual if usual in options else options[0]


def how(spec: Spec, corpus: str) -> Spec:
    """Draw parameters, baseline, timing, answers and repeats."""
    place = st.container(horizontal=True, vertical_alignment="bottom")
    parameters, evidence = _parameters(place, spec, corpus)
    hold("baseline", list(spec.routes))
    baseline = place.selectbox(
        "Baseline",
        spec.routes,
        key="ev_baseline",
        persist_state="session",
        width=220,
        format_func=title,
        help=term("baseline"),
    )
    now = state.engine().settings
    hold("timing", list(TIMINGS), now.timing)
    timing = place.selectbox(
        "Routes run",
        list(TIMINGS),
        key="ev_timing",
        format_func=TIMINGS.__getitem__,
        persist_state="session",
        width=220,
        help="Running together is faster. Both report each route's time on its own; one after the other "
        "measures it more steadily.",
    )
    answers: dict[AnswerBy | Literal["none"], str] = {
        "none": "No answers",
        "model": BY["model"],
        "extract": BY["extract"],
    }
    hold("answers", list(answers))
    by = place.selectbox(
        "Answers",
        list(answers),
        key="ev_answers",
        format_func=lambda one: answers[one],
        persist_state="session",
        width=220,
    )
    found = replace(spec, parameters=parameters, evidence=evidence, baseline=baseline, timing=timing)
    if by != "none":
        found = replace(found, answers=True, answer_by=by)
    asking = [
        name for name in spec.routes if routes()[name].asks(routes()[name].settle(parameters.get(name, {})))
    ]
    if not asking and by != "model":
        return found
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        if by == "model":
            hold("order", list(READ), now.answer_order)
            order = st.selectbox(
                "The model reads the passages",
                list(READ),
                key="ev_order",
                width=400,
                format_func=READ.__getitem__,
                persist_state="session",
            )
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


def _parameters(
    place: DeltaGenerator, spec: Spec, corpus: str
) -> tuple[dict[str, dict[str, Any]], float | None]:
    """Draw the choice of parameters; return them by route, with the evidence that a preset requires."""
    store = state.engine().store
    given: Mapping[str, Any] = st.session_state.get(state.PARAMETERS) or {}
    named = {one.name: one for one in presets.every(store, corpus)} if store is not None else {}
    compared = {name: dict(values) for name, values in given.items() if values and name in spec.routes}
    turned = sum(map(len, compared.values()))
    labels = {DEFAULTS: "defaults", COMPARE: f"as chosen on Compare ({turned} changed)"}
    options = [DEFAULTS, *([COMPARE] if turned else []), *(f"preset:{name}" for name in named)]
    hold("parameters", options)
    chosen = place.selectbox(
        "Parameters",
        options,
        key="ev_parameters",
        persist_state="session",
        width=280,
        format_func=lambda one: labels.get(one) or f"preset “{one.removeprefix('preset:')}”",
    )
    if chosen == COMPARE:
        return compared, None
    if preset := named.get(chosen.removeprefix("preset:")) if chosen != DEFAULTS else None:
        return {n: dict(v) for n, v in preset.parameters.items() if n in spec.routes and v}, preset.evidence
    return {}, None
