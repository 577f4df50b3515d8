"""Playlists for presentations: which there are, what is in them, and putting them in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from core.analysis.presentation import sample_entries
from core.domain.errors import RouteScopeError
from core.domain.types import Run
from core.store.playlists import PlaylistEntry
from ui.app import outcome, say, state
from ui.components import tables
from ui.present import slide

NAME = "playlist"
SAMPLES = "Sample questions of {}"

Entries = tuple[PlaylistEntry, ...]


def known() -> dict[str, Entries]:
    """Return playlists by name: the corpus' sample questions first, then those made by people."""
    corpus = st.session_state[state.CORPUS]
    built_in = {SAMPLES.format(corpus): sample_entries(corpus)} if sample_entries(corpus) else {}
    return {**built_in, **{one.name: one.entries for one in state.store().playlists()}}


def manage(lists: Mapping[str, Entries]) -> None:
    """Choose a playlist and play it; make one and fill it with runs."""
    outcome.draw("playlist", "undo_playlist")
    if not lists:
        st.subheader("No playlist yet", anchor=False)
        st.caption("A playlist is a list of questions to present. Create one, then add runs to it.")
    else:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            name = st.selectbox("Playlist", list(lists), key=NAME, width=420, persist_state="session")
            begin = {slide.PLAYING: True, slide.AT: 0}
            given: dict[str, Any] = {"shortcut": "mod+enter", "disabled": not lists[name]}
            given |= {"on_click": st.session_state.update, "args": (begin,)}
            st.button("Present", type="primary", key="present", **given)
        st.caption("Right: next question. Left: back. Escape: leave.")
        _contents(name, lists[name], own=name in {one.name for one in state.store().playlists()})
    _make(lists)


def _contents(name: str, entries: Entries, *, own: bool) -> None:
    if not entries:
        st.info("This playlist is empty. Open a run, then add it below.")
        return
    rows = [
        {
            "": number,
            "Question": entry.question,
            "Corpus": entry.corpus,
            "Shown from": "a stored run" if entry.run else "recordings",
            "Note": entry.note,
        }
        for number, entry in enumerate(entries, 1)
    ]
    alt = f"The {len(entries)} questions of this playlist in their order"
    picked = tables.pick(rows, range(len(entries)), f"entries:{name}:{len(entries)}", alt)
    if not own:
        st.caption("The sample questions come with the corpus. Copy them to change their order or notes.")
    elif picked is None:
        st.caption("Select a row at its left to move it, edit its note or remove it.")
    else:
        edit(name, entries, picked)


def edit(name: str, entries: Sequence[PlaylistEntry], at: int) -> None:
    """Draw how to move, annotate and remove one entry."""
    before, this, after = entries[:at], entries[at], entries[at + 1 :]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        note = st.text_input("Note", this.note, key=f"entry_note:{name}:{at}", max_chars=500)
        if st.button("Save note", key="entry_save"):
            _save(name, [*before, replace(this, note=note), *after])
        if st.button("Up", key="entry_up", disabled=not before):
            _save(name, [*before[:-1], this, *before[-1:], *after])
        if st.button("Down", key="entry_down", disabled=not after):
            _save(name, [*before, *after[:1], this, *after[1:]])
        if st.button("Remove", key="entry_out"):
            _save(name, [*before, *after])


def _make(lists: Mapping[str, Entries]) -> None:
    """Add the open run, make, copy and delete lists."""
    own = {one.name: one.entries for one in state.store().playlists()}
    run = _open_run()
    with st.expander("Edit playlists", expanded=not own):
        if own:
            with st.container(horizontal=True, vertical_alignment="bottom"):
                into = st.selectbox("Playlist to edit", list(own), key="playlist_into", width=320)
                if st.button("Add the open run", key="add_run", disabled=run is None) and run is not None:
                    _save(into, [*own[into], of(run)])
                if st.button("Delete this playlist", key="delete_playlist"):
                    outcome.act("playlist", partial(_delete, into))
                    st.rerun()
            say.caption(f"Open run: {run.query.text[:120]}" if run else "No run is open.")
        with (
            st.form("new_playlist", border=False),
            st.container(horizontal=True, vertical_alignment="bottom"),
        ):
            name = st.text_input("New playlist", key="playlist_new", placeholder="Friday demo", width=320)
            given: Any = {"key": "playlist_from", "width": 320, "format_func": lambda one: one or "none"}
            source = st.selectbox("Copy questions from", [None, *lists], **given)
            if st.form_submit_button("Create"):
                if name.strip() in lists:
                    say.error(f"A playlist named “{name.strip()}” already exists. Choose another name.")
                else:
                    state.store().save_playlist(name, list(lists[source]) if source else [])
                    st.session_state[NAME] = " ".join(name.split())
                    st.rerun()


def of(run: Run) -> PlaylistEntry:
    """Return a playlist entry that shows the stored run, whatever the index is then."""
    return PlaylistEntry(
        run.query.text, run.corpus, run.id, run.query.history, tuple(result.route for result in run.results)
    )


def _open_run() -> Run | None:
    run_id = st.session_state.get(state.RUN)
    try:
        run = state.find(run_id)[0] if run_id else None
    except RouteScopeError:
        return None  # deleted meanwhile: none is open
    return run if run is not None and run.status != "running" else None


def _save(name: str, entries: Sequence[PlaylistEntry]) -> None:
    state.store().save_playlist(name, entries)
    st.rerun()


def _delete(name: str) -> outcome.Outcome:
    state.store().delete_playlist(name)
    told = f"Deleted playlist “{name}”. Its runs are still stored."
    return outcome.Outcome(told, partial(state.store().restore, "playlist", name))
