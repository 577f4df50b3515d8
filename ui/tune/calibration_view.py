"""One calibration: the finding in words, the curves, its figures, and the offer to save it."""

from __future__ import annotations

from typing import Any

import streamlit as st
from markupsafe import Markup

from core.domain.errors import BadInput
from core.evaluation.calibration import Objective
from core.evaluation.experiment_store import Evaluation
from core.evaluation.templating import say as say_from
from core.evaluation.tuning import calibrate
from core.evaluation.tuning.calibrate import Calibration
from core.evaluation.tuning.saving import setting
from core.evaluation.tuning.sweep_split import Split
from core.evaluation.tuning.threshold_cases import Target
from ui.app import say
from ui.app.evaluated import once
from ui.app.help_mark import term
from ui.app.markup import EMPTY, join, md, show, table, tag
from ui.app.plot import plot
from ui.charts.grades import calibration_curves, describe_reliability, reliability_curve
from ui.components import preset_saving

COLUMNS: dict[Objective, str] = {
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "balanced accuracy": "Balanced accuracy",
}


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
    key = (*where, target.route, target.key, parts)

    def chosen() -> Calibration | str:
        try:
            return calibrate.calibrate(target, parts, objective, wanted)
        except BadInput as error:
            return str(error)

    found: Calibration | str = once(evaluation, "calibrated", *key, objective, wanted, compute=chosen)
    missing = calibrate.left_out(target, asked)
    if isinstance(found, str):
        say.caption(f"{calibrate.about(target)} {missing}")
        say.warning(f"{found[0].upper()}{found[1:]}.")
        _curves(target, parts, key, None, evaluation)
        return
    lead = say_from("calibration.chosen", found), " ", tag("b", calibrate.difference(found))
    show(tag("div", tag("p", *lead, css="rs-calibrate-told"), css="rs rs-calibrate"))
    _curves(target, parts, key, found, evaluation)
    more = " ".join(part for part in (calibrate.about(target), calibrate.halves(found), missing) if part)
    show(tag("div", _table(found), tag("p", more, css="dim"), css="rs rs-calibrate"))
    try:
        setting_ = setting(found.target, found.threshold)
    except BadInput as error:
        say.caption(f"{error}.")
        return
    corpus = str(evaluation.spec.get("corpus") or evaluation.labelled.name)
    why = calibrate.note(found, evaluation.name)
    preset_saving.offer("cal", setting_, corpus, why, f"{evaluation.name} thresholds")


def _table(found: Calibration) -> Markup:
    """Return the chosen and the current threshold on held-out questions, and the chosen one on dev."""
    dev = "chosen, first half" if found.made else "chosen, dev"
    rows = []
    for name, one in (
        ("chosen, held out", found.chosen),
        ("in use, held out", found.shipped),
        (dev, found.on_dev),
    ):
        figures = []
        for value, ends in ((one.of[column].value, one.of[column].interval) for column in COLUMNS):
            span = tag("span", f"{ends[0]:.3f}–{ends[1]:.3f}", css="dim") if ends is not None else EMPTY
            figures.append(join(["–" if value is None else f"{value:.3f}", span]))
        rows.append((name, f"{one.threshold:.3g}", *figures, f"{one.acted:,} of {one.n:,}"))
    return table(("", "Threshold", *COLUMNS.values(), "Acted on"), rows, numbers=range(1, 7))


def _curves(
    target: Target, parts: Split, key: tuple[object, ...], found: Calibration | None, evaluation: Evaluation
) -> None:
    """Draw precision and recall over all thresholds, and on demand whether scores are probabilities."""
    if not target.cases:
        return
    names = ("first half", "second half") if parts.made else ("dev", "held out")

    def compute() -> list[Any]:
        parted = (set(part) for part in (parts.chosen_on, parts.held_out))
        return [
            calibrate.curve([one for one in target.cases if one.question in part], target.acts)
            for part in parted
        ]

    drawn = once(evaluation, "curves", *key, compute=compute)
    marks = {"in use": target.shipped, **({} if found is None else {"chosen": found.threshold})}
    said = calibrate.about(target) if found is None else calibrate.in_words(found)
    figure = calibration_curves(dict(zip(names, drawn, strict=True)), marks, f"threshold of “{target.step}”")
    plot(figure, "cal_curves", f"Precision and recall against the threshold. {said}")
    with st.expander("Are the scores probabilities?"):
        st.caption(md(calibrate.reliability_in_words(target)), help=term("calibration"))
        of_all = calibrate.reliable(target, target.cases)
        if of_all is not None:
            by = {f"all {of_all.n:,} cases": of_all}
            plot(reliability_curve(by), "cal_reliability", describe_reliability(by))
