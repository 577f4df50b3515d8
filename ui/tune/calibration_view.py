"""One calibration: the finding in words, its figures, the curves, and the offer to save it."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from core.domain.errors import BadInput
from core.evaluation.calibration import Objective
from core.evaluation.experiment_store import Evaluation
from core.evaluation.tuning.calibrate import Calibration, Curve, Measured, calibrate, curve, reliable
from core.evaluation.tuning.calibrate_text import about, halves, in_words, left_out, reliability_in_words
from core.evaluation.tuning.sweep_split import Split
from core.evaluation.tuning.threshold_cases import Target
from ui.app.help_mark import term
from ui.app.markup import EMPTY, md, show, table_of, tag
from ui.app.plot import plot
from ui.charts.calibration import curves
from ui.charts.reliability import describe_reliability as curve_told
from ui.charts.reliability import reliability_curve
from ui.tune import calibration_save

COLUMNS: tuple[Objective, ...] = ("precision", "recall", "f1", "balanced accuracy")
HEADS = ("Threshold", "Precision", "Recall", "F1", "Balanced accuracy", "Acted on")
HOW = (
    "Intervals are 95%, from resampling the questions with all their cases; an interval is missing where"
    " too few cases were acted on. p is from a permutation test that swaps the two thresholds' decisions"
    " within each question."
)


def draw(
    target: Target,
    parts: Split,
    objective: Objective,
    wanted: float | None,
    where: tuple[str, ...],
    evaluation: Evaluation,
    *,
    asked: int,
) -> None:
    """Draw the calibration, or the reason if no threshold can be chosen."""
    missing = left_out(target, asked)
    found = _calibrated((*where, target.route, target.key), target, parts, objective, wanted)
    if isinstance(found, str):
        st.caption(md(f"{about(target)} {missing}"))
        st.warning(md(f"{found[0].upper()}{found[1:]}."))
    else:
        body = tag("p", in_words(found), css="rs-calibrate-told"), tag("p", about(target), css="dim")
        more = (
            tag("p", f"{halves(found)} {missing}".strip(), css="dim") if halves(found) or missing else EMPTY
        )
        how = tag("p", HOW, css="dim")
        show(tag("div", *body, table(found), how, more, css="rs rs-calibrate"))
        calibration_save.offer(found, evaluation)
    _curves(target, parts, where, None if isinstance(found, str) else found)


def table(found: Calibration) -> Markup:
    """Return the chosen and the current threshold on held-out questions, and the chosen one on dev."""
    rows = [
        ("chosen, held out", found.chosen),
        ("in use, held out", found.shipped),
        ("chosen, first half" if found.made else "chosen, dev", found.on_dev),
    ]
    head = tag("tr", tag("th", ""), *(tag("th", name, css="num") for name in HEADS))
    body = [
        tag(
            "tr",
            tag("td", name),
            tag("td", f"{one.threshold:.3g}", css="num"),
            *(_cell(value) for value in (one.of[name] for name in COLUMNS)),
            tag("td", f"{one.acted:,} of {one.n:,}", css="num"),
        )
        for name, one in rows
    ]
    return table_of(head, body)


def _cell(one: Measured) -> Markup:
    around = EMPTY
    if one.interval is not None:
        around = tag("span", f"{one.interval[0]:.2f}–{one.interval[1]:.2f}", css="dim")
    return tag("td", "–" if one.value is None else f"{one.value:.2f}", around, css="num")


def _curves(target: Target, parts: Split, where: tuple[str, ...], found: Calibration | None) -> None:
    """Draw precision and recall over all thresholds, and whether scores are probabilities."""
    if not target.cases:
        return
    names = ("first half", "second half") if parts.made else ("dev", "held out")
    drawn = _drawn((*where, target.route, target.key), target, parts)
    marks = {"in use": target.shipped, **({} if found is None else {"chosen": found.threshold})}
    show(tag("div", tag("h3", "Precision and recall by threshold", css="rs-part"), css="rs"))
    said = about(target) if found is None else in_words(found)
    figure = curves(dict(zip(names, drawn, strict=True)), marks, f"threshold of “{target.step}”")
    plot(figure, "cal_curves", f"Precision and recall against the threshold. {said}")
    show(tag("div", tag("h3", "Are the scores probabilities?", css="rs-part"), css="rs"))
    st.caption(md(reliability_in_words(target)), help=term("calibration"))
    of_all = reliable(target, target.cases)
    if of_all is not None:
        by = {f"all {of_all.n:,} cases": of_all}
        plot(reliability_curve(by), "cal_reliability", curve_told(by))


@st.cache_resource(max_entries=64, show_spinner="Choosing and measuring")
def _calibrated(
    key: tuple[str, ...],  # noqa: ARG001 - stands for the target
    _target: Target,
    _parts: Split,
    objective: Objective,
    wanted: float | None,
) -> Calibration | str:
    """Return the calibration, or the reason it failed."""
    try:
        return calibrate(_target, _parts, objective, wanted)
    except BadInput as error:
        return str(error)


@st.cache_resource(max_entries=32, show_spinner=False)
def _drawn(
    key: tuple[str, ...],  # noqa: ARG001 - stands for the target
    _target: Target,
    _parts: Split,
) -> tuple[Curve | None, Curve | None]:
    first, second = (
        [case for case in _target.cases if case.question in part]
        for part in (set(_parts.chosen_on), set(_parts.held_out))
    )
    return curve(first, _target.acts), curve(second, _target.acts)
