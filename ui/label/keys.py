"""The keys that grade, what they save, and judgements in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import streamlit as st

from core.domain.errors import RouteScopeError
from core.evaluation.labels import desk as desks
from core.store.labels import GRADES, Judgement, Pair
from ui.app import account, scripts, state
from ui.app.markup import cut, show, tag
from ui.components.complaint import who
from ui.label.desk import SET

KEYS = {0: "a", 1: "s", 2: "d", 3: "f"}  # the home row
SHORT = {0: "not relevant", 1: "background", 2: "partial answer", 3: "answers"}
OUTCOME = "label_said"  # the effect of the last key: (css class, text)


def said(one: Judgement) -> str:
    """Describe a judgement."""
    words = {"cannot": "can't tell", "neither": "both are bad"}.get(one.kind, one.kind)
    if one.kind == "grade" and one.grade is not None:
        words = f"{one.grade} {SHORT[one.grade]}"
    return f"{words} (“{cut(one.note, 120)}”)" if one.note else words


class Keypad:
    """The buttons of a passage and the letters that press them, which `listen` hears once all are drawn."""

    def __init__(self) -> None:
        self._pressed: dict[str, Callable[[], Any]] = {}

    def button(
        self,
        label: str,
        key: str,
        letter: str,
        then: Callable[..., Any],
        *args: object,
        lit: bool | None = None,
        off: bool = False,
        hint: str | None = None,
    ) -> None:
        """Draw a button with its letter; `lit` marks a given grade, None is for a way to another passage.

        The letter calls `then` even while the button is `off`: earlier letters may not be drawn yet.
        """
        given = account.needs("label", help=hint)
        if not given["disabled"]:
            self._pressed[letter] = partial(then, *args)
            given["disabled"] = off
        kind: Any = "tertiary" if lit is None else "primary" if lit else "secondary"
        st.button(f"{label} `{letter.upper()}`", key=key, on_click=then, args=args, type=kind, **given)

    def grades(self, key: str, given: Judgement | None, then: Callable[..., None]) -> None:
        """Draw a button for each grade, which calls `then` with it. `key` has a place for the grade."""
        with st.container(horizontal=True, gap="small"):
            for grade, letter in KEYS.items():
                lit = given is not None and given.grade == grade
                label = f"{grade} {SHORT[grade]}"
                self.button(
                    label, key.format(grade), letter, then, "grade", grade, lit=lit, hint=GRADES[grade]
                )

    def moves(self, key: str, order: Sequence[Pair], at: Pair, where: str) -> None:
        """Draw the buttons to the passages before and after `at`; they set the session's `where`."""
        place, last = order.index(at), len(order) - 1
        self.button("Back", key.format("back"), "h", _step, order, where, -1, off=not place)
        self.button("Forward", key.format("on"), "l", _step, order, where, 1, off=place == last)

    def listen(self) -> None:
        """Press the buttons drawn so far by their letters."""
        scripts.listen("script_label", lambda letter: self._pressed[letter](), "".join(self._pressed))


def _step(order: Sequence[Pair], where: str, by: int) -> None:
    """Go on in `order` from the session's `where`, None after the last, and not beyond its ends."""
    at = st.session_state[where]
    place = (order.index(at) if at in order else len(order)) + by
    if 0 <= place < len(order):
        st.session_state[where] = order[place]


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


def undo(done: str, *, preferences: bool = False) -> Judgement | None:
    """Take back the annotator's last judgement, remember that for `outcome`, and return the judgement; `done`
    names what there was to undo.
    """
    try:
        gone = desks.undo(state.store(), st.session_state[SET], who(), preferences=preferences)
    except RouteScopeError as error:
        st.session_state[OUTCOME] = ("bad", f"Not undone: {error}")
        return None
    tell(f"Withdrawn {now()}: {said(gone)}" if gone else f"Nothing to undo: you have not {done} here.")
    return gone


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
