"""One document of a corpus with the edges of its passages drawn, cut as it is or as it could be."""

from __future__ import annotations

from typing import Any

import streamlit as st
from markupsafe import Markup

from core.corpus import catalogue
from core.corpus.browse import WINDOW, Preview, preview
from core.corpus.chunk import Chunking
from core.corpus.corpus import Corpus
from core.corpus.types import Document
from core.domain.errors import BadInput
from core.evaluation.finding import count
from ui.app import address, corpora, say, state
from ui.app.choice import number
from ui.app.markup import cut, fragment, show

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
        hint: Any = {"placeholder": "Part of the id or title", "width": 260, "persist_state": "session"}
        holding = st.text_input("Find a document", key=f"{FIND}:{name}", **hint)
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

    label = "Document" if not many else f"Document (the first {len(listed)} that match)"
    hint = {"placeholder": "All documents" if optional else "Choose a document", "width": width}
    given: Any = {"format_func": named, "on_change": first, "persist_state": "session", **hint}
    chosen: str | None = st.selectbox(label, options, index=None, key=key, **given)
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
    say.text(describe_preview(made))
    if chunking != indexed:
        before = count(len(preview(document, indexed).passages), "passages")
        say.caption(f"The index uses {indexed.label()}, which cuts this document into {before}.")
        _apply(name, chunking)
    window(made)


def settings(usual: Chunking) -> Chunking | None:
    """Draw the chunking's settings; return None, with the reason on the page, if they are invalid."""
    values = []
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for name, key, label, most, step, now, note in (
            ("size", SIZE, "Characters per passage", 100_000, 50, usual.size, "0 keeps each document whole"),
            ("overlap", OVERLAP, "Overlap", 50_000, 10, usual.overlap, "At most half a passage"),
        ):
            given: Any = {"on_change": first, "help": note, "step": step, "width": 170, "form": "d"}
            value = number(name, key, label, 0, most, now, **given)
            values.append(now if value is None else int(value))
        same = values == [usual.size, usual.overlap]
        st.button("As indexed", key="as_indexed", on_click=_reset, disabled=same)
    with say.errors():
        return Chunking(values[0], values[1])
    return None


def describe_preview(made: Preview) -> str:
    """Describe the chunks of a document."""
    sizes = f"{made.mean:,.0f} characters on average, {made.shortest:,} to {made.longest:,}"
    return (
        f"{len(made.document.text):,} characters in {count(len(made.passages), 'passages')}: {sizes}. Ends "
        f"within a sentence: {len(made.inside)}; with a heading without its text: {len(made.headed)}. "
        f"Characters in two passages: {made.shared:,}."
    )


def window(made: Preview) -> None:
    """Draw the current part of the text, with buttons to the others."""
    address.take("window", AT, lambda given: int(given) - 1)
    at = min(max(0, int(st.session_state.get(AT) or 0)), made.windows - 1)
    if made.windows > 1:
        with st.container(horizontal=True, vertical_alignment="center"):
            for label, key, to in (("Previous", "window_back", at - 1), ("Next", "window_on", at + 1)):
                act: Any = {"on_click": st.session_state.__setitem__, "args": (AT, to)}
                st.button(label, key=key, disabled=not 0 <= to < made.windows, **act)
            end = min((at + 1) * WINDOW, len(made.document.text))
            st.caption(f"Characters {at * WINDOW:,} to {end:,}, part {at + 1:,} of {made.windows:,}")
    address.keep("window", str(at + 1) if at else None)
    show(drawn(made, at))


def drawn(made: Preview, at: int) -> Markup:
    """Return part `at` of the text with alternating, numbered chunks and shaded overlaps."""
    pieces: list[tuple[Any, ...]] = []
    starts = {p.start: (number, p) for number, p in enumerate(made.passages, 1)}
    for place, segment in enumerate(made.window(at)):
        inside, length, wrong = segment.passages, 0, []
        edge: int | str | None = None
        if inside and segment.start in starts:
            number, passage = starts[segment.start]
            edge, length = number, passage.end - passage.start
            wrong += ["ends within a sentence"] if number in made.inside else []
            wrong += ["ends with a heading"] if number in made.headed else []
        elif inside and place == 0:
            edge = f"passage {inside[-1]} continues"
        css = "" if not inside else "shared" if len(inside) > 1 else "odd" if inside[0] % 2 else "even"
        hint = f"in passages {', '.join(map(str, inside))}" if len(inside) > 1 else ""
        words = made.document.text[segment.start : segment.end]
        pieces.append((edge, length, ", ".join(wrong), words, css, hint))
    return fragment("corpus.document", made.document.title, pieces)


def _apply(name: str, chunking: Chunking) -> None:
    """Draw the button that indexes the corpus with the previewed chunking, and the way to a copy."""
    kind = catalogue.describe(name, state.engine().settings).kind
    if kind == "indexed" and st.button("Reindex this corpus", key="index_like_this"):
        with say.errors():
            corpora.begin(name, name, chunking)
            st.rerun()
    say.caption(
        f"The index changes only when you build it. To keep both, add {chunking.key} under Chunkings."
    )


def of_file(document: Document, chunking: Chunking) -> None:
    """Draw a preview of the chunks of a document that is not indexed yet."""
    made = preview(document, chunking)
    say.text(describe_preview(made))
    show(drawn(made, 0))
    if made.windows > 1:
        st.caption(f"Shows the first {WINDOW:,} characters.")


def first() -> None:
    """Go to the beginning of the text and of the list, after another document or chunking was chosen."""
    for key in (AT, "corpus_page"):
        st.session_state[key] = 0


def _reset() -> None:
    for key in (SIZE, OVERLAP, AT):
        st.session_state.pop(key, None)
