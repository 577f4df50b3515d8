"""The passages of a corpus: looked through, searched, and one of them in full."""

from __future__ import annotations

from typing import Any

import streamlit as st
from markupsafe import Markup

from core.backends.base import Vector
from core.corpus.browse import Page, browse
from core.corpus.corpus import Corpus
from core.corpus.markdown import name_of
from core.domain.types import Passage
from ui.app import address, say, state
from ui.app.choice import choice
from ui.app.markup import cut, fragment, md, show
from ui.components import tables
from ui.components.gold import questions_of
from ui.corpus import documents

PAGE = 50
WORDS, BY, AT, PASSAGE = "corpus_words", "corpus_by", "corpus_page", "corpus_passage"
DOCUMENT = "corpus_within"
REVISION = "corpus_revision"  # grows when a passage is chosen elsewhere, so that no picked row holds it
WAYS = {"words": "Words (BM25)", "meaning": "Meaning (vectors)"}
DEEPEST = 1_000  # places of a ranking by meaning that can be reached


def draw(name: str) -> None:
    """Draw filters, one page of the table, and the chosen passage."""
    corpus = state.engine().corpus(name)
    if not corpus.size:
        st.info("This corpus has no passages: its documents contain no text.")
        return
    page = _page(corpus)
    if page is None:
        return
    if not page.passages and page.start:
        st.session_state[AT] = 0
        st.rerun()
    if not page.passages:
        st.info("No passage contains these words. Search by meaning or try other words.")
    else:
        picked = _table(page)
        if picked is not None:
            st.session_state[PASSAGE] = picked.id
        _pager(page)
    _chosen(corpus)


def _page(corpus: Corpus) -> Page | None:
    address.take("find", WORDS, str)
    address.take("at", AT, lambda given: max(0, int(given) - 1))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        kept: dict[str, Any] = {"on_change": _first, "persist_state": "session"}
        hint = "Words in passages"
        words = st.text_input("Search", key=WORDS, placeholder=hint, width=260, **kept).strip()
        by = choice("by", BY, "By", WAYS, segmented=True, on_change=_first)
        document = documents.choose(corpus, "in", DOCUMENT, optional=True, width=400)
    address.keep("find", words)
    at = int(st.session_state.get(AT) or 0)
    address.keep("at", str(at + 1) if at else None)
    with say.errors():
        vector = _vector(corpus.info.embedder, words) if words and by == "meaning" else None
        return browse(corpus, words=words, vector=vector, document=document, start=at * PAGE, limit=PAGE)
    return None


@st.cache_data(max_entries=50, show_spinner="Embedding the query")
def _vector(embedder: str, words: str) -> Vector:
    return state.engine().embedder(embedder).embed_query(words)


def _table(page: Page) -> Passage | None:
    scores = page.scores or [None] * len(page.passages)
    rows = [
        {
            **({"Score": score} if score is not None else {}),
            "Document": one.doc_id,
            "Title": one.title,
            "Text": cut(one.text, 300),
            "From": one.start,
            "Characters": one.end - one.start,
        }
        for one, score in zip(page.passages, scores, strict=True)
    ]
    filters = [st.session_state.get(key) for key in (WORDS, BY, DOCUMENT, REVISION)]
    key = f"passages:{st.session_state[state.CORPUS]}:{page.start}:{filters}"
    return tables.pick(rows, page.passages, key, "Passages with their documents")


def _pager(page: Page) -> None:
    end = page.start + len(page.passages)
    last = end >= page.total or (page.scores is not None and end >= DEEPEST)
    how = "best first" if page.scores else "in document order" if st.session_state.get(DOCUMENT) else "by id"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{page.start + 1:,} to {end:,} of {page.total:,} passages, {how}.", width="stretch")
        at = page.start // PAGE
        st.button("Previous", key="passages_back", disabled=not at, on_click=_go, args=(at - 1,))
        st.button("Next", key="passages_on", disabled=last, on_click=_go, args=(at + 1,))


def _chosen(corpus: Corpus) -> None:
    address.take("passage", PASSAGE, str)
    id = st.session_state.get(PASSAGE)
    passage = corpus.by_ids([id]).get(id) if id else None
    address.keep("passage", passage.id if passage else None)
    if passage is None:
        if id:
            say.caption(f"Corpus {corpus.name} has no passage {id!r}.")
            st.session_state[PASSAGE] = None
        return
    pieces = corpus.document(passage.doc_id)[1]
    at = next(n for n, piece in enumerate(pieces) if piece.id == passage.id)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"#### {md(cut(name_of(corpus, passage), 120))}", width="stretch")
        for label, key, to, off in (
            ("Previous passage", "passage_before", at - 1, not at),
            ("Next passage", "passage_after", at + 1, at + 1 == len(pieces)),
        ):
            wanted = (None if off else pieces[to].id,)
            st.button(label, key=key, disabled=off, on_click=_choose, args=wanted)
        st.button("Close", key="passage_close", on_click=_choose, args=(None,))
    labels = questions_of(corpus.name, corpus.fingerprint).get(passage.id, [])
    show(in_full(passage, pieces, at, labels))


def in_full(passage: Passage, pieces: list[Passage], at: int, labels: list[tuple[str, str, int]]) -> Markup:
    """Return a passage between its neighbours, with its place and the questions it answers."""
    facts = {
        "Id": passage.id,
        "Document": passage.doc_id,
        "Place": f"passage {at + 1} of {len(pieces)}, characters {passage.start:,} to {passage.end:,}",
        "Length": f"{passage.end - passage.start:,} characters",
    }
    before = pieces[at - 1] if at else None
    after = pieces[at + 1] if at + 1 < len(pieces) else None
    shared = before.end - passage.start if before else 0
    return fragment("corpus.passage", passage, before, after, shared, facts, labels)


def _first() -> None:
    st.session_state[AT] = 0


def _go(at: int) -> None:
    st.session_state[AT] = max(0, at)


def _choose(id: str | None) -> None:
    st.session_state[PASSAGE] = id
    st.session_state[REVISION] = st.session_state.get(REVISION, 0) + 1
