"""Presets in the question form: applied with undo, shown with where they come from, deleted with undo."""

from __future__ import annotations

import streamlit as st

from core.domain.errors import RouteScopeError
from core.evaluation.tuning.saving import in_words, settled
from core.routes.registry import routes
from core.store import Store, presets
from core.store.presets import Preset
from ui.app import account, next_run, state
from ui.app.markup import cut, md, show, tag
from ui.app.routes import also

CHOSEN = "named_chosen"
APPLIED = "named_applied"  # (the preset that is applied, the inputs before)
DELETED = "named_deleted"  # the name of the preset deleted last
FAILED = "named_failed"  # why the last click did not succeed


def draw(corpus: str) -> None:
    """Draw the presets saved for `corpus`."""
    store = state.engine().store
    if store is None:
        return
    found = {one.name: one for one in presets.every(store, corpus)}
    if found:
        _choose(store, found)
    else:
        st.caption(md(f"No presets are saved for corpus {corpus}. You can save one from the Tune page."))
        st.page_link("tune.py", label="Go to Tune")
    if failed := st.session_state.get(FAILED):
        st.error(md(failed))
    _undo(store)


def in_place() -> Preset | None:
    """Return the applied preset, or None if the parameters have changed since or none was applied."""
    if APPLIED not in st.session_state:
        return None
    preset: Preset = st.session_state[APPLIED][0]
    parameters = {
        name: values for name, values in st.session_state.get(state.PARAMETERS, {}).items() if values
    }
    same = parameters == changed(preset) and st.session_state.get(state.EVIDENCE) == preset.evidence
    return preset if same else None


def changed(preset: Preset) -> dict[str, dict[str, object]]:
    """Return the preset's parameters that differ from the defaults, by route.

    Raises BadInput as `settled` does.
    """
    found = {}
    for name, values in settled(preset).items():
        default = {parameter.name: parameter.default for parameter in routes()[name].parameters}
        if other := {parameter: value for parameter, value in values.items() if value != default[parameter]}:
            found[name] = other
    return found


def apply(preset: Preset) -> None:
    """Replace the parameters in the inputs with the preset's, and select its routes."""
    now = st.session_state
    now.pop(FAILED, None)
    try:
        parameters = changed(preset)
    except RouteScopeError as error:
        now[FAILED] = str(error)
        return
    now[APPLIED] = (preset, next_run.inputs())
    now[state.PARAMETERS] = parameters
    also(*preset.parameters)
    if preset.evidence is None:
        now.pop(state.EVIDENCE, None)
    else:
        now[state.EVIDENCE] = preset.evidence
    now[state.VERSION] = now.get(state.VERSION, 0) + 1  # the parameters' widgets are created again


def undo() -> None:
    """Restore the inputs from before the preset was applied."""
    _, before = st.session_state.pop(APPLIED)
    next_run.put_back(before)


def delete(store: Store, preset: Preset) -> None:
    """Delete the preset; parameters that were applied stay."""
    st.session_state.pop(FAILED, None)
    try:
        presets.delete(store, preset.name)
    except RouteScopeError as error:
        st.session_state[FAILED] = str(error)
        return
    st.session_state[DELETED] = preset.name


def bring_back(store: Store) -> None:
    """Bring back the preset deleted last."""
    try:
        store.restore("preset", st.session_state[DELETED])
    except RouteScopeError as error:
        st.session_state[FAILED] = str(error)
        return
    st.session_state.pop(DELETED)


def _choose(store: Store, found: dict[str, Preset]) -> None:
    if st.session_state.get(CHOSEN) not in found:
        st.session_state[CHOSEN] = next(iter(found))
    name = st.selectbox(
        "Preset",
        list(found),
        key=CHOSEN,
        format_func=lambda one: cut(one, 64),
        persist_state="session",
    )
    preset = found[name]
    lines = [tag("p", line) for line in preset.note.splitlines() if line.strip()]
    saved = f"Saved {preset.changed[:16].replace('T', ' ')} UTC{account.by(store, 'preset saved', name)}."
    show(tag("div", tag("p", tag("b", in_words(preset))), *lines, tag("p", saved, css="dim"), css="rs"))
    with st.container(horizontal=True, gap="small"):
        st.button("Apply", key="named_apply", on_click=apply, args=(preset,), type="primary")
        st.button("Delete", key="named_delete", on_click=delete, args=(store, preset))


def _undo(store: Store) -> None:
    """Draw the last actions, each with its Undo."""
    if APPLIED in st.session_state:
        preset, _ = st.session_state[APPLIED]
        what = "is applied" if in_place() is not None else "was applied, and parameters have changed since"
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(md(f"“{cut(preset.name, 64)}” {what}."))
            st.button("Undo", key="named_undo", on_click=undo, type="tertiary")
    if DELETED in st.session_state:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(md(f"“{cut(st.session_state[DELETED], 64)}” is deleted."))
            st.button("Undo", key="named_back", on_click=bring_back, args=(store,), type="tertiary")
