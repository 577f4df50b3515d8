"""Import of bundles: of each file all runs or none, and links to what came in."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import streamlit as st

from core.domain.errors import RouteScopeError
from core.evaluation.finding import count
from core.store import Store
from ui.app import say
from ui.app.markup import cut, md
from ui.sessions.run_list import changed

IMPORTED = "sessions_imported"  # [(name of a file, ids that were new, what went wrong)] of the last import
LINKS = 20  # runs that are listed with a link


class File(Protocol):
    """An uploaded file."""

    name: str

    def getvalue(self) -> bytes:
        """Its content."""


def bring_in(store: Store) -> None:
    """Choose bundles, import them, and see what came in."""
    with st.expander("Import bundles", key="import_bundles"):
        st.caption(
            "Each file is imported as a whole or not at all. Runs that are already stored stay unchanged."
        )
        given = st.file_uploader(
            "Bundles", type="zip", key="bundle", label_visibility="collapsed", accept_multiple_files=True
        )
        if given and st.button(f"Import {len(given)}", key="import"):
            st.session_state[IMPORTED] = take_in(store, given)
            changed()
            st.rerun()
    draw_imported(store)


def take_in(store: Store, files: Sequence[File]) -> list[tuple[str, list[str], str]]:
    """Import files one after another: (name, ids of the runs that are new, what was wrong with it or "")."""
    found: list[tuple[str, list[str], str]] = []
    for file in files:
        try:
            found.append((file.name, store.import_bundle(file.getvalue()), ""))
        except RouteScopeError as error:
            found.append((file.name, [], str(error)))
    return found


def draw_imported(store: Store) -> None:
    """Draw what the last import brought, with links, until it is closed."""
    imported: list[tuple[str, list[str], str]] = st.session_state.get(IMPORTED, [])
    if not imported:
        return
    with st.container(border=True):
        for name, _, wrong in imported:
            if wrong:
                say.error(f"{cut(name, 80)} was not imported: {wrong}")
        files = [name for name, _, wrong in imported if not wrong]
        new = list(dict.fromkeys(id for _, ids, _ in imported for id in ids))
        if files:
            added = f"{count(len(new), 'new runs')} from {count(len(files), 'files')}"
            st.success(f"{added}; any others were already stored.")
        for id in new[:LINKS]:
            with suppress(RouteScopeError):  # deleted since
                row = store.session(id)
                label = f"{row.created[:16].replace('T', ' ')} · {cut(row.question, 90)} · {row.corpus}"
                st.page_link("compare.py", label=md(label), query_params={"run": id})
        if len(new) > LINKS:
            st.caption(f"{len(new) - LINKS} more in the list above.")
        if st.button("Close", key="close_import", type="tertiary"):
            st.session_state.pop(IMPORTED)
            st.rerun()
