"""Disagreements, the furthest apart first: one passage at a time, its final grade by the same keys."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from core.domain.errors import RouteScopeError
from core.evaluation.labels import agreement
from core.evaluation.labels import desk as desks
from core.evaluation.labels.agreement import Disagreement
from core.evaluation.labels.desk import Desk
from core.store.labels import GRADES, Judgement, Kind, Pair
from ui.app import address
from ui.app.markup import md, show, tag
from ui.label import passage as label_passage
from ui.label.desk import SET, annotator, held, opened, store
from ui.label.keys import KEYS, SHORT, now, said

AT = "label_settle_at"
OUTCOME = "label_settle_said"


def draw(desk: Desk) -> None:
    """Draw the disagreement that a link names, else the first that is open."""
    question = st.query_params.get("question", "")
    pairs = {
        (one.question, one.passage): (one.question, one.passage) for one in agreement.disagreements(desk)
    }
    address.take("passage", AT, lambda passage: pairs[question, passage])
    _desk()


@st.fragment
def _desk() -> None:
    try:
        desk = opened().desk
    except RouteScopeError as error:  # deleted by somebody meanwhile
        st.error(md(str(error)))
        return
    found = agreement.disagreements(desk)
    st.markdown("**Disagreements**")
    if not found:
        st.caption("None. Annotators who graded the same passage gave the same grade.")
        return
    pairs = [(one.question, one.passage) for one in found]
    at = st.session_state.get(AT)
    if at not in pairs:
        st.session_state[AT] = at = pairs[0]
    one, open_ = found[pairs.index(at)], sum(each.adjudication is None for each in found)
    st.caption(
        f"{len(found)} passages have different grades; {open_} of them are open. The lower median counts "
        "until you set a final grade. The final grade marks the passage as adjudicated and does not change "
        "the annotators' grades."
    )
    with st.container(key="label_desk"):
        with st.container():
            show(label_passage.question(desk.asked[one.question]))
        with st.container():
            pooled = desk.pool[one.question][one.passage]
            show(label_passage.passage(desk.set.corpus, desk.asked[one.question], pooled, routes=False))
            _keys(pairs, one)
            css, text = st.session_state.get(OUTCOME, ("dim", "Each key saves immediately."))
            show(tag("div", text, css=f"rs rs-label-saved {css}", role="status"))
        with st.container():
            show(_who(desk, one, pairs.index(at) + 1, len(found)))
    address.keep("question", at[0])
    address.keep("passage", at[1])


def _who(desk: Desk, one: Disagreement, place: int, count: int) -> Markup:
    """Return each annotator's grade and note, and the final grade if there is one."""
    rows = []
    for who, grade in one.grades:
        note = desk.by(who)[one.question, one.passage].note
        rows.append(
            tag("tr", tag("td", who), tag("td", f"{grade} {SHORT[grade]}"), tag("td", note, css="dim"))
        )
    head = (
        f"Disagreement {place} of {count}: {one.distance} {'grade' if one.distance == 1 else 'grades'} apart"
    )
    final = one.adjudication
    end = f"Adjudicated by {final.annotator}: {said(final)}." if final else "Open: the lower median counts."
    table = tag("table", tag("tbody", *rows), css="rs-table rs-label-meets")
    chip = tag("span", "adjudicated", css="chip accent") if final else ""
    return tag("div", tag("div", head, " ", chip, css="dim"), table, tag("div", end), css="rs")


def _keys(pairs: list[Pair], one: Disagreement) -> None:
    at = (one.question, one.passage)
    mark = f"{one.question}:{one.passage}"
    place = pairs.index(at)
    final = one.adjudication
    with st.container(horizontal=True, gap="small"):
        for grade, letter in KEYS.items():
            st.button(
                f"{grade} {SHORT[grade]}",
                key=f"label_settle_{grade}:{mark}",
                shortcut=letter,
                help=GRADES[grade],
                on_click=_settle,
                args=(at, "grade", grade),
                type="primary" if final is not None and final.grade == grade else "secondary",
            )
        st.button(
            "Can't tell",
            key=f"label_settle_cannot:{mark}",
            shortcut="j",
            on_click=_settle,
            args=(at, "cannot"),
            help="Counts the passage as unjudged",
            type="primary" if final is not None and final.kind == "cannot" else "secondary",
        )
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Undo",
            key=f"label_settle_undo:{mark}",
            shortcut="u",
            on_click=_undo,
            type="tertiary",
            disabled=final is None or final.annotator != annotator(),
            help="Withdraws your final grade of this passage",
        )
        st.button(
            "Back",
            key=f"label_settle_back:{mark}",
            shortcut="h",
            on_click=_to,
            type="tertiary",
            args=(pairs[place - 1],),
            disabled=place == 0,
        )
        st.button(
            "Forward",
            key=f"label_settle_on:{mark}",
            shortcut="l",
            on_click=_to,
            type="tertiary",
            args=(pairs[(place + 1) % len(pairs)],),
            disabled=place + 1 == len(pairs),
        )
    st.text_input(
        "Note",
        final.note if final else "",
        key=_note(at),
        max_chars=2000,
        label_visibility="collapsed",
        placeholder="Reason, saved with the next key (press Tab to leave this field and grade)",
    )


def _settle(at: Pair, kind: Kind, grade: int | None = None) -> None:
    """Save the final grade, and go to the next that is open."""
    name = st.session_state[SET]
    note = str(st.session_state.get(_note(at)) or "").strip()
    judgement = Judgement(*at, annotator(), "adjudication", kind, grade, note)
    try:
        desks.judge(store(), name, judgement)
    except RouteScopeError as error:
        st.session_state[OUTCOME] = ("bad", f"Not saved: {error}")
        return
    st.session_state[OUTCOME] = ("dim", f"Saved {now()}: final grade {said(judgement)}")
    open_ = [one for one in agreement.disagreements(held(name).desk) if one.adjudication is None]
    if open_:
        st.session_state[AT] = (open_[0].question, open_[0].passage)


def _undo() -> None:
    """Withdraw the annotator's final grade of the passage shown."""
    name = st.session_state[SET]
    at: Pair = st.session_state[AT]
    gone = held(name).desk.adjudicated().get(at)
    if gone is None:
        return
    withdrawn = Judgement(*at, annotator(), "adjudication", "withdrawn")
    try:
        desks.judge(store(), name, withdrawn)
    except RouteScopeError as error:
        st.session_state[OUTCOME] = ("bad", f"Not undone: {error}")
        return
    st.session_state[OUTCOME] = ("dim", f"Withdrawn {now()}: final grade {said(gone)}")


def _to(at: Pair) -> None:
    st.session_state[AT] = at


def _note(at: Pair) -> str:
    return f"label_settle_note:{at[0]}:{at[1]}"
