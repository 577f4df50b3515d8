"""Menus of the question form: filters on metadata, presets, and the session that remembers questions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from core.domain.filters import FORM, MAX_FILTER_CHARS, MAX_FILTERS, Filter, read_filters
from core.domain.outputs import FiltersRead
from core.domain.types import Remembered, Run
from core.evaluation.finding import count
from core.evaluation.tuning.saving import in_words, settled
from core.routes.registry import routes
from core.store import Store
from core.store import presets as saved
from core.store.presets import Preset
from ui.app import account, next_run, outcome, say, state
from ui.app.markup import cut, fragment, show
from ui.app.outcome import Outcome
from ui.app.routes import also, differing
from ui.components import metadata

PRESET = "named_chosen"
APPLIED = "named_applied"  # the preset that is applied
FILTERS_HELP = f"One filter a line: {FORM}. Every route finds only passages whose documents meet all of them."
SESSION_HELP = (
    "RouteScope stores the questions of this session and the first answer to each on this machine, and uses "
    "them as the conversation before later questions. Leave empty to store nothing."
)


def chosen_filters() -> tuple[Filter, ...]:
    """Return the filters as written. Raises BadInput for an invalid line."""
    return read_filters((st.session_state.get(state.FILTERS) or "").splitlines())


def filters(corpus: str, run: Run | None) -> None:
    """Draw the filters, those that the open run read from its question, and the fields to filter by."""
    now = st.session_state.get(state.FILTERS) or ""
    key = f"filters:{st.session_state.get(state.FILTERS_VERSION, 0)}"
    lines = sum(bool(line.strip()) for line in now.splitlines())
    with st.popover(f"Filters ({lines})" if lines else "Filters", key="filters_menu"):
        st.text_area(
            "Filters",
            now,
            key=key,
            height=96,
            width=560,
            max_chars=MAX_FILTERS * MAX_FILTER_CHARS,
            placeholder="owner~Logistics\nlast_updated>=2026-01",
            help=FILTERS_HELP,
            on_change=lambda: st.session_state.update({state.FILTERS: st.session_state[key]}),
        )
        with say.errors():
            chosen_filters()
        outputs = [span.output for result in run.results for span in result.spans] if run else []
        kept = [str(one) for output in outputs if isinstance(output, FiltersRead) for one in output.kept]
        if read := list(dict.fromkeys(kept)):
            say.caption(f"Read from the question: {', '.join(read)}")
            use = ("\n".join(read),)
            st.button("Use for all routes", key="filters_use", on_click=state.set_filters, args=use)
        with st.expander("Fields of this corpus", key="filters_fields", on_change="rerun") as panel:
            if panel.open:  # the first look reads the metadata of every document
                with st.container(height=260):
                    metadata.fields(corpus)


def presets(corpus: str) -> None:
    """Draw the presets saved for `corpus`."""
    store = state.store()
    if found := {one.name: one for one in saved.every(store, corpus)}:
        _choose(store, found)
    else:
        say.caption(f"No presets are saved for corpus {corpus}. You can save one from the Tune page.")
        st.page_link("tune.py", label="Go to Tune")
    outcome.draw("named")


def _choose(store: Store, found: dict[str, Preset]) -> None:
    if st.session_state.get(PRESET) not in found:
        st.session_state[PRESET] = next(iter(found))
    short = partial(cut, limit=64)
    name = st.selectbox("Preset", list(found), key=PRESET, format_func=short, persist_state="session")
    preset = found[name]
    made = f"Saved {preset.changed[:16].replace('T', ' ')} UTC{account.by(store, 'preset saved', name)}."
    show(fragment("app.preset", preset, in_words(preset), made))
    with st.container(horizontal=True, gap="small"):
        outcome.button("Apply", "named", partial(_apply, preset), "named_apply", type="primary")
        outcome.button("Delete", "named", partial(_delete, store, name), "named_delete")


def applied() -> Preset | None:
    """Return the applied preset, or None if the parameters have changed since or none was applied."""
    preset: Preset | None = st.session_state.get(APPLIED)
    given = {name: values for name, values in st.session_state.get(state.PARAMETERS, {}).items() if values}
    same = preset and given == _changed(preset) and st.session_state.get(state.EVIDENCE) == preset.evidence
    return preset if same else None


def _changed(preset: Preset) -> dict[str, dict[str, Any]]:
    """Return the preset's parameters that differ from the defaults, by route; BadInput as `settled`."""
    found = {name: differing(routes()[name], values) for name, values in settled(preset).items()}
    return {name: values for name, values in found.items() if values}


def _apply(preset: Preset) -> Outcome:
    """Replace the parameters in the inputs with the preset's, and select its routes."""
    now, parameters, before = st.session_state, _changed(preset), next_run.inputs()
    now[APPLIED], now[state.PARAMETERS] = preset, parameters
    also(*preset.parameters)
    now.pop(state.EVIDENCE, None)
    if preset.evidence is not None:
        now[state.EVIDENCE] = preset.evidence
    state.renew()
    return Outcome(f"“{cut(preset.name, 64)}” is applied.", partial(next_run.put_back, before))


def _delete(store: Store, name: str) -> Outcome:
    """Delete a preset; parameters that were applied stay."""
    saved.delete(store, name)
    return Outcome(f"“{cut(name, 64)}” is deleted.", partial(store.restore, "preset", name))


def session() -> None:
    """Draw the session's name, what it remembers, and a way to delete that."""
    name, store = state.session(), state.store()
    box: dict[str, Any] = {"max_chars": 80, "width": 560, "placeholder": "No session", "help": SESSION_HELP}
    st.text_input("Session", key=state.SESSION, persist_state="session", **box)
    if not name:
        return
    with say.errors():
        turns = store.recall(name)
        if not turns:
            st.caption("This session has no turns yet.")
            return
        with st.container(height=min(60 + 40 * len(turns), 280), width=560):
            show(fragment("app.turns", turns))
        _forget(store, name, turns)


def _forget(store: Store, name: str, turns: Sequence[Remembered]) -> None:
    """Draw the choice of turns to delete, and ask once more before deleting them."""
    numbers = [turn.number for turn in turns]
    box: dict[str, Any] = {"key": f"doomed:{name}:{numbers}", "placeholder": "All turns", "width": 560}
    picked = st.multiselect("Turns to delete", numbers, **box)
    label = f"Delete {count(len(picked), 'turns')}" if picked else "Delete this session"
    if st.checkbox(f"{label}, for good", key=f"forget:{name}:{picked}"):
        st.warning("You cannot undo this. Runs stay in the list, with their questions.")
        if st.button("Delete permanently", type="primary", key="forget_now"):
            store.forget(name, picked or None)
            st.rerun()
