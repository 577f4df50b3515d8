"""A model's suggestions for a passage: shown on demand, marked as the model's, and never preselected."""

from __future__ import annotations

import streamlit as st

from core.evaluation.labels import suggest
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.suggest import Suggesting
from core.store.labels import GRADES, MODEL, Pair
from ui.app import address, say, state
from ui.app.markup import cut, show, tag
from ui.app.progress import follow
from ui.label.desk import attempt

SHOW_KEY = "label_suggest"


def switch(desk: Desk) -> None:
    """Draw the switch, where some model has suggested something."""
    if desk.models():
        st.toggle(
            "Show suggestions",
            key=SHOW_KEY,
            persist_state="session",
            help="Shows the grade a model suggests. Grade first: a suggestion sways you.",
        )
    address.keep("suggest", "1" if desk.models() and st.session_state.get(SHOW_KEY) else None)


def of(desk: Desk, at: Pair) -> None:
    """Draw the suggestions for a passage, if they are switched on."""
    if not st.session_state.get(SHOW_KEY):
        return
    lines = []
    for model in desk.models():
        one, name = desk.by(model).get(at), model.removeprefix(MODEL)
        if one is None:
            lines.append(tag("div", f"The model {name} has no suggestion for this passage.", css="dim"))
        elif one.grade is None:
            lines.append(tag("div", f"The model {name} suggests “can't tell”. {cut(one.note, 300)}"))
        else:
            head = tag("b", f"Suggested by the model {name}")
            note = tag("span", cut(one.note, 300), css="dim")
            lines.append(tag("div", head, f": {one.grade}, {GRADES[one.grade]}. ", note))
    show(tag("div", *lines, css="rs rs-label-said"))


def ask(desk: Desk) -> None:
    """Draw the buttons that have the language model suggest grades, the progress and the result."""
    engine, name = state.engine(), desk.set.name
    one = suggest.under_way(engine, name)
    if one is not None and not one.done:
        follow(
            one,
            lambda: f"{one.finished:,} of {one.total:,} passages sent to the model",
            key="label_suggest_stop",
        )
        return
    if one is not None:
        _ended(one)
    without = suggest.missing(desk, suggest.annotator(engine))
    judged = {each.pair for each in desk.current if each.source != "model"}
    held = [pair for pair in without if pair in judged]
    with st.container(horizontal=True, vertical_alignment="center"):
        for key, pairs, label in (
            ("judged", held, f"Suggest grades for {len(held):,} judged passages"),
            ("all", without, f"Suggest grades for all {len(without):,} passages"),
        ):
            if st.button(label, key=f"label_suggest_{key}", disabled=not pairs) and attempt(
                lambda pairs=pairs: suggest.begin(engine, name, pairs)
            ):
                st.rerun()


def _ended(one: Suggesting) -> None:
    result = f"{one.annotator} suggested a grade for {one.scored:,} of {one.total:,} passages."
    if one.error:
        say.error(f"Suggesting grades failed: {one.error}. {result}")
    elif one.unscored:
        why = cut(next(iter(one.why.values()), ""), 200)
        say.warning(f"{result} {one.unscored:,} have none: {why}")
    else:
        say.caption(f"Stopped. {result}" if one.cancelled else result)
