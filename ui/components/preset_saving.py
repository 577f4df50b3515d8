"""Saves chosen values in a preset: shows what changes, and offers Undo."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from core.domain.errors import BadInput
from core.evaluation.tuning.saving import Setting, changes, merged
from core.store import Store, presets
from core.store.presets import Preset
from ui.app import outcome, say, state
from ui.app.markup import cut
from ui.app.outcome import Outcome


def offer(key: str, chosen: Setting, corpus: str, note: str, usual: str) -> None:
    """Draw a preset's name, what saving changes, the button, and the outcome of the last save.

    `usual` is the name if the corpus has no preset yet; `key` separates several places that save.
    """
    store = state.store()
    known = [one.name for one in presets.every(store, corpus)]
    st.session_state.setdefault(f"{key}_name", known[0] if known else cut(usual, 64))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=f"{key}_save_row"):
        note_ = "A preset of this name keeps its other values"
        given: str = st.text_input(
            "Name", key=f"{key}_name", width=300, persist_state="session", max_chars=64, help=note_
        )
        name = " ".join(given.split())
        before = next((one for one in presets.every(store) if one.name == name), None)
        after, lines, told = None, list[str](), ""
        try:
            after = merged(before, name, corpus, chosen, note)
            lines = changes(before, after)
        except BadInput as error:
            told = str(error)
        work = partial(_save, store, before, after, lines) if after is not None and lines and name else None
        act: dict[str, Any] = {"on_click": outcome.act, "args": (key, work), "disabled": work is None}
        st.button("Save preset", key=f"{key}_save", type="primary", **act)
    if not told and lines:
        into = "New preset" if before is None else f"Changes in “{before.name}”"
        everywhere = " It applies to the answers of all routes." if chosen.evidence is not None else ""
        told = f"{into}: {'; '.join(lines)}.{everywhere}"
    there = f" Presets of this corpus: {', '.join(known)}." if known else ""
    say.caption(f"{told or 'This preset already has this value.'}{there}")
    outcome.draw(key, f"{key}_undo_save")


def _save(store: Store, before: Preset | None, after: Preset, lines: list[str]) -> Outcome:
    """Save the preset; Undo restores the earlier one of that name."""
    presets.save(store, after)

    def undo() -> None:
        presets.delete(store, after.name) if before is None else presets.save(store, before)

    link = ("compare.py", "Apply it in Compare, under Presets", dict[str, str]())
    return Outcome(f"Saved as “{cut(after.name, 64)}”: {'; '.join(lines)}.", undo, link)
