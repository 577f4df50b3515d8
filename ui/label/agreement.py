"""Agreement of annotators beyond chance, and the passages they disagree on, to be settled one at a time."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.evaluation.finding import count
from core.evaluation.labels import final
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.final import LEVELS, Agreement, landis_koch
from core.store.labels import Judgement, Kind, Pair
from ui.app import address, say
from ui.app.markup import fragment, show, tag
from ui.app.plot import plot
from ui.charts.heatmaps import confusion
from ui.charts.intervals import KAPPA, IntervalRow, intervals
from ui.components import tables
from ui.components.complaint import who as annotator
from ui.label import keys, model
from ui.label.desk import SET, held, opened
from ui.label.passage import passage

CHOSEN = "label_confusion"  # the pair whose table is shown
AT = "label_settle_at"
NOTE = "label_settle_note:{}:{}"


def draw(desk: Desk) -> None:
    """Draw the agreement of each pair of people, of models with people, and the disagreements."""
    people = desk.annotators()
    if len(people) < 2:
        st.subheader("One annotator so far" if people else "No judgements yet", anchor=False)
        st.caption("Agreement needs two annotators: have someone else grade some passages by another name.")
        to = ("label_tab", "Label")
        st.button("Grade passages", type="primary", on_click=st.session_state.__setitem__, args=to)
    else:
        with st.spinner("Comparing the annotators"):  # the first time loads what computes it, for seconds
            found = final.between(desk)
        _compared(found, "people")
        question = st.query_params.get("question", "")
        pairs = [(one.question, one.passage) for one in final.disagreements(desk)]
        known = {passage: (of, passage) for of, passage in pairs if of == question}
        address.take("passage", AT, known.__getitem__)
        _disagreements()
    st.markdown("**Agreement of the language model with people**")
    st.caption("A model's suggestions never count as labels.")
    if models := final.suggestions(desk):
        _compared(models, "models")
    model.ask(desk)
    model.judge(desk)


def sentence(one: Agreement) -> str:
    """Describe the agreement of two annotators."""
    names = f"{one.first} and {one.second}"
    if not one.n or one.observed is None:
        return f"{names}: {one.why}."
    both = f"{names} both graded {one.n:,} passages and agree on {100 * one.observed:.0f}%"
    if one.kappa is None:
        return f"{both}. Cohen's kappa is not defined: {one.why}."
    few = " With fewer than 30 passages, this is unreliable." if one.n < 30 else ""
    ends = "" if one.ci95 is None else f" [{one.ci95[0]:.2f}, {one.ci95[1]:.2f}]"
    bands = f"{landis_koch(one.kappa)} by the bands of Landis and Koch"
    return f"{both}. Cohen's kappa is {one.kappa:.2f}{ends}, {bands}.{few}"


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
                    **tables.interval(one.ci95),
                    "Linear weights": one.linear,
                    "Quadratic weights": one.quadratic,
                }
                for one in found
            ],
            f"label_agreement:{key}",
            "Agreement of each pair",
        )
        some = {f"{one.first} and {one.second}": one for one in found if one.n}
        if some:
            name = st.selectbox("Grades of", list(some), key=f"{CHOSEN}:{key}", width=340)
            one = some[name]
            figure = confusion(list(map(str, LEVELS)), one.confusion, true=one.first, taken=one.second)
            plot(figure, f"label_grades:{key}", f"Grades of {name}")


@st.fragment
@say.errors()  # somebody may delete the set meanwhile
def _disagreements() -> None:
    """Draw the disagreement that a link names, else the first, the furthest apart first, and its keys."""
    desk = opened().desk
    found = {(one.question, one.passage): one for one in final.disagreements(desk)}
    st.markdown("**Disagreements**")
    if not found:
        st.caption("None. Annotators who graded the same passage gave the same grade.")
        return
    pairs = list(found)
    at = st.session_state.get(AT)
    if at not in found:
        st.session_state[AT] = at = pairs[0]
    one, open_ = found[at], sum(each.adjudication is None for each in found.values())
    st.caption(
        f"{len(found)} passages have different grades; {open_} of them are open. The lower median counts "
        "until you set a final grade."
    )
    with st.container(key="label_desk"):
        with st.container():
            show(fragment("label.question", desk.asked[at[0]]))
        with st.container():
            pooled = desk.pool[at[0]][at[1]]
            show(passage(desk.set.corpus, desk.asked[at[0]], pooled, routes=False))
            _keys(pairs, at, one.adjudication)
            keys.outcome()
        with st.container():
            rows = [(who, f"{grade} {keys.SHORT[grade]}", desk.by(who)[at].note) for who, grade in one.grades]
            head = (
                f"Disagreement {pairs.index(at) + 1} of {len(found)}: {count(one.distance, 'grades')} apart"
            )
            known = one.adjudication
            by = f"Adjudicated by {known.annotator}: {keys.said(known)}." if known else ""
            show(fragment("label.disagreement", head, rows, by))
    address.keep("question", at[0])
    address.keep("passage", at[1])


def _keys(pairs: list[Pair], at: Pair, final: Judgement | None) -> None:
    key = "label_settle_{}:" + ":".join(at).replace("{", "{{").replace("}", "}}")
    pad = keys.Keypad()
    pad.grades(key, final, _settle)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        lit = final is not None and final.kind == "cannot"
        hint = "Counts the passage as unjudged"
        pad.button("Can't tell", key.format("cannot"), "j", _settle, "cannot", lit=lit, hint=hint)
        mine = final is not None and final.annotator == annotator()
        hint = "Withdraws your final grade of this passage"
        pad.button("Undo", key.format("undo"), "u", _undo, off=not mine, hint=hint)
        pad.moves(key, pairs, at, AT)
    pad.listen()
    keys.note(NOTE.format(*at), final, "Reason")


def _settle(kind: Kind, grade: int | None = None) -> None:
    """Save the final grade of the passage shown, and go to the next that is open."""
    at: Pair = st.session_state[AT]
    note = str(st.session_state.get(NOTE.format(*at)) or "").strip()
    if not keys.save(Judgement(*at, annotator(), "adjudication", kind, grade, note), "final grade "):
        return
    for one in final.disagreements(held(st.session_state[SET]).desk):
        if one.adjudication is None:
            st.session_state[AT] = (one.question, one.passage)
            return


def _undo() -> None:
    """Withdraw the annotator's final grade of the passage shown."""
    at: Pair = st.session_state[AT]
    gone = held(st.session_state[SET]).desk.adjudicated().get(at)
    withdrawn = Judgement(*at, annotator(), "adjudication", "withdrawn")
    if gone is not None and gone.annotator == annotator() and keys.save(withdrawn, failed="Not undone"):
        keys.tell(f"Withdrawn {keys.now()}: final grade {keys.said(gone)}")
