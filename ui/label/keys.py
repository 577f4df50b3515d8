"""The keys that grade, what they save, and judgements in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import streamlit as st

from core.domain.errors import RouteScopeError
from core.evaluation.labels import desk as desks
from core.store.labels import GRADES, Judgement, Pair
from ui.app import account, state
from ui.app.markup import cut, show, tag
from ui.label.desk import SET

KEYS = {0: "a", 1: "s", 2: "d", 3: "f"}  # the home row
SHORT = {0: "not relevant", 1: "background", 2: "partial answer", 3: "answers"}
OUTCOME = "label_said"  # the effect of the last key: (css class, text)


def said(one: Judgement) -> str:
    """Describe a judgement."""
    words = {"cannot": "can't tell"}.get(one.kind, one.kind)
    if one.kind == "grade" and one.grade is not None:
        words = f"{one.grade} {SHORT[one.grade]}"
    return f"{words} (“{cut(one.note, 120)}”)" if one.note else words


def button(
    label: str,
    key: str,
    letter: str,
    then: Callable[..., None],
    *args: object,
    lit: bool | None = None,
    off: bool = False,
    hint: str | None = None,
) -> None:
    """Draw a button with its key; `lit` marks a grade that is given, None is for a way to another passage."""
    st.button(
        label,
        key=key,
        shortcut=letter,
        on_click=then,
        args=args,
        type="tertiary" if lit is None else "primary" if lit else "secondary",
        **account.needs("label", disabled=off, help=hint),
    )


def grades(key: str, given: Judgement | None, then: Callable[..., None]) -> None:
    """Draw a button for each grade, which calls `then` with it. `key` has a place for the grade."""
    with st.container(horizontal=True, gap="small"):
        for grade, letter in KEYS.items():
            lit = given is not None and given.grade == grade
            label = f"{grade} {SHORT[grade]}"
            button(label, key.format(grade), letter, then, "grade", grade, lit=lit, hint=GRADES[grade])


def moves(key: str, order: Sequence[Pair], at: Pair, where: str) -> None:
    """Draw the buttons to the passage before and after `at`, which set the session's `where`."""
    place, to = order.index(at), st.session_state.__setitem__
    after = order[(place + 1) % len(order)]
    button("Back", key.format("back"), "h", to, where, order[place - 1], off=not place)
    button("Forward", key.format("on"), "l", to, where, after, off=place + 1 == len(order))


def note(key: str, given: Judgement | None, what: str = "Note") -> None:
    """Draw the field for a note, which `save` takes."""
    st.text_input(
        "Note",
        given.note if given else "",
        key=key,
        max_chars=2000,
        label_visibility="collapsed",
        placeholder=f"{what}, saved with the next key (press Tab to leave this field and grade)",
    )


def save(judgement: Judgement, about: str = "", failed: str = "Not saved") -> bool:
    """Save a judgement and remember the outcome for `outcome`; return whether the store has it."""
    try:
        desks.judge(state.store(), st.session_state[SET], judgement)
    except RouteScopeError as error:
        st.session_state[OUTCOME] = ("bad", f"{failed}: {error}")
        return False
    tell(f"Saved {now()}: {about}{said(judgement)}")
    return True


def tell(text: str) -> None:
    """Remember the effect of the last key."""
    st.session_state[OUTCOME] = ("dim", text)


def outcome() -> None:
    """Draw the effect of the last key on one line, which is always present to keep the layout still."""
    css, text = st.session_state.get(OUTCOME, ("dim", "Each key saves immediately."))
    show(tag("div", text, css=f"rs rs-label-saved {css}", role="status"))


def now() -> str:
    """Return the time of day at the server."""
    return datetime.now().astimezone().strftime("%H:%M:%S")
