"""One document of a corpus with the edges of its passages drawn, cut as it is or as it could be."""

from __future__ import annotations

import re

import streamlit as st
from markupsafe import Markup

from core.corpus import builds, catalogue
from core.corpus.chunk import Chunking
from core.corpus.corpus import Corpus
from core.corpus.preview import WINDOW, Preview, preview
from core.corpus.types import Document
from core.domain.errors import BadInput, RouteScopeError
from ui.app import address, corpora, state
from ui.app.markup import EMPTY, cut, join, md, show, tag

DOCUMENT = "corpus_document"
FIND = "corpus_find_document"
SIZE, OVERLAP, AT = "corpus_chunk_size", "corpus_chunk_overlap", "corpus_window"
OFFERED = 200  # documents in the list; of more only those that hold the words


def choose(corpus: Corpus, name: str, key: str, *, optional: bool, width: int = 520) -> str | None:
    """Draw a choice of a document, kept under `key` and in the address as `name`; None means all."""

    def known(id: str) -> str:
        try:
            corpus.document(id)
        except BadInput as error:
            raise ValueError(id) from error
        return id

    address.take(name, key, known)
    many = corpus.info.documents > OFFERED
    holding = ""
    if many:
        holding = st.text_input(
            "Find a document",
            key=f"{FIND}:{name}",
            placeholder="Part of the id or title",
            width=260,
            persist_state="session",
        )
    listed = {one.id: one for one in corpus.documents(holding, limit=OFFERED)}
    options = list(listed)
    now = st.session_state.get(key)
    if now is not None and now not in listed:
        try:
            options.insert(0, known(now))
        except ValueError:  # of another corpus
            st.session_state[key] = None
    if not optional and st.session_state.get(key) is None and options:
        st.session_state[key] = options[0]

    def named(id: str) -> str:
        one = listed.get(id)
        return f"{id} · {cut(one.title, 60)} · {one.passages} passages" if one else id

    chosen: str | None = st.selectbox(
        "Document" if not many else f"Document (the first {len(listed)} that match)",
        options,
        index=None,
        key=key,
        format_func=named,
        placeholder="All documents" if optional else "Choose a document",
        width=width,
        on_change=first,
        persist_state="session",
    )
    address.keep(name, chosen)
    return chosen


def draw(name: str) -> None:
    """Choose a document and how it is cut, and see it cut."""
    corpus = state.engine().corpus(name)
    indexed = corpus.info.chunking
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        chosen = choose(corpus, "doc", DOCUMENT, optional=False)
    if chosen is None:
        st.info("No document matches. Try fewer words.")
        return
    chunking = settings(indexed)
    if chunking is None:
        return
    document, _ = corpus.document(chosen)
    made = preview(document, chunking)
    st.markdown(md(describe_preview(made)))
    if chunking != indexed:
        before = preview(document, indexed)
        st.caption(
            md(
                f"The index uses {indexed.label()}, which cuts this document into {len(before.passages):,}"
                f" {'passage' if len(before.passages) == 1 else 'passages'}."
            )
        )
        _apply(name, chunking)
    window(made)


def settings(usual: Chunking) -> Chunking | None:
    """Draw the chunking's settings; return None, with the reason on the page, if they are invalid."""
    address.take("size", SIZE, int)
    address.take("overlap", OVERLAP, int)
    for key, value in ((SIZE, usual.size), (OVERLAP, usual.overlap)):
        if st.session_state.get(key) is None:
            st.session_state[key] = value
    with st.container(horizontal=True, vertical_alignment="bottom"):
        size = st.number_input(
            "Characters per passage",
            0,
            100_000,
            step=50,
            key=SIZE,
            width=170,
            on_change=first,
            persist_state="session",
            help="50 to 100,000; 0 keeps each document whole",
        )
        overlap = st.number_input(
            "Overlap",
            0,
            50_000,
            step=10,
            key=OVERLAP,
            width=130,
            on_change=first,
            persist_state="session",
            help="Characters shared by neighbouring passages; at most half a passage",
        )
        st.button(
            "As indexed",
            key="as_indexed",
            on_click=_reset,
            disabled=(size, overlap) == (usual.size, usual.overlap),
        )
    address.keep("size", None if size == usual.size else str(size))
    address.keep("overlap", None if overlap == usual.overlap else str(overlap))
    try:
        return Chunking(int(size), int(overlap))
    except BadInput as error:
        st.error(md(str(error)))
        return None


def describe_preview(made: Preview) -> str:
    """Describe the chunks of a document."""
    count = len(made.passages)
    text = f"{len(made.document.text):,} characters"
    if count == 1:
        return f"{text}: one passage."
    parts = [
        f"{text} in {count:,} passages: {made.mean:,.0f} characters on average,"
        f" {made.shortest:,} to {made.longest:,}",
        _number(len(made.inside), "ends within a sentence", "end within a sentence"),
        _number(
            len(made.headed),
            "ends with a heading separated from its text",
            "end with a heading separated from its text",
        ),
    ]
    if made.shared:
        parts.append(f"{made.shared:,} characters are in two passages")
    return "; ".join(parts) + "."


def _number(count: int, one: str, many: str) -> str:
    return f"{count or 'none'} {one if count <= 1 else many}"


def window(made: Preview) -> None:
    """Draw the current part of the text, with buttons to the others."""
    address.take("window", AT, lambda given: int(given) - 1)
    at = min(max(0, int(st.session_state.get(AT) or 0)), made.windows - 1)
    if made.windows > 1:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button("Previous", key="window_back", disabled=at == 0, on_click=_go, args=(at - 1,))
            st.button("Next", key="window_on", disabled=at == made.windows - 1, on_click=_go, args=(at + 1,))
            st.caption(
                f"Characters {at * WINDOW:,} to {min((at + 1) * WINDOW, len(made.document.text)):,},"
                f" part {at + 1:,} of {made.windows:,}"
            )
    address.keep("window", str(at + 1) if at else None)
    show(drawn(made, at))


def drawn(made: Preview, at: int) -> Markup:
    """Return part `at` of the text with alternating, numbered chunks and shaded overlaps."""
    text, parts = made.document.text, []
    inside, headed = set(made.inside), set(made.headed)
    starts = {p.start: (number, p) for number, p in enumerate(made.passages, 1)}
    for place, segment in enumerate(made.window(at)):
        if segment.start in starts and segment.passages:
            number, passage = starts[segment.start]
            parts.append(_edge(number, passage.end - passage.start, number in inside, number in headed))
        elif place == 0 and segment.passages:
            parts.append(tag("span", f"passage {segment.passages[-1]} continues", css="edge"))
        words = text[segment.start : segment.end]
        if not segment.passages:
            parts.append(Markup("{}").format(words))
            continue
        css = "shared" if len(segment.passages) > 1 else ("odd" if segment.passages[0] % 2 else "even")
        title = f"in passages {', '.join(map(str, segment.passages))}" if len(segment.passages) > 1 else ""
        parts.append(tag("span", words, css=css, title=title))
    title = tag("div", made.document.title, css="title", dir="auto") if made.document.title else EMPTY
    body = join(parts) if parts else tag("span", "This document has no text.", css="dim")
    return tag("div", title, tag("div", body, css="text", dir="auto"), css="rs rs-corpus-doc")


def _edge(number: int, length: int, inside: bool, headed: bool) -> Markup:
    said = [f"{length:,} characters"]
    wrong = (["ends within a sentence"] if inside else []) + (["ends with a heading"] if headed else [])
    return tag(
        "span",
        tag("b", f"{number}"),
        f" · {said[0]}",
        tag("span", " · ", ", ".join(wrong), css="bad") if wrong else EMPTY,
        css="edge",
    )


def _apply(name: str, chunking: Chunking) -> None:
    """Draw buttons that index the corpus, or a copy, with the previewed chunking."""
    item = catalogue.describe(name, state.engine().settings)
    cut_as = f"{chunking.size or 'whole'}" + (f"-{chunking.overlap}" if chunking.overlap else "")
    key = f"copy:{name}:{cut_as}"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        called = st.text_input("Name of the copy", f"{name}-{cut_as}", key=key, width=220)
        as_copy = st.button("Index a copy", key="index_copy", disabled=not called.strip())
        again = item.kind == "indexed" and st.button("Reindex this corpus", key="index_like_this")
    what = (
        "Its enrichments then become outdated and can be built again"
        if item.kind == "indexed"
        else "A built-in corpus keeps its chunking"
    )
    st.caption(
        md(
            "This is a preview: the index changes only when you build it again. Unchanged texts are not"
            f" embedded again. {what}. A copy lets you compare both; labelled questions stay with the"
            " original corpus."
        )
    )
    if as_copy or again:
        try:
            if again:
                corpora.begin(name, name, chunking)
            else:
                wanted = re.sub(r"\s+", "-", called.strip())
                if wanted == name or builds.get(wanted) in builds.under_way():
                    raise BadInput(f"the name {wanted!r} is taken; choose another")
                st.session_state[corpora.WANTED] = corpora.begin(wanted, name, chunking)
        except RouteScopeError as error:
            st.error(md(str(error)))
        else:
            st.rerun()


def of_file(document: Document, chunking: Chunking) -> None:
    """Draw a preview of the chunks of a document that is not indexed yet."""
    made = preview(document, chunking)
    st.markdown(md(describe_preview(made)))
    show(drawn(made, 0))
    if made.windows > 1:
        st.caption(f"Shows the first {WINDOW:,} characters.")


def first() -> None:
    """Go to the beginning of the text and of the list, after another document or chunking was chosen."""
    for key in (AT, "corpus_page"):
        st.session_state[key] = 0


def _go(at: int) -> None:
    st.session_state[AT] = at


def _reset() -> None:
    for key in (SIZE, OVERLAP, AT):
        st.session_state[key] = None
