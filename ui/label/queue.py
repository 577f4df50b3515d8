"""The labelling queue: one passage at a time, a key for each grade, saved at once."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.domain.errors import RouteScopeError
from core.domain.format import number
from core.evaluation.finding import count
from core.evaluation.labels import draw as drawing
from core.evaluation.labels import label_next
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.label_next import onward
from core.evaluation.verdict import MIN_QUESTIONS
from core.store.labels import Judgement, Kind, Pair
from ui.app import account, address, evaluated, say, state
from ui.app.choice import choice
from ui.app.markup import cut, fragment, show, tag
from ui.app.names import named
from ui.app.routes import title
from ui.components.complaint import who as annotator
from ui.label import keys, model, sets
from ui.label.desk import EFFORT, ORDER, SECOND, SET, OpenSet, attempt, deciding, held, opened
from ui.label.passage import passage

AT = "label_at"  # the (question, passage) that is shown
ROUTES = "label_routes"  # whether the routes that found a passage are shown
JUMP = "label_jump"
NOTE = "label_note:{}:{}"
COUNTS = {"judged": "graded", "cannot": "can't tell", "later": "later", "left": "left"}  # of Progress


def draw(desk: Desk) -> None:
    """Draw the queue of the set for the annotator; a link may name the question and the passage."""
    question = st.query_params.get("question", "")
    known = {passage: (question, passage) for passage in desk.pool.get(question, {})}
    address.take("passage", AT, known.__getitem__)
    address.take("order", ORDER, str)
    address.take("routes", ROUTES, lambda text: text == "1")
    address.take("suggest", model.SHOW_KEY, lambda text: text == "1")
    _desk()


@st.fragment
@say.errors()  # somebody may delete the set meanwhile
def _desk() -> None:
    """Draw what a key redraws, and nothing else of the page."""
    who, now = annotator(), opened()
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
            if at is None:
                st.caption("No question is left.")
            else:
                show(fragment("label.question", desk.asked[at[0]]))
        with st.container():
            if at is None:
                _finished(desk, order)
                keys.outcome()
            else:
                _passage(desk, order, at, mine.get(at))
        with st.container():
            _progress(desk, who, at)
            _controls(desk)
    address.keep("question", at[0] if at else None)
    address.keep("passage", at[1] if at else None)
    address.keep("routes", "1" if st.session_state.get(ROUTES) else None)


def _effort(now: OpenSet, who: str) -> None:
    """Draw the choice of the minutes, and how many of the passages that fit them are left."""
    if st.session_state.get(ORDER):
        return
    efforts = {0: "All passages", **{minutes: f"{minutes} minutes" for minutes in (15, 30, 60)}}
    if now.desk.annotators():
        efforts[SECOND] = "Second opinions"
    given: Any = {"on_change": st.session_state.pop, "args": (AT, None), "label_visibility": "collapsed"}
    with st.container(horizontal=True, vertical_alignment="center"):
        minutes = choice("minutes", EFFORT, "Effort", efforts, segmented=True, **given)
        if not now.desk.drawn and not now.desk.annotators():
            note = "Questions at which labels can move the routes far apart come early more often"
            drawn = st.button("Draw a random order", key="label_draw", **account.needs("edit", help=note))
            if drawn and attempt(lambda: drawing.draw(state.store(), now.desk.set.name)):
                st.session_state.pop(AT, None)
                st.rerun()
    if now.desk.drawn:
        st.caption(
            "Questions come in the order that was drawn, and Evaluate counts each by its chance. "
            "Stop when your time is up, not because of the grades."
        )
        if isinstance(ends := now.outlook(), tuple):
            st.caption(
                f"Grading the next {drawing.MORE} questions would narrow the difference of the two leading "
                f"routes from ±{number(ends[0])} to about ±{number(ends[1])} nDCG@10."
            )
    mine, order = now.desk.by(who), now.order(who)
    if (most := now.most(who)) is None:
        return
    left = sum(pair not in mine for pair in order[:most])
    if minutes == SECOND:
        st.caption(
            f"{count(left, 'grades')} of others would change the decision if you disagree, and come first."
            if left
            else "No single grade of others would change the decision."
        )
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        if not left or now.outlook() is True:
            st.caption(
                f"You can stop: more grades would hardly change which route is best ({left} left)."
                if left
                else "All passages that fit the minutes are graded."
            )
            query = {"labels": now.desk.set.name}
            st.page_link("evaluate.py", label="Evaluate routes on this set", query_params=query)
        else:
            pace = f"{left} left, {60 * minutes / most:.1f} s each"
            first = "" if now.desk.drawn else "Passages on which routes differ most come first: "
            st.caption(f"{first}{pace}.")
        if (short := MIN_QUESTIONS - len(now.desk.pool)) > 0:
            st.caption(f"Shipping a route takes {MIN_QUESTIONS} questions, {short} more than here.")


def _order() -> None:
    """Draw the purpose of the questions' order, unless it is the default."""
    address.keep("order", st.session_state.get(ORDER))
    if (found := deciding()) is None:
        return
    name, one, other = found
    try:
        evaluated.reopened(name)
    except RouteScopeError:
        say.caption(f"Evaluation {name} cannot be opened, so the questions are in their usual order.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        say.caption(
            f"The questions that decide most between {title(one)} and {title(other)} in evaluation "
            f"{name} come first."
        )
        given: Any = {"on_click": st.session_state.update, "args": ({ORDER: None, AT: None},)}
        st.button("Usual order", key="label_usual", type="tertiary", **given)


def _passage(desk: Desk, order: tuple[Pair, ...], at: Pair, mine: Judgement | None) -> None:
    """Draw the passage with its keys. They stay the same from passage to passage: a key pressed while the
    next passage is still on its way grades that one, and none is lost.
    """
    routes = bool(st.session_state.get(ROUTES))
    show(passage(desk.set.corpus, desk.asked[at[0]], desk.pool[at[0]][at[1]], routes=routes))
    model.suggestions(desk, at)
    if mine is not None:
        show(tag("div", f"Your grade: {keys.said(mine)}.", css="rs dim"))
    pad = keys.Keypad()
    pad.grades("label_grade_{}", mine, _judge)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for kind, label, letter, hint in (
            ("cannot", "Can't tell", "j", "The text does not decide it; add a note to say why"),
            ("later", "Later", "k", "Returns after all other passages are judged"),
        ):
            lit = mine is not None and mine.kind == kind
            pad.button(label, f"label_{kind}", letter, _judge, kind, lit=lit, hint=hint)
        hint = "Withdraws your last judgement and shows it again"
        pad.button("Undo", "label_undo", "u", _undo, hint=hint)
        pad.moves("label_{}", order, at, AT)
        pad.button("Next unjudged", "label_next", "n", _next)
    pad.listen()
    keys.outcome()
    keys.note(NOTE.format(*at), mine)


def _judge(kind: Kind, grade: int | None = None) -> None:
    """Save a judgement and go on; the page shows "saved" once the store has it, and not before."""
    name, who = st.session_state[SET], annotator()
    at: Pair | None = st.session_state.get(AT)
    if at is None:  # a key pressed after the last passage
        return
    note = str(st.session_state.get(NOTE.format(*at)) or "").strip()
    judgement = Judgement(*at, who, "person", kind, grade, note)
    if not keys.save(judgement):
        return
    now = held(name)
    name = named(now.desk.set.corpus, now.desk.pool[at[0]][at[1]].passage)
    keys.tell(f"Saved {keys.now()}: {keys.said(judgement)} · {cut(name, 60)}")
    st.session_state[AT] = onward(now.order(who), now.desk.by(who), at)


def _undo() -> None:
    if gone := keys.undo("judged any passage"):
        st.session_state[AT] = gone.pair


def _next() -> None:
    now, who, at = opened(), annotator(), st.session_state[AT]
    st.session_state[AT] = onward(now.order(who), now.desk.by(who), at) or at


def _progress(desk: Desk, who: str, at: Pair | None) -> None:
    """Draw the overall progress, and a line about the current question."""
    by, whole = label_next.progress(desk, who)
    line = ""
    if at is not None:
        here, place = by[at[0]], list(desk.asked).index(at[0]) + 1
        judged = here.total - here.left - here.later
        line = f"Question {place} of {len(desk.questions)}: {judged} of {here.total} passages judged"
    counts = [(name, label, getattr(whole, name)) for name, label in COUNTS.items()]
    show(fragment("label.progress", counts, whole.total, line))


def _controls(desk: Desk) -> None:
    """Draw what else is shown, a jump to a question, and the guidelines. No field follows the note directly:
    Tab leaves it for the next key.
    """
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        note = "Shows which routes found the passage. Labels are more reliable without."
        st.toggle("Show routes", key=ROUTES, persist_state="session", help=note)
        model.switch(desk)
    places = {one.id: place for place, one in enumerate(desk.questions, 1) if desk.pool.get(one.id)}
    label = "Jump to a question"
    st.selectbox(
        label,
        list(places),
        index=None,
        key=JUMP,
        on_change=_jumped,
        label_visibility="collapsed",
        placeholder=label,
        format_func=lambda id: f"{places[id]}. {cut(desk.asked[id].query.text, 90)}",
    )
    sets.guide(desk.set)


def _jumped() -> None:
    question = st.session_state[JUMP]
    st.session_state[JUMP] = None
    if question is None:
        return
    now, who = opened(), annotator()
    own = [pair for pair in now.order(who) if pair[0] == question]
    mine = now.desk.by(who)
    st.session_state[AT] = next((pair for pair in own if pair not in mine), own[0])


def _finished(desk: Desk, order: tuple[Pair, ...]) -> None:
    st.subheader("Every passage is judged", anchor=False)
    say.caption(
        f"All {sum(map(len, desk.pool.values())):,} passages of this set. To check how reliable the labels "
        "are, have a second annotator grade the passages and see Agreement."
    )
    st.page_link("evaluate.py", label="Evaluate routes on this set", query_params={"labels": desk.set.name})
    with st.container(horizontal=True):
        pad = keys.Keypad()
        pad.button("Undo", "label_undo", "u", _undo, lit=False)
        pad.button("Back", "label_back_end", "h", st.session_state.__setitem__, AT, order[-1], lit=False)
        pad.listen()
