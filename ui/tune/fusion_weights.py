"""Weights of lists fitted on the labels of an evaluation: the form, the fit and its progress."""

from __future__ import annotations

import streamlit as st

from core.backends import fusion_weights as kept
from core.backends.fusion_weights import LISTS
from core.domain.errors import RouteScopeError
from core.evaluation.experiment_store import Evaluation
from core.evaluation.tuning import fusion_weights
from core.evaluation.tuning.fusion_weights import Fitting, Wanted
from core.evaluation.tuning.sweep_split import ALL, TEST
from ui.app import address, evaluated, opened, redraw, state
from ui.app.markup import md
from ui.app.progress import progress
from ui.tune import fusion_weights_view
from ui.tune.test_split import divided

SPLIT, CHOSEN, NAME = "fit_split", "fit_lists", "fit_name"
FAILED = "fit_failed"  # why the last fit could not be begun
POLL_S = 0.5  # seconds between looks at one that is running


def draw() -> None:
    """Draw the tab Learned fusion."""
    st.caption(
        "Fit the weight of each list on labels, cross-validated by question, and compare the result with"
        " fusions that need no labels. This does not call a language model."
    )
    evaluation = evaluated.chosen()
    if evaluation is not None:
        corpus = str(evaluation.spec.get("corpus") or evaluation.labelled.name)
        _fit(evaluation, corpus)
        fusion_weights_view.draw(corpus)
    opened.link()


def _fit(evaluation: Evaluation, corpus: str) -> None:
    """Draw the form, the button, and the progress or result of a fit."""
    st.markdown("##### Fit")
    running = fusion_weights.under_way(state.engine(), corpus)
    split = _split(evaluation)
    if split is None:
        return
    _, parts = fusion_weights.divided(evaluation.labelled, split)
    questions, rest = parts.chosen_on, parts.held_out
    lists = _lists(corpus)
    there = fusion_weights.relevant(evaluation.labelled, questions)
    held = f"; {len(rest)} are held out to test the weights" if rest else ""
    st.caption(
        md(f"{len(questions)} labelled questions with {there} relevant passages to fit on{held}.")
        + ("" if rest else " None are held out, so the weights are tested only by cross-validation.")
    )
    lacking = (
        fusion_weights.too_few(evaluation.labelled, questions, len(lists))
        if lists
        else "Choose at least one list to fuse."
    )
    if lacking:
        st.info(md(lacking[:1].upper() + lacking[1:] + ("" if lacking.endswith(".") else ".")))
    if running is not None and not running.done:
        with st.container(key="fit_progress"):
            _follow(running)
        return
    known = kept.names(state.engine().settings.home, corpus)
    st.session_state.setdefault(NAME, f"{split}-{len(known) + 1}")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        given = st.text_input(
            "Name of the weights", key=NAME, width=260, max_chars=80, persist_state="session"
        )
        name = given.strip()
        st.button(
            "Fit",
            key="fit_begin",
            type="primary",
            disabled=bool(lacking) or not name,
            on_click=_begin,
            args=(Wanted(corpus, name, lists, evaluation.name, None, split),),
        )
    if name in known:
        st.caption("Weights with this name exist. Fitting replaces them.")
    _ended(running)


def _split(evaluation: Evaluation) -> str | None:
    """Draw the choice of questions to fit on; None if all are test questions and that was not confirmed."""
    options = fusion_weights.splits(evaluation.labelled)
    if options == [TEST, ALL]:
        return TEST if divided(evaluation.labelled) else None
    usual = fusion_weights.divided(evaluation.labelled)[0]
    address.take("split", SPLIT, address.one_of(options))
    if st.session_state.get(SPLIT) not in options:
        st.session_state[SPLIT] = usual
    chosen = usual
    if len(options) > 1:
        chosen = (
            st.segmented_control(
                "Questions to fit on",
                options,
                key=SPLIT,
                required=True,
                persist_state="session",
                format_func=lambda one: "all" if one == ALL else md(one),
            )
            or usual
        )
    address.keep("split", chosen if chosen != usual else None)
    return chosen


def _lists(corpus: str) -> tuple[str, ...]:
    """Draw the lists to fuse, with the reason for each unavailable one, and return the chosen ones."""
    there = _available(corpus, str(state.engine().settings.home))
    able = [name for name, why in there.items() if why is None]
    address.take("lists", CHOSEN, lambda text: [one for one in text.split(",") if one in able])
    given = st.session_state.get(CHOSEN)
    st.session_state[CHOSEN] = able if given is None else [one for one in given if one in able]
    chosen: list[str] = st.multiselect(
        "Lists to fuse",
        able,
        key=CHOSEN,
        persist_state="session",
        format_func=lambda name: md(LISTS[name]),
        help="The ranked lists to combine. Fewer lists need fewer labels.",
    )
    address.keep("lists", ",".join(chosen) if set(chosen) != set(able) else None)
    missing = {LISTS[name]: why for name, why in there.items() if why is not None}
    if missing:
        with st.expander(f"{len(missing)} more lists are not available yet"):
            for name, why in missing.items():
                st.caption(md(f"{name}: {why}"))
    return tuple(one for one in able if one in chosen)


@st.cache_data(ttl=10, max_entries=8, show_spinner=False)
def _available(corpus: str, home: str) -> dict[str, str | None]:  # noqa: ARG001 - part of the cache key
    return fusion_weights.available(state.engine(), corpus)


def _begin(wanted: Wanted) -> None:
    """Start the fit, or remember the error for the page."""
    st.session_state.pop(FAILED, None)
    st.session_state[fusion_weights_view.WEIGHTS] = wanted.name
    try:
        fusion_weights.begin(state.engine(), wanted)
    except RouteScopeError as error:
        st.session_state[FAILED] = str(error)


@st.fragment(run_every=POLL_S)
def _follow(running: Fitting) -> None:
    if running.done:
        redraw.page()
    counted = f": {running.finished} of {running.total}" if running.finished < running.total else ""
    progress(running, f"{running.stage[:1].upper()}{running.stage[1:]}{counted}", key="fit_stop")


def _ended(running: Fitting | None) -> None:
    """Draw why the last fit failed or was stopped."""
    if failed := st.session_state.get(FAILED):
        st.error(md(failed))
    elif running is not None and running.error:
        st.error(md(f"The fit failed: {running.error}"))
    elif running is not None and running.cancelled:
        st.caption("The fit was stopped. No weights were saved.")
