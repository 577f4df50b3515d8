"""The criteria of the Release page: controls that begin at what follows from the baseline."""

from __future__ import annotations

from typing import Any, NamedTuple

import streamlit as st

from core.analysis.metrics import titled
from core.evaluation.finding import MARGIN
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.measured import Measured, settled
from ui.app import help_mark
from ui.app.choice import choice, number, switch
from ui.app.help_mark import term
from ui.app.markup import md

METRIC = "release_metric"
UNJUDGED = "Share of the first ten passages, 0 to 1. A route above it is not decided: label more."
LOSS = "The accepted loss of the metric for a cheaper route. At 0.02 it takes 150 questions or more."


class Limit(NamedTuple):
    """A control for one field of Criteria."""

    field: str
    parameter: str
    label: str
    step: float
    told: str
    about: str = ""  # the Glossary's term
    most: float | None = None


LIMITS = (
    Limit("minimum", "min", "Mean at least", 0.01, "Leave empty for no minimum."),
    Limit("max_p95_ms", "p95", "p95 at most (ms)", 50.0, "For the route on its own.", "p50 and p95"),
    Limit("max_tokens", "tokens", "Tokens at most", 100.0, "Average number of model tokens per question."),
    Limit("max_calls", "calls", "Model calls at most", 0.5, "Average number of model calls per question."),
    Limit(
        "max_cost", "cost", "Price of 1,000 at most", 0.1, "For 1,000 questions by the prices in Settings."
    ),
    Limit("max_failed", "failed", "Failed at most", 0.01, "Share of the questions, 0 to 1.", most=1.0),
    Limit("max_unjudged", "unjudged", "Unjudged at most", 0.01, UNJUDGED, "unjudged passage", 1.0),
    Limit("margin", "margin", "Margin", 0.01, LOSS, "margin", 1.0),
)


def chosen(measured: Measured) -> Criteria:
    """Draw the controls and return the criteria; each that is not as derived is in the address."""
    top = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="release_limits")
    named = st.empty()
    usual = Criteria()
    with st.container(horizontal=True, gap="medium"):
        lossy = f"Worse than the baseline, {measured.title(measured.baseline)}."
        label = "Reject routes shown worse on any kind of question"
        no_loss = switch("loss", "release_loss", label, usual=usual.no_loss, help=term("baseline", lossy))
        label = "Ship the cheapest route that is at most the margin worse"
        about = "Turn off to ship the route with the highest mean, whatever it costs."
        note = term("margin", about)
        cheaper = switch("cheapest", "release_cheapest", label, usual=usual.cheaper, help=note)
    about, label = f"Off: no time counts, because {measured.unlike}.", "Use times of unlike machines"
    note, key = term("p50 and p95", about), "release_machines"
    unlike = bool(measured.unlike) and switch("machines", key, label, usual=usual.unlike_machines, help=note)
    with top:
        metrics = list(measured.metrics())
        about_it = help_mark.metric(st.session_state.get(METRIC) or metrics[0])
        metric = choice("metric", METRIC, "Quality is", metrics, width=200, format_func=titled, help=about_it)
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
    given: Any = {
        "step": one.step,
        "help": term(one.about, one.told) if one.about else one.told,
        "format": "%.0f" if one.step >= 50 else "%.2f",
        "width": 160,
        "placeholder": "no limit",
    }
    low, key = None if one.field == "minimum" else 0.0, f"release:{one.field}:{of}"
    return number(one.parameter, key, one.label, low, one.most, begin, form=".10g", **given)
