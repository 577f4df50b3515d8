"""Presets in the question form: applied or deleted with undo, shown with where they come from."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.evaluation.tuning.saving import in_words, settled
from core.routes.registry import routes
from core.store import Store, presets
from core.store.presets import Preset
from ui.app import account, next_run, outcome, say, state
from ui.app.markup import cut, show, tag
from ui.app.outcome import Outcome
from ui.app.routes import also

CHOSEN = "named_chosen"
APPLIED = "named_applied"  # the preset that is applied


def draw(corpus: str) -> None:
    """Draw the presets saved for `corpus`."""
    store = state.engine().store
    if store is None:
        return
    found = {one.name: one for one in presets.every(store, corpus)}
    if found:
        _choose(store, found)
    else:
        say.caption(f"No presets are saved for corpus {corpus}. You can save one from the Tune page.")
        st.page_link("tune.py", label="Go to Tune")
    outcome.draw("named")


def in_place() -> Preset | None:
    """Return the applied preset, or None if the parameters have changed since or none was applied."""
    preset: Preset | None = st.session_state.get(APPLIED)
    given = {name: values for name, values in st.session_state.get(state.PARAMETERS, {}).items() if values}
    same = preset and given == changed(preset) and st.session_state.get(state.EVIDENCE) == preset.evidence
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


def _apply(preset: Preset) -> Outcome:
    """Replace the parameters in the inputs with the preset's, and select its routes."""
    now, parameters, before = st.session_state, changed(preset), next_run.inputs()
    now[APPLIED], now[state.PARAMETERS] = preset, parameters
    also(*preset.parameters)
    now.pop(state.EVIDENCE, None)
    if preset.evidence is not None:
        now[state.EVIDENCE] = preset.evidence
    now[state.VERSION] = now.get(state.VERSION, 0) + 1  # the parameters' widgets are created again
    return Outcome(f"“{cut(preset.name, 64)}” is applied.", partial(next_run.put_back, before))


def _delete(store: Store, name: str) -> Outcome:
    """Delete a preset; parameters that were applied stay."""
    presets.delete(store, name)

    def bring_back() -> None:
        store.restore("preset", name)

    return Outcome(f"“{cut(name, 64)}” is deleted.", bring_back)


def _choose(store: Store, found: dict[str, Preset]) -> None:
    if st.session_state.get(CHOSEN) not in found:
        st.session_state[CHOSEN] = next(iter(found))
    short = partial(cut, limit=64)
    name = st.selectbox("Preset", list(found), key=CHOSEN, format_func=short, persist_state="session")
    preset = found[name]
    lines = [tag("p", line) for line in preset.note.splitlines() if line.strip()]
    saved = f"Saved {preset.changed[:16].replace('T', ' ')} UTC{account.by(store, 'preset saved', name)}."
    show(tag("div", tag("p", tag("b", in_words(preset))), *lines, tag("p", saved, css="dim"), css="rs"))
    with st.container(horizontal=True, gap="small"):
        apply, delete = ("named", partial(_apply, preset)), ("named", partial(_delete, store, name))
        st.button("Apply", key="named_apply", on_click=outcome.act, args=apply, type="primary")
        st.button("Delete", key="named_delete", on_click=outcome.act, args=delete)
