"""Weights of lists fitted on the labels of an evaluation: the form, the fit and its progress."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.backends import fusion_weights as kept
from core.backends.fusion_weights import LISTS
from core.evaluation.experiment_store import Evaluation
from core.evaluation.tuning import fusion_weights
from core.evaluation.tuning.fusion_weights import Fitting, Wanted
from core.evaluation.tuning.sweep_split import ALL, TEST
from ui.app import address, outcome, say, state
from ui.app.choice import choice
from ui.app.markup import md
from ui.app.progress import ended, follow
from ui.app.routes import on_page
from ui.tune import fusion_weights_view
from ui.tune.test_split import divided

SPLIT, CHOSEN, NAME = "fit_split", "fit_lists", "fit_name"


def draw(evaluation: Evaluation) -> None:
    """Draw the weights that were fitted, and how to fit others."""
    corpus = str(evaluation.spec.get("corpus") or evaluation.labelled.name)
    if fusion_weights_view.draw(corpus):
        with st.expander("Fit other weights"):
            _fit(evaluation, corpus)
    else:
        say.caption(f"No weights fitted for {corpus} yet. Fit the weight of each list on labels.")
        _fit(evaluation, corpus)


def _fit(evaluation: Evaluation, corpus: str) -> None:
    """Draw the form, the button, and the progress or result of a fit."""
    running = fusion_weights.under_way(state.engine(), corpus)
    split = _split(evaluation)
    if split is None:
        return
    _, parts = fusion_weights.divided(evaluation.labelled, split)
    questions, rest = parts.chosen_on, parts.held_out
    lists = _lists(corpus)
    there = fusion_weights.relevant(evaluation.labelled, questions)
    tested = f"{len(rest)} are held out to test the weights"
    if not rest:
        tested = "None are held out, so the weights are tested only by cross-validation"
    say.caption(f"{len(questions)} labelled questions with {there} relevant passages to fit on; {tested}.")
    lacking: str | None = "Choose at least one list to fuse"
    if lists:
        lacking = fusion_weights.too_few(evaluation.labelled, questions, len(lists))
    if lacking:
        say.info(f"{lacking[:1].upper()}{lacking[1:].removesuffix('.')}.")
    with st.container(key="fit_progress"):
        if follow(running, _stage, key="fit_stop"):
            return
    known = kept.names(state.engine().settings.home, corpus)
    st.session_state.setdefault(NAME, f"{split}-{len(known) + 1}")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        field: Any = {"width": 260, "max_chars": 80, "help": "Fitting replaces weights of this name"}
        given = st.text_input("Name of the weights", key=NAME, persist_state="session", **field)
        wanted = Wanted(corpus, given.strip(), lists, evaluation.name, None, split)
        off = bool(lacking) or not wanted.name
        outcome.button("Fit", "fit", lambda: _begin(wanted), "fit_begin", type="primary", disabled=off)
    outcome.draw("fit")
    ended(running, "The fit", "The fit was stopped. No weights were saved.")


def _stage(running: Fitting) -> str:
    counted = f": {running.finished} of {running.total}" if running.finished < running.total else ""
    return f"{running.stage[:1].upper()}{running.stage[1:]}{counted}"


def _split(evaluation: Evaluation) -> str | None:
    """Draw the choice of questions to fit on; None if all are test questions and that was not confirmed."""
    options = fusion_weights.splits(evaluation.labelled)
    if options == [TEST, ALL]:
        return TEST if divided(evaluation.labelled) else None
    usual = fusion_weights.divided(evaluation.labelled)[0]
    if len(options) < 2:
        return usual
    named = {one: "all" if one == ALL else md(one) for one in options}
    return choice("split", SPLIT, "Questions to fit on", named, usual=usual, segmented=True)


def _lists(corpus: str) -> tuple[str, ...]:
    """Draw the lists to fuse, with the reason for each unavailable one, and return the chosen ones."""
    there = _available(corpus, str(state.engine().settings.home))
    able = [name for name, why in there.items() if why is None]
    address.take("lists", CHOSEN, lambda text: [one for one in text.split(",") if one in able])
    given = st.session_state.get(CHOSEN)
    st.session_state[CHOSEN] = able if given is None else [one for one in given if one in able]
    note = "The ranked lists to combine. Fewer lists need fewer labels."
    given_: Any = {"format_func": lambda name: md(LISTS[name]), "help": note, "persist_state": "session"}
    chosen: list[str] = st.multiselect("Lists to fuse", able, key=CHOSEN, **given_)
    address.keep("lists", ",".join(chosen) if set(chosen) != set(able) else None)
    missing = {LISTS[name]: why for name, why in there.items() if why is not None}
    if missing:
        with st.popover(f"{len(missing)} more lists are not available yet"):
            for name, why in missing.items():
                say.caption(f"{name}: {on_page(why)}")
    return tuple(one for one in able if one in chosen)


@st.cache_data(ttl=10, max_entries=8, show_spinner=False)
def _available(corpus: str, home: str) -> dict[str, str | None]:  # noqa: ARG001 - part of the cache key
    return fusion_weights.available(state.engine(), corpus)


def _begin(wanted: Wanted) -> None:
    st.session_state[fusion_weights_view.WEIGHTS] = wanted.name
    fusion_weights.begin(state.engine(), wanted)
