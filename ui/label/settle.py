"""Disagreements, the furthest apart first: one passage at a time, its final grade by the same keys."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from core.domain.errors import RouteScopeError
from core.evaluation.finding import count
from core.evaluation.labels import agreement
from core.evaluation.labels.agreement import Disagreement
from core.evaluation.labels.desk import Desk
from core.store.labels import Judgement, Kind, Pair
from ui.app import address, say
from ui.app.markup import show, tag
from ui.label import keys
from ui.label import passage as label_passage
from ui.label.desk import SET, annotator, held, opened

AT = "label_settle_at"
NOTE = "label_settle_note:{}:{}"


def draw(desk: Desk) -> None:
    """Draw the disagreement that a link names, else the first that is open."""
    question = st.query_params.get("question", "")
    pairs = {(one.question, one.passage) for one in agreement.disagreements(desk)}
    address.take(
        "passage", AT, {passage: (of, passage) for of, passage in pairs if of == question}.__getitem__
    )
    _desk()


@st.fragment
def _desk() -> None:
    try:
        desk = opened().desk
    except RouteScopeError as error:  # deleted by somebody meanwhile
        say.error(error)
        return
    found = {(one.question, one.passage): one for one in agreement.disagreements(desk)}
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
            show(label_passage.question(desk.asked[at[0]]))
        with st.container():
            pooled = desk.pool[at[0]][at[1]]
            show(label_passage.passage(desk.set.corpus, desk.asked[at[0]], pooled, routes=False))
            _keys(pairs, at, one.adjudication)
            keys.outcome()
        with st.container():
            show(_who(desk, one, pairs.index(at) + 1, len(found)))
    address.keep("question", at[0])
    address.keep("passage", at[1])


def _who(desk: Desk, one: Disagreement, place: int, of: int) -> Markup:
    """Return each annotator's grade and note, and the final grade if there is one."""
    rows = [
        tag(
            "tr",
            tag("td", who),
            tag("td", f"{grade} {keys.SHORT[grade]}"),
            tag("td", desk.by(who)[one.question, one.passage].note, css="dim"),
        )
        for who, grade in one.grades
    ]
    final = one.adjudication
    by = f"Adjudicated by {final.annotator}: {keys.said(final)}." if final else ""
    table = tag("table", tag("tbody", *rows), css="rs-table rs-label-meets")
    chip = tag("span", "adjudicated", css="chip accent") if final else ""
    head = f"Disagreement {place} of {of}: {count(one.distance, 'grades')} apart "
    return tag(
        "div",
        tag("div", head, chip, css="dim"),
        table,
        tag("div", by or "Open: the lower median counts."),
        css="rs",
    )


def _keys(pairs: list[Pair], at: Pair, final: Judgement | None) -> None:
    key = "label_settle_{}:" + ":".join(at).replace("{", "{{").replace("}", "}}")
    keys.grades(key, final, _settle)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        lit = final is not None and final.kind == "cannot"
        hint = "Counts the passage as unjudged"
        keys.button("Can't tell", key.format("cannot"), "j", _settle, "cannot", lit=lit, hint=hint)
        mine = final is not None and final.annotator == annotator()
        hint = "Withdraws your final grade of this passage"
        keys.button("Undo", key.format("undo"), "u", _undo, off=not mine, hint=hint)
        keys.moves(key, pairs, at, AT)
    keys.note(NOTE.format(*at), final, "Reason")


def _settle(kind: Kind, grade: int | None = None) -> None:
    """Save the final grade of the passage shown, and go to the next that is open."""
    at: Pair = st.session_state[AT]
    note = str(st.session_state.get(NOTE.format(*at)) or "").strip()
    if not keys.save(Judgement(*at, annotator(), "adjudication", kind, grade, note), "final grade "):
        return
    for one in agreement.disagreements(held(st.session_state[SET]).desk):
        if one.adjudication is None:
            st.session_state[AT] = (one.question, one.passage)
            return


def _undo() -> None:
    """Withdraw the annotator's final grade of the passage shown."""
    at: Pair = st.session_state[AT]
    gone = held(st.session_state[SET]).desk.adjudicated().get(at)
    withdrawn = Judgement(*at, annotator(), "adjudication", "withdrawn")
    if gone is not None and keys.save(withdrawn, failed="Not undone"):
        keys.tell(f"Withdrawn {keys.now()}: final grade {keys.said(gone)}")
