"""Documents for a corpus: a new one of a folder or of uploaded files, and files added or taken out later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from core.corpus import builds, catalogue, endings, uploads
from core.corpus.chunk import Chunking
from core.corpus.load import MAX_BYTES
from core.corpus.source import NEW as READ_NEW
from core.corpus.types import Reading
from core.domain.errors import BadInput
from core.domain.format import size
from core.evaluation.finding import count
from ui.app import account, corpora, say, state
from ui.app.markup import fragment, md, show, tag
from ui.corpus import documents as corpus_documents
from ui.corpus import own_questions
from ui.corpus import reading as corpus_reading
from ui.corpus import state as corpus_state
from ui.corpus.state import heading

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

MESSAGE = "corpus_add_told"  # a message that outlives the rerun it caused
GIVEN = "corpus_given"  # grows when files were taken over, so that the uploader is empty again
HERE, NEW = "To this corpus", "As a new corpus"


def draw(name: str) -> None:
    """Draw the ways to add documents, and the corpus' uploaded files."""
    told = st.session_state.pop(MESSAGE, None)
    if told:
        st.success(md(told))
        own_questions.offer()
    if not account.notice("edit"):
        return
    mine = corpus_state.uploaded(catalogue.describe(name, state.engine().settings))
    left, right = st.columns(2, gap="large")
    with left:
        _upload(name if mine else None)
    with right:
        _folder()
        _waiting()
    if mine:
        _files(name)


def _folder() -> None:
    heading("A folder on this machine")
    say.caption(f"Reads files ending in {endings.IN_WORDS} in place, or a BEIR set (with corpus.jsonl).")
    if not account.notice("machine"):
        return
    path = st.text_input("Folder or file", key="new_path", placeholder="/home/me/handbook")
    name = st.text_input(
        "Name of the new corpus", key="new_name", placeholder=corpora.suggested(path) or "handbook"
    )
    where = Path(path.strip()).expanduser()
    reading = None
    if path.strip() and st.toggle("Preview the files", key="new_show"):
        reading = corpus_reading.folder(where, READ_NEW, "new")
    if st.button("Build index", key="new_build", disabled=not path.strip()):
        with say.errors():
            begun = corpora.begin(name.strip() or corpora.suggested(path), where, reading=reading)
            _begun(begun, f"Building corpus {begun}. Progress and Stop are in the sidebar.")
            st.rerun()  # the sidebar follows it from now on


def _upload(here: str | None) -> None:
    heading("Upload files")
    limit = min(int(st.get_option("server.maxUploadSize")), MAX_BYTES // 1_000_000)
    say.caption(f"Files ending in {endings.IN_WORDS}, up to {limit} MB each. They stay on this server.")
    given = st.file_uploader(
        "Files",
        type=[ending[1:] for ending in endings.READ],
        accept_multiple_files=True,
        max_upload_size=limit,
        key=f"uploads:{st.session_state.get(GIVEN, 0)}",
        label_visibility="collapsed",
    )
    where = HERE if here else NEW
    if here:
        where = st.radio("Where", [HERE, NEW], key="upload_where", horizontal=True) or HERE
    called = here or ""
    if where == NEW:
        called = st.text_input("Name of the new corpus", key="upload_name", placeholder="handbook")
    found = catalogue.current(called, state.engine().settings) if where == HERE else None
    chunking = found.source.chunking if found is not None else None
    reading = None
    if given:
        chunking = chunking or corpus_documents.settings(Chunking())
        reading = _preview(given, chunking, found.source.reading if found is not None else READ_NEW)
    ready = bool(given and called.strip() and chunking)
    if st.button("Add and index", key="upload_add", type="primary", disabled=not ready):
        with say.errors():
            take(called.strip(), given, None if where == HERE else chunking, reading)
            st.rerun()


def take(
    corpus: str, given: list[UploadedFile], chunking: Chunking | None, reading: Reading | None = None
) -> None:
    """Store the files that can be read and index them; raises BadInput if none can be."""
    settings = state.engine().settings
    files: dict[str, bytes] = {}
    for file in given:
        if file.name in files:
            raise BadInput(f"two files are named {file.name!r}; rename one of them")
        files[file.name] = file.getvalue()
    _free(corpus)
    had = {one.name for one in uploads.kept(corpus, settings)}
    added = uploads.add(corpus, files, settings, reading)
    message = f"{count(len(added.names), 'files')} saved. Indexing…"
    for what, names in (("Not added", added.refused), ("Replaced", sorted(had & set(added.names)))):
        if names:
            message += f" {what}: {'; '.join(names[:5])}{' …' if len(names) > 5 else ''}."
    st.session_state[GIVEN] = st.session_state.get(GIVEN, 0) + 1
    _index(corpus, message, chunking, reading)


def _preview(given: list[UploadedFile], chunking: Chunking | None, usual: Reading) -> Reading | None:
    """Draw how a file would be read and chunked, before it is stored, and return the choices, or None."""
    if chunking is None:
        return None
    say.caption(f"Chunking: {chunking.label()}.")
    if not st.toggle("Preview the chunks", key="upload_show"):  # reading a file may take seconds
        return None
    files = {file.name: file for file in given}
    chosen = st.selectbox("File", list(files), key="upload_preview")
    if chosen not in files:
        return None
    reading, place, content = usual, st.container(), files[chosen].getvalue()
    with place, say.errors():
        if any(name.lower().endswith(endings.HTML) for name in files):
            reading = corpus_reading.chosen(usual, "upload")
        read = uploads.read(chosen, content, reading)
        now = corpus_reading.columns(reading, read.columns, "upload")
        if now != reading:
            reading, read = now, uploads.read(chosen, content, now)
        corpus_reading.notes(read.notes)
        if len(read.documents) > 1:
            st.caption(f"First of {len(read.documents):,} documents:")
        corpus_documents.of_file(read.documents[0], chunking)
    return reading


def _files(name: str) -> None:
    """Draw the corpus' uploaded files, with a way to remove and restore one."""
    settings = state.engine().settings
    kept = uploads.kept(name, settings)
    heading(f"Files of {name}")
    out = uploads.removed(name, settings)
    if out is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            say.info(f"Removed {out}.")
            if st.button("Undo", key="upload_undo"):
                _try(lambda: uploads.restore(name, settings), name, f"Restored {out}. Indexing…")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.selectbox(
            f"{len(kept):,} files, {size(sum(one.bytes for one in kept))}",
            [one.name for one in kept],
            index=None,
            key=f"upload_file:{len(kept)}",
            placeholder="Choose a file to view or remove",
            width=420,
        )
        if st.button("Remove", key="upload_remove", disabled=chosen is None) and chosen:
            _try(lambda: uploads.remove(name, chosen, settings), name, f"Removed {chosen}. Indexing again…")
    if chosen:
        with say.errors():
            documents = uploads.documents_of(name, chosen, settings)
            characters = f"{sum(len(one.text) for one in documents):,}"
            facts = {"Documents": f"{len(documents):,}", "Characters": characters}
            show(tag("div", fragment("corpus.facts", facts), css="rs"))
            found = catalogue.current(name, settings)
            corpus_documents.of_file(documents[0], found.source.chunking if found is not None else Chunking())


def _waiting() -> None:
    """Draw uploaded files without an index, because their build was stopped or failed."""
    settings = state.engine().settings
    indexed, under_way = set(catalogue.names(settings)), {build.name for build in builds.under_way()}
    for name in uploads.corpora(settings):
        if name in indexed or name in under_way:
            continue
        build = builds.get(name)
        with st.container(horizontal=True, vertical_alignment="center"):
            why = build.error if build is not None and build.error else "its indexing did not finish"
            say.warning(f"Uploaded, but not indexed: {name} ({why})")
            if st.button("Index", key=f"waiting:{name}"):
                _try(lambda: None, name, f"Indexing {name}…")
            if st.button("Delete its files", key=f"discard:{name}"):
                uploads.delete(name, settings)
                st.rerun()


def _try(change: Callable[[], object], name: str, said: str) -> None:
    with say.errors():
        _free(name)
        change()
        _index(name, said, None)
        st.rerun()


def _free(name: str) -> None:
    build = builds.get(name)
    if build is not None and not build.done:
        raise BadInput(f"corpus {name} is being indexed; wait for it to finish or stop it in the sidebar")


def _index(name: str, said: str, chunking: Chunking | None, reading: Reading | None = None) -> None:
    """Index the uploaded files; a known corpus keeps its chunking and reading."""
    settings = state.engine().settings
    _begun(corpora.begin(name, uploads.folder(name, settings), chunking, reading), said)


def _begun(name: str, said: str) -> None:
    st.session_state[corpora.WANTED] = name
    st.session_state[MESSAGE] = said
