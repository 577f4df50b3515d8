"""Agreement of annotators beyond chance, and the passages they disagree on."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.evaluation.labels import agreement
from core.evaluation.labels.agreement import LEVELS, Agreement, landis_koch
from core.evaluation.labels.desk import Desk
from ui.app import say
from ui.app.markup import show, tag
from ui.app.plot import plot
from ui.charts.heatmaps import confusion
from ui.charts.intervals import KAPPA, IntervalRow, intervals
from ui.components import tables
from ui.label import judge, settle, suggested
from ui.label.desk import ME

CHOSEN = "label_confusion"  # the pair whose table is shown
HELPS = {
    "Kappa": "Cohen's kappa",
    "from": "bootstrap",
    "to": "bootstrap",
    "Linear weights": "weighted kappa",
    "Quadratic weights": "weighted kappa",
}


def draw(desk: Desk) -> None:
    """Draw the agreement of each pair of people, of models with people, and the disagreements."""
    people = desk.annotators()
    if len(people) < 2:
        st.subheader("One annotator so far" if people else "No judgements yet", anchor=False)
        who = ["Nobody has", "You have" if people == (ME,) else f"{next(iter(people), '')} has"][len(people)]
        say.caption(
            f"{who} graded passages. Agreement needs two annotators: have someone else grade some of the "
            "same passages under another name."
        )
        to = ("label_tab", "Label")
        st.button("Grade passages", type="primary", on_click=st.session_state.__setitem__, args=to)
    else:
        with st.spinner("Comparing the annotators"):  # the first time loads what computes it, for seconds
            found = agreement.between(desk)
        _compared(found, "people")
        settle.draw(desk)
    st.markdown("**Agreement of the language model with people**")
    st.caption("A model's suggestions never count as labels.")
    if models := agreement.suggestions(desk):
        _compared(models, "models")
    suggested.ask(desk)
    judge.draw(desk)


def sentence(one: Agreement) -> str:
    """Describe the agreement of two annotators."""
    if not one.n or one.observed is None:
        return f"{one.first} and {one.second}: {one.why}."
    both = (
        f"{one.first} and {one.second} both graded {one.n:,} passages and agree on {100 * one.observed:.0f}%"
    )
    if one.kappa is None:
        return f"{both}. Cohen's kappa is not defined: {one.why}."
    few = " With fewer than 30 passages, this is unreliable." if one.n < 30 else ""
    ends = "" if one.ci95 is None else f" [{one.ci95[0]:.2f}, {one.ci95[1]:.2f}]"
    return (
        f"{both}. Cohen's kappa is {one.kappa:.2f}{ends}, {landis_koch(one.kappa)} by the bands of "
        f"Landis and Koch.{few}"
    )


def _compared(found: Sequence[Agreement], key: str) -> None:
    """Draw the lowest agreement in a sentence, all in a figure, and the numbers on demand."""
    ordered = sorted(found, key=lambda one: (one.kappa is None, one.kappa))
    texts = [tag("p", tag("b", sentence(one)) if not n else sentence(one)) for n, one in enumerate(ordered)]
    show(tag("div", *texts[:1], css="rs rs-label-line"))
    rows = [
        IntervalRow("", f"{one.first} and {one.second}", one.kappa, one.ci95, KAPPA, sentence(one))
        for one in ordered
        if one.kappa is not None
    ]
    if rows:
        lines = {"by chance": 0.0, "substantial": 0.6}
        figure = intervals(rows, "Cohen's kappa, 95% interval", lines)
        plot(figure, f"label_kappa:{key}", " ".join(map(sentence, ordered)), table=False)
    with st.expander("All pairs, grade by grade", key=f"label_pairs:{key}"):
        show(tag("div", *texts[1:], css="rs rs-label-line"))
        tables.table(
            [
                {
                    "": f"{one.first} and {one.second}",
                    "Passages": one.n,
                    "Same grade": None if one.observed is None else 100 * one.observed,
                    "Kappa": one.kappa,
                    "from": one.ci95[0] if one.ci95 else None,
                    "to": one.ci95[1] if one.ci95 else None,
                    "Linear weights": one.linear,
                    "Quadratic weights": one.quadratic,
                }
                for one in found
            ],
            f"label_agreement:{key}",
            "Agreement of each pair",
            formats={"Same grade": "%.0f%%", **dict.fromkeys(HELPS, "%.2f")},
            helps=HELPS,
        )
        some = {f"{one.first} and {one.second}": one for one in found if one.n}
        if not some:
            return
        name = next(iter(some))
        if len(some) > 1:
            name = st.selectbox("Grades of", list(some), key=f"{CHOSEN}:{key}", width=340) or name
        one = some[name]
        figure = confusion(list(map(str, LEVELS)), one.confusion, true=one.first, taken=one.second)
        plot(figure, f"label_grades:{key}", f"Grades of {name}")
