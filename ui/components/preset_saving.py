"""Saves chosen values in a preset: shows what changes, and offers Undo."""

from __future__ import annotations

import streamlit as st

from core.domain.errors import BadInput, RouteScopeError
from core.evaluation.tuning.saving import Setting, changes, merged
from core.store import Store, presets
from core.store.presets import Preset
from ui.app import state
from ui.app.markup import cut, md

SAVED = "{}_saved"  # (name, the preset of that name before, what changed) of the last save
FAILED = "{}_failed"  # why the last save or undo did not succeed


def offer(key: str, chosen: Setting, corpus: str, note: str, usual: str) -> None:
    """Draw a preset's name, what saving changes, the button, and the outcome of the last save.

    `usual` is the name if the corpus has no preset yet; `key` separates several places that save.
    """
    store = state.engine().store
    if store is None:
        st.caption("Runs are not stored here, so you cannot save a preset.")
        return
    known = [one.name for one in presets.every(store, corpus)]
    st.session_state.setdefault(f"{key}_name", known[0] if known else cut(usual, 64))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=f"{key}_save_row"):
        given: str = st.text_input(
            "Name",
            key=f"{key}_name",
            width=300,
            persist_state="session",
            max_chars=64,
            help="If a preset with this name exists, RouteScope adds the chosen values to it",
        )
        name = " ".join(given.split())
        before = next((one for one in presets.every(store) if one.name == name), None)
        after, lines, lacking = None, list[str](), ""
        try:
            after = merged(before, name, corpus, chosen, note)
            lines = changes(before, after)
        except BadInput as error:
            lacking = str(error)
        st.button(
            "Save preset",
            key=f"{key}_save",
            type="primary",
            disabled=after is None or not (lines and name),
            on_click=save,
            args=(key, store, before, after, lines),
        )
    st.caption(md(lacking or _what(chosen, before, lines, known)))
    _draw_saved(key, store)


def save(key: str, store: Store, before: Preset | None, after: Preset, lines: list[str]) -> None:
    """Save the preset, keeping the earlier one of that name for Undo."""
    st.session_state.pop(FAILED.format(key), None)
    try:
        presets.save(store, after)
    except RouteScopeError as error:
        st.session_state[FAILED.format(key)] = str(error)
        return
    st.session_state[SAVED.format(key)] = (after.name, before, lines)


def undo(key: str, store: Store) -> None:
    """Restore the preset from before the last save."""
    name, before, _ = st.session_state.pop(SAVED.format(key))
    try:
        presets.delete(store, name) if before is None else presets.save(store, before)
    except RouteScopeError as error:
        st.session_state[FAILED.format(key)] = str(error)


def _what(chosen: Setting, before: Preset | None, lines: list[str], known: list[str]) -> str:
    there = f" Presets of this corpus: {', '.join(known)}." if known else ""
    everywhere = " It applies to the answers of all routes." if chosen.evidence is not None else ""
    if not lines:
        return f"This preset already has this value.{there}"
    into = "New preset" if before is None else f"Changes in “{before.name}”"
    return f"{into}: {'; '.join(lines)}.{everywhere}{there}"


def _draw_saved(key: str, store: Store) -> None:
    if failed := st.session_state.get(FAILED.format(key)):
        st.error(md(failed))
    if SAVED.format(key) not in st.session_state:
        return
    name, _, lines = st.session_state[SAVED.format(key)]
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"{key}_saved_row"):
        st.success(md(f"Saved as “{cut(name, 64)}”: {'; '.join(lines)}."))
        st.page_link("compare.py", label="Apply it in Compare, under Presets")
        st.button("Undo", key=f"{key}_undo_save", on_click=undo, args=(key, store), type="tertiary")
