"""Actions on runs: open, compare, rerun, tag, note, export, import, and delete with Undo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from core.domain import people
from core.domain.errors import RouteScopeError
from core.engine.request import again
from core.evaluation.finding import count
from core.routes.registry import routes
from core.store import Filters, SessionRow, Store
from core.store.run_annotations import MAX_NOTE
from ui.app import account, outcome, say, state
from ui.app.markup import cut
from ui.app.outcome import Outcome
from ui.components import sharing
from ui.components.download import download
from ui.sessions import compare
from ui.sessions.run_list import changed

PLACE = "sessions"  # of what was deleted last
IMPORTS = "sessions_imported"  # of the last import
MAX_EXPORTED = 500  # runs of one export: a bundle is made in memory
OPEN = (
    "Shows the stored run without searching again or calling a model. Its question, routes and parameters "
    "become the inputs of the next run: change one, run, and select both runs here to compare them."
)
REPLAY = (
    "Reruns it from cached model answers: searches run again, the language model is not called. "
    "A route whose next model answer is not cached stops there and reports it."
)
FAILED = "session_again_failed"  # why the run could not be begun
BUNDLE = "A bundle of the runs with their tags and notes, which any RouteScope can import"


def actions(store: Store, picked: Sequence[SessionRow]) -> None:
    """Draw the buttons for the selected rows; for a single row also its tags and note."""
    ids, me = [row.id for row in picked], people.current().account
    ended = [row.id for row in picked if row.status != "running"]
    alone = picked[0] if len(picked) == 1 else None
    with st.container(horizontal=True, vertical_alignment="center"):
        if alone is not None:
            if st.button("Open", type="primary", key="open", help=OPEN):
                st.switch_page("compare.py", query_params={"run": alone.id})
            given: dict[str, Any] = {"args": (alone.id,), "disabled": not ended, "help": REPLAY}
            st.button("Replay without models", key="replay", on_click=replay, **given)
            if failed := st.session_state.pop(FAILED, None):
                st.error(failed)
        if len(picked) == 2:
            pair = [row.id for row in sorted(picked, key=lambda row: (row.created, row.id))]
            st.button("Compare", type="primary", key="compare", on_click=compare.of, args=pair)
        _bundle(store, ended, f"Export {len(ended)}", "export")
        if alone is not None and ended:
            with st.popover("Other formats", key="files", width="content"):
                for label, export, ending in (
                    ("Rankings as a TREC run file", store.export_trec, "trec"),
                    ("Results as JSON lines", store.export_jsonl, "jsonl"),
                ):
                    name = f"routescope-{alone.id}.{ending}"
                    download(label, name, lambda export=export: export(store.load(ended[0])), ending)  # type: ignore[misc]
        if alone is not None and alone.maker and alone.maker == me:
            sharing.button(store, alone, "share")
        deed: people.Deed = "look" if all(row.maker == me for row in picked) else "delete"
        work = partial(delete, store, ids)
        outcome.button(f"Delete {len(ids)}", PLACE, work, "delete", **account.needs(deed))
    if alone is not None:
        _words(store, alone)


def replay(run_id: str) -> None:
    """Begin the same run from stored model answers, and compare the two."""
    with say.errors(lambda why: st.session_state.update({FAILED: why})):
        run, _ = state.find(run_id)
        request, _ = again(run, routes(), evidence=state.engine().settings.answer_evidence)
        compare.of(run_id, state.start(replace(request, mode="replay")).id)


def export_found(store: Store, search: str, only: Filters) -> None:
    """Draw a download of all runs found, as one bundle."""
    total = store.count(search, **only)
    if total > MAX_EXPORTED:
        st.caption(
            f"{total:,} runs match; one export holds at most {MAX_EXPORTED}. Narrow the search or filters, "
            "or select rows."
        )
    elif total:
        still = only.copy()
        still["status"] = "running"
        running = set(store.ids(search, **still))
        ended = [id for id in store.ids(search, **only) if id not in running]
        _bundle(store, ended, f"Export all {len(ended)} matches", "export_found")


def _bundle(store: Store, ids: Sequence[str], label: str, key: str) -> None:
    name = f"routescope-{ids[0] if len(ids) == 1 else f'{len(ids)}-runs'}.zip"
    download(label, name, partial(store.export_bundle, ids), key, disabled=not ids, help=BUNDLE)


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


def delete(store: Store, ids: Sequence[str]) -> Outcome:
    """Delete runs; Undo brings them back until they are gone for good."""
    for id in ids:
        store.delete(id)
        state.engine().forget(id)
    changed()

    def undo() -> None:
        changed()
        for id in ids:
            store.undelete(id)

    minutes = store.deletion.undo_s / 60
    told = f"{count(len(ids), 'runs')} deleted; permanently in {minutes:g} minutes."
    return Outcome(told, undo if minutes else None)


def bring_in(store: Store) -> None:
    """Choose bundles, import them, and see what came in."""
    with st.expander("Import bundles", key="import_bundles"):
        st.caption(
            "Each file is imported as a whole or not at all. Runs that are already stored stay unchanged."
        )
        given = st.file_uploader(
            "Bundles", type="zip", key="bundle", label_visibility="collapsed", accept_multiple_files=True
        )
        if given:
            outcome.button(f"Import {len(given)}", IMPORTS, partial(take_in, store, given), "import")
    outcome.draw(IMPORTS)


def take_in(store: Store, files: Sequence[UploadedFile]) -> Outcome:
    """Import files one after another and report each failure; Undo deletes the new runs."""
    new, wrong = list[str](), list[str]()
    for file in files:
        try:
            new += store.import_bundle(file.getvalue())
        except RouteScopeError as error:
            wrong.append(f"{cut(file.name, 80)} was not imported: {error}.")
    changed()
    told = f"{count(len(new), 'new runs')} from {count(len(files) - len(wrong), 'files')}"
    lines = " ".join([f"{told}; any others were already stored.", *wrong])
    link = ("compare.py", "Open the first", {"run": new[0]})
    return Outcome(lines, partial(delete, store, new), link) if new else Outcome(lines)
