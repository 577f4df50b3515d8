"""The criteria of the Release page: controls that begin at what follows from the baseline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

import streamlit as st

from core.analysis.metrics import titled
from core.evaluation.finding import MARGIN
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.measured import Measured, settled
from ui.app import address, help_mark
from ui.app.choice import choice
from ui.app.help_mark import term
from ui.app.markup import md

NONE = "none"  # in the address: no limit
METRIC = "release_metric"


@dataclass(frozen=True, slots=True)
class Limit:
    """A control for one field of Criteria."""

    field: str
    parameter: str
    label: str
    step: float
    told: str
    least: float | None = 0.0
    most: float | None = None
    about: str | None = None  # the Glossary's term


LIMITS = (
    Limit("minimum", "min", "Mean at least", 0.01, "Leave empty for no minimum.", None),
    Limit("max_p95_ms", "p95", "p95 at most (ms)", 50.0, "For the route on its own.", about="p50 and p95"),
    Limit("max_tokens", "tokens", "Tokens at most", 100.0, "Average number of model tokens per question."),
    Limit("max_calls", "calls", "Model calls at most", 0.5, "Average number of model calls per question."),
    Limit(
        "max_cost", "cost", "Price of 1,000 at most", 0.1, "For 1,000 questions at the prices in Settings."
    ),
    Limit("max_failed", "failed", "Failed at most", 0.01, "Share of the questions, 0 to 1.", most=1.0),
    Limit(
        "max_unjudged",
        "unjudged",
        "Unjudged at most",
        0.01,
        "Share of the first ten passages, 0 to 1. A route above it is not decided: label more.",
        most=1.0,
        about="unjudged passage",
    ),
    Limit(
        "margin",
        "margin",
        "Margin",
        0.01,
        "The loss of the metric that is accepted for a cheaper route. At 0.02 it takes 150 questions or "
        "more.",
        most=1.0,
        about="margin",
    ),
)


def chosen(measured: Measured) -> Criteria:
    """Draw the controls and return the criteria; each that is not as derived is in the address."""
    top = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="release_limits")
    named = st.empty()
    usual = Criteria()
    with st.container(horizontal=True, gap="medium"):
        no_loss = _switch(
            "loss",
            "Reject routes shown worse than the baseline on any kind of question",
            usual.no_loss,
            f"The baseline is {measured.title(measured.baseline)}.",
            "baseline",
        )
        cheaper = _switch(
            "cheapest",
            "Ship the cheapest route that is at most the margin worse",
            usual.cheaper,
            "Turn off to ship the route with the highest mean, whatever it costs.",
            "margin",
        )
    unlike = bool(measured.unlike) and _switch(
        "machines",
        "Use times of unlike machines",
        usual.unlike_machines,
        f"Off: no time counts, because {measured.unlike}.",
        "p50 and p95",
    )
    with top:
        metric = choice(
            "metric",
            METRIC,
            "Quality is",
            list(measured.metrics()),
            width=200,
            format_func=titled,
            help=help_mark.metric(st.session_state.get(METRIC) or next(iter(measured.metrics()))),
        )
        begin = settled(measured, Criteria(metric, unlike_machines=unlike))
        of = f"{measured.name}:{metric}{':all times' if unlike else ''}"
        limits = {one.field: _limit(one, of, getattr(begin, one.field)) for one in LIMITS}
    limits["margin"] = MARGIN if limits["margin"] is None else limits["margin"]
    derived = tuple(name for name in begin.derived if limits[name] == getattr(begin, name))
    if derived:
        labels = ", ".join(one.label for one in LIMITS if one.field in derived)
        named.caption(md(f"From the baseline, {measured.title(measured.baseline)}: {labels}."))
    return Criteria(
        metric,
        no_loss=no_loss,
        cheaper=cheaper,
        unlike_machines=unlike,
        derive=False,
        derived=derived,
        **limits,  # type: ignore[arg-type]  # every limit but the margin is a number or None
    )


def _limit(one: Limit, of: str, begin: float | None) -> float | None:
    """Draw one limit's field and return its value; it belongs to an evaluation and a metric."""
    key = f"release:{one.field}:{of}"
    address.take(one.parameter, key, _reader(one))
    st.session_state.setdefault(key, begin)
    value: float | None = st.number_input(
        one.label,
        value=None,
        min_value=one.least,
        max_value=one.most,
        step=one.step,
        key=key,
        width=160,
        help=term(one.about, one.told) if one.about else one.told,
        placeholder="no limit",
        format="%.0f" if one.step >= 50 else "%.2f",
        persist_state="session",
    )
    same = value == begin or (value is not None and begin is not None and abs(value - begin) < 1e-9)
    address.keep(one.parameter, None if same else NONE if value is None else f"{value:.10g}")
    return value


def _switch(parameter: str, label: str, begin: bool, told: str, about: str) -> bool:
    key = f"release_{parameter}"
    address.take(parameter, key, {"yes": True, "no": False}.__getitem__)
    st.session_state.setdefault(key, begin)
    value = st.toggle(label, key=key, help=term(about, told), persist_state="session")
    address.keep(parameter, None if value == begin else "yes" if value else "no")
    return bool(value)


def _reader(one: Limit) -> Callable[[str], float | None]:
    def read(text: str) -> float | None:
        if text == NONE:
            return None
        value = float(text)
        low, high = one.least, one.most
        if not isfinite(value) or (low is not None and value < low) or (high is not None and value > high):
            raise ValueError(text)
        return value

    return read
