"""What can be done with picked runs: open, tag, note, export, delete and its undo; and import."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.errors import RouteScopeError
from core.store import SessionRow, Store
from ui.markup import md
from ui.session_list import changed

DELETED = "sessions_deleted"  # ids of the last deletion, for Undo
TOLD = "sessions_told"  # a message that outlives the rerun it caused


def actions(store: Store, picked: Sequence[SessionRow]) -> None:
    """The buttons for the picked rows; for one row also its tags and note."""
    ids = [row.id for row in picked]
    with st.container(horizontal=True, vertical_alignment="center"):
        if len(picked) == 1 and st.button("Open", type="primary", key="open"):
            st.switch_page("compare.py", query_params={"run": ids[0]})
        _export(store, picked)
        if st.button(f"Delete {len(ids)}", key="delete"):
            for id in ids:
                store.delete(id)
            st.session_state[DELETED] = ids
            changed()
            st.rerun()
    if len(picked) == 1:
        _words(store, picked[0])


def _export(store: Store, picked: Sequence[SessionRow]) -> None:
    ended = [row.id for row in picked if row.status != "running"]
    st.download_button(
        f"Export {len(ended)}",
        data=lambda: store.export_bundle(ended),
        file_name=f"routescope-{ended[0] if len(ended) == 1 else f'{len(ended)}-runs'}.zip",
        mime="application/zip",
        disabled=not ended,
        on_click="ignore",
        key="export",
    )


def _words(store: Store, row: SessionRow) -> None:
    """Tags and note of one run."""
    st.text(row.question)
    with st.form(f"words:{row.id}", border=False):
        tags = st.text_input("Tags, separated by commas", ", ".join(row.tags), key=f"tags:{row.id}")
        note = st.text_area("Note", row.note, height=80, key=f"note:{row.id}")
        if st.form_submit_button("Save tags and note"):
            store.tag(row.id, [tag.strip() for tag in tags.split(",") if tag.strip()])
            store.note(row.id, note)
            changed()
            st.rerun()


def undo(store: Store) -> None:
    """The last deletion, to be taken back as long as the page is not left."""
    ids: list[str] = st.session_state.get(DELETED, [])
    if not ids:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.info(f"{len(ids)} {'run' if len(ids) == 1 else 'runs'} deleted.", width="stretch")
        if st.button("Undo", key="undo"):
            for id in ids:
                store.undelete(id)
            st.session_state[DELETED] = []
            changed()
            st.rerun()


def bring_in(store: Store) -> None:
    """Import a bundle: all of its runs or none."""
    with st.expander("Import a bundle"):
        given = st.file_uploader("Bundle", type="zip", key="bundle", label_visibility="collapsed")
        if given is not None and st.button("Import", key="import"):
            try:
                new = store.import_bundle(given.getvalue())
            except RouteScopeError as error:
                st.error(md(str(error)))
                return
            changed()
            st.session_state[TOLD] = f"{len(new)} runs imported; the others were here already."
            st.rerun()
    told = st.session_state.pop(TOLD, None)
    if told:
        st.success(md(told))
