"""The labelling queue: one passage at a time, a key for each grade, saved at once."""

from __future__ import annotations

import streamlit as st

from core.domain.errors import RouteScopeError
from core.evaluation.labels import desk as desks
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.queue import onward
from core.store.labels import GRADES, Judgement, Kind, Pair
from ui.app import account, address, evaluated
from ui.app.choice import choice
from ui.app.markup import cut, md, show, tag
from ui.app.names import named
from ui.app.routes import title
from ui.label import passage as label_passage
from ui.label import progress, sets, suggested
from ui.label.desk import EFFORT, ME, ORDER, SET, OpenSet, annotator, deciding, held, opened, store
from ui.label.keys import KEYS, SHORT, said
from ui.label.keys import now as clock

AT = "label_at"  # the (question, passage) that is shown
OUTCOME = "label_said"  # the effect of the last key: (css class, text)
ROUTES = "label_routes"  # whether the routes that found a passage are shown
JUMP = "label_jump"


def draw(desk: Desk) -> None:
    """Draw the queue of the set for the annotator; a link may name the question and the passage."""
    question = st.query_params.get("question", "")
    address.take("passage", AT, lambda passage: _known(desk, (question, passage)))
    address.take("order", ORDER, str)
    address.take("routes", ROUTES, lambda text: text == "1")
    address.take("suggest", suggested.SHOW_KEY, lambda text: text == "1")
    _desk()


@st.fragment
def _desk() -> None:
    """Draw what a key redraws, and nothing else of the page."""
    who = annotator()
    try:
        now = opened()
    except RouteScopeError as error:  # deleted by somebody meanwhile
        st.error(md(str(error)))
        return
    _effort(now, who)
    desk, order = now.desk, now.order(who)
    account.notice("label")
    mine = desk.by(who)
    at = st.session_state.get(AT)
    if at is None or at[1] not in desk.pool.get(at[0], {}):  # nowhere yet, or in another set
        st.session_state[AT] = at = onward(order, mine)
    _order()
    with st.container(key="label_desk"):
        with st.container():
            done = tag("div", "No question is left.", css="rs dim")
            show(done if at is None else label_passage.question(desk.asked[at[0]]))
        with st.container():
            if at is None:
                _finished(desk, who, order)
            else:
                _passage(desk, at, mine.get(at))
                _keys(order, at, mine.get(at))
            _said()
            if at is not None:
                _note_of(at, mine.get(at))
        with st.container():
            progress.draw(desk, who, at)
            _jump(desk)
            _switches(desk)
            _guidelines(desk)
    address.keep("question", at[0] if at else None)
    address.keep("passage", at[1] if at else None)
    address.keep("routes", "1" if st.session_state.get(ROUTES) else None)


def _effort(now: OpenSet, who: str) -> None:
    """Draw the choice of the minutes, and how many of the passages that fit them are left."""
    if st.session_state.get(ORDER):
        return
    minutes = choice(
        "minutes",
        EFFORT,
        "Effort",
        [0, 15, 30, 60],
        segmented=True,
        format_func=lambda minutes: f"{minutes} minutes" if minutes else "All passages",
        on_change=_from_start,
        label_visibility="collapsed",
    )
    if (most := now.most(who)) is None:
        return
    mine, first = now.desk.by(who), now.order(who)[:most]
    left = sum(pair not in mine for pair in first)
    pace = most and 60 * minutes / most
    st.caption(
        f"The {len(first)} passages on which routes differ most come first, at {pace:.1f} s a grade: "
        + (f"{left} left. " if left else "all are graded; you can stop here. ")
        + "Ungraded ones count as not relevant, so a mean may be too low."
    )


def _from_start() -> None:
    st.session_state.pop(AT, None)


def _order() -> None:
    """Draw the purpose of the questions' order, unless it is the default."""
    address.keep("order", st.session_state.get(ORDER))
    if (found := deciding()) is None:
        return
    name, one, other = found
    try:
        evaluated.reopened(name)
    except RouteScopeError:
        st.caption(md(f"Evaluation {name} cannot be opened, so the questions are in their usual order."))
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            md(
                f"The questions that decide most between {title(one)} and {title(other)} in "
                f"evaluation {name} "
                "come first; in each, unjudged passages first."
            )
        )
        st.button("Usual order", key="label_usual", type="tertiary", on_click=_usual)


def _usual() -> None:
    st.session_state[ORDER] = None
    st.session_state.pop(AT, None)


def _known(desk: Desk, pair: Pair) -> Pair:
    if pair[1] not in desk.pool.get(pair[0], {}):
        raise KeyError(pair)
    return pair


def _passage(desk: Desk, at: Pair, mine: Judgement | None) -> None:
    question, id = at
    one = desk.pool[question][id]
    show(
        label_passage.passage(
            desk.set.corpus, desk.asked[question], one, routes=bool(st.session_state.get(ROUTES))
        )
    )
    suggested.of(desk, at)
    if mine is not None:
        show(tag("div", f"Your grade: {said(mine)}.", css="rs dim"))


def _keys(order: tuple[Pair, ...], at: Pair, mine: Judgement | None) -> None:
    """Draw the buttons. They stay the same from passage to passage: a key pressed while the next passage is
    still on its way grades that one, and none is lost.
    """
    place = order.index(at)
    with st.container(horizontal=True, gap="small"):
        for grade, letter in KEYS.items():
            st.button(
                f"{grade} {SHORT[grade]}",
                key=f"label_grade_{grade}",
                shortcut=letter,
                **account.needs("label", help=GRADES[grade]),
                on_click=_judge,
                args=("grade", grade),
                type="primary" if mine is not None and mine.grade == grade else "secondary",
            )
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for kind, label, letter, hint in (
            ("cannot", "Can't tell", "j", "The text does not decide it; add a note to say why"),
            ("later", "Later", "k", "Returns after all other passages are judged"),
        ):
            st.button(
                label,
                key=f"label_{kind}",
                shortcut=letter,
                **account.needs("label", help=hint),
                on_click=_judge,
                args=(kind,),
                type="primary" if mine is not None and mine.kind == kind else "secondary",
            )
        _moves(order, place)


def _moves(order: tuple[Pair, ...], place: int) -> None:
    st.button(
        "Undo",
        key="label_undo",
        shortcut="u",
        on_click=_undo,
        type="tertiary",
        **account.needs("label", help="Withdraws your last judgement and shows it again"),
    )
    st.button(
        "Back",
        key="label_backward",
        shortcut="h",
        on_click=_to,
        type="tertiary",
        args=(order[place - 1],),
        disabled=place == 0,
    )
    st.button(
        "Forward",
        key="label_on",
        shortcut="l",
        on_click=_to,
        type="tertiary",
        args=(order[(place + 1) % len(order)],),
        disabled=place + 1 == len(order),
    )
    st.button(
        "Next unjudged",
        key="label_next",
        shortcut="n",
        on_click=_next,
        type="tertiary",
        args=(order[place],),
    )


def _judge(kind: Kind, grade: int | None = None) -> None:
    """Save a judgement and go on; the page shows "saved" once the store has it, and not before."""
    name, who = st.session_state[SET], annotator()
    at: Pair | None = st.session_state.get(AT)
    if at is None:  # a key pressed after the last passage
        return
    note = str(st.session_state.get(_note(at)) or "").strip()
    judgement = Judgement(*at, who, "person", kind, grade, note)
    try:
        desks.judge(store(), name, judgement)
    except RouteScopeError as error:
        st.session_state[OUTCOME] = ("bad", f"Not saved: {error}")
        return
    now = held(name)
    desk = now.desk
    title = named(desk.set.corpus, desk.pool[at[0]][at[1]].passage)
    st.session_state[OUTCOME] = ("dim", f"Saved {clock()}: {said(judgement)} · {cut(title, 60)}")
    st.session_state[AT] = onward(now.order(who), desk.by(who), at)


def _undo() -> None:
    name, who = st.session_state[SET], annotator()
    try:
        gone = desks.undo(store(), name, who)
    except RouteScopeError as error:
        st.session_state[OUTCOME] = ("bad", f"Not undone: {error}")
        return
    if gone is None:
        st.session_state[OUTCOME] = ("dim", "Nothing to undo: you have not judged any passage here.")
        return
    st.session_state[AT] = gone.pair
    st.session_state[OUTCOME] = ("dim", f"Withdrawn {clock()}: {said(gone)}")


def _to(at: Pair) -> None:
    st.session_state[AT] = at


def _next(at: Pair) -> None:
    now, who = opened(), annotator()
    st.session_state[AT] = onward(now.order(who), now.desk.by(who), at) or at


def _said() -> None:
    """Draw the effect of the last key on one line, which is always present to keep the layout still."""
    css, text = st.session_state.get(OUTCOME, ("dim", "Each key saves immediately."))
    show(tag("div", text, css=f"rs rs-label-saved {css}", role="status"))


def _note_of(at: Pair, mine: Judgement | None) -> None:
    st.text_input(
        "Note",
        mine.note if mine else "",
        key=_note(at),
        max_chars=2000,
        label_visibility="collapsed",
        placeholder="Note, saved with the next key (press Tab to leave this field and grade)",
    )


def _switches(desk: Desk) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.toggle(
            "Show routes",
            key=ROUTES,
            persist_state="session",
            help="Shows which routes found the passage, and at which rank. Labels are more reliable "
            "when you grade without seeing this.",
        )
        suggested.switch(desk)


def _jump(desk: Desk) -> None:
    places = {one.id: place for place, one in enumerate(desk.questions, 1) if desk.pool.get(one.id)}
    st.selectbox(
        "Jump to a question",
        list(places),
        index=None,
        key=JUMP,
        on_change=_jumped,
        label_visibility="collapsed",
        placeholder="Jump to a question",
        format_func=lambda id: f"{places[id]}. {label_passage.one_line(desk.asked[id])}",
    )


def _jumped() -> None:
    question = st.session_state[JUMP]
    st.session_state[JUMP] = None
    if question is None:
        return
    now, who = opened(), annotator()
    own = [pair for pair in now.order(who) if pair[0] == question]
    mine = now.desk.by(who)
    st.session_state[AT] = next((pair for pair in own if pair not in mine), own[0])


def _guidelines(desk: Desk) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("**Guidelines**")
        with st.popover("Edit", type="tertiary", key="label_guide_edit"):
            sets.guidelines(desk.set)
    text = tag("div", desk.set.guidelines or "None yet.", css="rs-label-guide", dir="auto")
    show(tag("div", text, css="rs"))


def _finished(desk: Desk, who: str, order: tuple[Pair, ...]) -> None:
    st.subheader("Every passage is judged", anchor=False)
    st.caption(
        md(
            f"{'You have' if who == ME else f'{who} has'} judged all "
            f"{sum(map(len, desk.pool.values())):,} passages in this set. "
            "See the result under Labels, and measure routes on it under Evaluate. To check how reliable the "
            "labels are, have a second annotator grade the passages and see Agreement."
        )
    )
    st.page_link("evaluate.py", label="Evaluate routes on this set", query_params={"labels": desk.set.name})
    with st.container(horizontal=True):
        st.button("Undo", key="label_undo", shortcut="u", on_click=_undo)
        st.button("Back", key="label_backward", shortcut="h", on_click=_to, args=(order[-1],))


def _note(at: Pair) -> str:
    return f"label_note:{at[0]}:{at[1]}"
