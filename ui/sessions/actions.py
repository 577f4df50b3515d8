"""Actions on selected runs: open, compare, rerun, tag, note, export, and delete with Undo."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from core.domain import people
from core.domain.format import time_left
from core.evaluation.finding import count
from core.store import Filters, SessionRow, Store
from core.store.run_annotations import MAX_NOTE
from ui.app import account, state
from ui.components import complaint, sharing
from ui.components.gold import gold_grades
from ui.sessions import pair, replay
from ui.sessions.run_list import changed

DELETED = "sessions_deleted"  # ids of the last deletion and when that was (monotonic), for Undo
MAX_EXPORTED = 500  # runs of one export: a bundle is made in memory
OPEN = "Shows the stored run without searching again or calling a model."


def actions(store: Store, picked: Sequence[SessionRow]) -> None:
    """Draw the buttons for the selected rows; for a single row also its tags and note."""
    ids, me = [row.id for row in picked], people.current().account
    ended = [row.id for row in picked if row.status != "running"]
    alone = picked[0] if len(picked) == 1 else None
    with st.container(horizontal=True, vertical_alignment="center"):
        if alone is not None:
            if st.button("Open", type="primary", key="open", help=OPEN):
                st.switch_page("compare.py", query_params={"run": alone.id})
            replay.buttons(alone)
            if ended:
                run = store.load(alone.id)
                complaint.popover(run, "wrong_session", gold_grades(run))
        if len(picked) == 2:
            pair_ = [row.id for row in sorted(picked, key=lambda row: (row.created, row.id))]
            st.button("Compare", type="primary", key="compare", on_click=pair.show, args=pair_)
        _bundle(store, ended, f"Export {len(ended)}", "export")
        if alone is not None and ended:
            _files(store, alone.id)
        if alone is not None and alone.maker and alone.maker == me:
            sharing.button(store, alone, "share")
        deed: people.Deed = "look" if all(row.maker == me for row in picked) else "delete"
        if st.button(f"Delete {len(ids)}", key="delete", **account.needs(deed)):
            for id in ids:
                store.delete(id)
                state.engine().forget(id)
            st.session_state[DELETED] = ids, time.monotonic()
            changed()
            st.rerun()
    if alone is not None:
        _words(store, alone)


def export_found(store: Store, search: str, only: Filters) -> None:
    """Draw a download of all runs found, as one bundle."""
    total = store.count(search, **only)
    if not total:
        return
    if total > MAX_EXPORTED:
        st.caption(
            f"{total:,} runs match; one export holds at most {MAX_EXPORTED}. Narrow the search or filters, "
            "or select rows."
        )
        return
    still = only.copy()
    still["status"] = "running"
    running = set(store.ids(search, **still))
    ended = [id for id in store.ids(search, **only) if id not in running]
    _bundle(store, ended, f"Export all {len(ended)} matches", "export_found")


def _bundle(store: Store, ids: Sequence[str], label: str, key: str) -> None:
    st.download_button(
        label,
        data=account.by_me(lambda: store.export_bundle(ids)),
        file_name=f"routescope-{ids[0] if len(ids) == 1 else f'{len(ids)}-runs'}.zip",
        mime="application/zip",
        on_click="ignore",
        key=key,
        **account.needs(
            "export",
            disabled=not ids,
            help="A bundle of the runs with their tags and notes, which any RouteScope can import",
        ),
    )


def _files(store: Store, run_id: str) -> None:
    """Draw downloads of one run in the formats of other tools."""
    with st.popover("Other formats", key="files", width="content"):
        for label, export, ending, mime in (
            ("Rankings as a TREC run file", store.export_trec, "trec", "text/plain"),
            ("Results as JSON lines", store.export_jsonl, "jsonl", "application/jsonl"),
        ):
            st.download_button(
                label,
                data=account.by_me(lambda export=export: export(store.load(run_id))),  # type: ignore[misc]
                **account.needs("export"),
                file_name=f"routescope-{run_id}.{ending}",
                mime=mime,
                on_click="ignore",
                key=ending,
            )


def _words(store: Store, row: SessionRow) -> None:
    """Draw the tags and the note of one run."""
    st.text(row.question)
    with st.form(f"words:{row.id}", border=False):
        tags = st.text_input("Tags, separated by commas", ", ".join(row.tags), key=f"tags:{row.id}")
        note = st.text_area("Note", row.note, height=80, key=f"note:{row.id}", max_chars=MAX_NOTE)
        mine = row.maker == people.current().account
        if st.form_submit_button("Save tags and note", **account.needs("look" if mine else "edit")):
            store.tag(row.id, [tag.strip() for tag in tags.split(",") if tag.strip()])
            store.note(row.id, note)
            changed()
            st.rerun()


def undo(store: Store) -> None:
    """Draw Undo for the last deletion while it can still be undone."""
    ids, since = st.session_state.get(DELETED, ((), 0.0))
    left = store.deletion.undo_s - (time.monotonic() - since)
    if not ids or left <= 0:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.info(f"{count(len(ids), 'runs')} deleted; permanently in {time_left(left)}.", width="stretch")
        if st.button("Undo", key="undo"):
            del st.session_state[DELETED]
            for id in ids:
                store.undelete(id)
            changed()
            st.rerun()
