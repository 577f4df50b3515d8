"""Agreement of annotators beyond chance, and the passages they disagree on."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from markupsafe import Markup

from core.evaluation.labels import agreement
from core.evaluation.labels.agreement import LEVELS, Agreement, landis_koch
from core.evaluation.labels.desk import Desk
from ui.app.help_mark import mark, marked
from ui.app.markup import join, md, show, table_of, tag
from ui.label import judge, settle, suggested
from ui.label.desk import ME

CHOSEN = "label_confusion"  # the pair whose table is shown


def draw(desk: Desk) -> None:
    """Draw the agreement of each pair of people, of models with people, and the disagreements."""
    people = desk.annotators()
    if not people:
        st.subheader("No judgements yet", anchor=False)
        st.caption("Grade passages under Label first. Agreement needs a second annotator.")
    elif len(people) == 1:
        st.subheader("One annotator so far", anchor=False)
        st.caption(
            md(
                f"{'You are' if people[0] == ME else f'{people[0]} is'} the only annotator so far. "
                "To measure agreement, have someone else grade some of the same passages under another name "
                "(“You label as”)."
            )
        )
    else:
        with st.spinner("Comparing the annotators"):  # the first time loads what computes it, for seconds
            found = agreement.between(desk)
        _people(found)
        settle.draw(desk)
    _models(desk, agreement.suggestions(desk))
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
    return (
        f"{both}. Cohen's kappa is {one.kappa:.2f}{_between(one)}, {landis_koch(one.kappa)} by the bands of "
        f"Landis and Koch.{few}"
    )


def _between(one: Agreement) -> str:
    return "" if one.ci95 is None else f" [{one.ci95[0]:.2f}, {one.ci95[1]:.2f}]"


def _people(found: Sequence[Agreement]) -> None:
    _draw_agreement(found)
    _confusion(found)


def _models(desk: Desk, found: Sequence[Agreement]) -> None:
    st.markdown("**Agreement of the language model with people**")
    st.caption("A model's suggestions never count as labels. This shows how well they agree with people's.")
    if found:
        _draw_agreement(found)
    suggested.ask(desk)


def _draw_agreement(found: Sequence[Agreement]) -> None:
    lines = [tag("p", sentence(one), css="rs-label-line") for one in found]
    show(tag("div", *lines, _table(found), css="rs"))


def _table(found: Sequence[Agreement]) -> Markup:
    heads = (
        "",
        "Passages",
        "Same grade",
        marked("Kappa", "Cohen's kappa"),
        marked("Linear weights", "weighted kappa"),
        marked("Quadratic weights", "weighted kappa"),
    )
    rows = [
        tag(
            "tr",
            tag("td", f"{one.first} and {one.second}"),
            _number(one.n, "{:,}"),
            _number(None if one.observed is None else 100 * one.observed, "{:.0f}%"),
            _number(one.kappa, f"{{:.2f}}{_between(one)}"),
            *(_number(kappa, "{:.2f}") for kappa in (one.linear, one.quadratic)),
        )
        for one in found
    ]
    head = tag("tr", *(tag("th", text, css="num" if at else "") for at, text in enumerate(heads)))
    note = (
        "Kappa treats all differences alike; the weighted versions count a difference by its size or its "
        "square. Brackets: 95% confidence interval of kappa, from resampling the questions. "
    )
    table = table_of(head, rows)
    return join([tag("div", table, css="rs-label-wide"), tag("div", note, mark("bootstrap"), css="dim")])


def _number(value: float | None, form: str) -> Markup:
    return tag("td", "–" if value is None else form.format(value), css="num")


def _confusion(found: Sequence[Agreement]) -> None:
    """Draw the grades of two annotators against each other."""
    some = {f"{one.first} and {one.second}": one for one in found if one.n}
    if not some:
        return
    name = next(iter(some))
    if len(some) > 1:
        name = st.selectbox("Grades of", list(some), key=CHOSEN, width=340) or name
    one = some[name]
    corner = tag("th", f"{one.first} ↓  {one.second} →")
    head = tag("tr", corner, *(tag("th", level) for level in LEVELS))
    rows = [
        tag(
            "tr",
            tag("th", level),
            *(tag("td", count, css="same" if at == level else "") for at, count in enumerate(row)),
        )
        for level, row in zip(LEVELS, one.confusion, strict=True)
    ]
    table = table_of(head, rows, css="rs-label-confusion")
    show(tag("div", tag("div", table, css="rs-label-wide"), css="rs"))
