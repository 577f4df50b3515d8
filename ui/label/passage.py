"""The annotator's view: one passage in readable type, and the question with its conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st
from markupsafe import Markup

from core.analysis.term_contributions import Marker
from core.backends.terms import Analyzer, analyzer
from core.corpus import catalogue
from core.corpus.catalogue import current_fingerprint
from core.domain.errors import RouteScopeError
from core.domain.relevance import is_unmatched
from core.domain.types import Passage
from core.evaluation.dataset import Question
from core.store.labels import Pooled
from ui.app import state
from ui.app.markup import EMPTY, cut, join, tag
from ui.app.names import named
from ui.app.routes import title
from ui.components.hits import marked
from ui.components.markdown import is_markdown, rendered


def passage(corpus: str, question: Question, one: Pooled, *, routes: bool) -> Markup:
    """Return the passage with the question's words lightly marked.

    Without `routes`, it does not show which or how many routes found it, as that would bias the annotator.
    """
    read: Passage = one.passage
    found_by = _found(one) if routes else EMPTY
    words = Marker(question.query.text, (), _words(corpus))
    head = tag("div", named(corpus, read), css="title", dir="auto")
    outside = tag("span", "not in the corpus", css="chip") if is_unmatched(read.id) else EMPTY
    place = f"characters {read.start}–{read.end}"
    where = tag("div", outside, " ", f"document {read.doc_id}", css="dim where", title=place)
    body = tag("div", *_body(read, words), css="text", dir="auto")
    return tag(
        "div",
        head,
        where,
        body,
        found_by,
        css="rs rs-label-passage",
        tabindex="0",
        role="region",
        aria_label="The passage",
    )


def question(asked: Question) -> Markup:
    """Return the question after its conversation, with the gold answer behind a click."""
    turns = [
        tag("div", tag("span", turn.role, css="who"), " ", turn.text, css="turn", dir="auto")
        for turn in asked.query.history
    ]
    text = tag("div", asked.query.text, css="asked", dir="auto")
    history = tag("div", "Conversation history", css="dim")
    before = tag("div", history, *turns, css="before") if turns else EMPTY
    named = tag("div", "Question", css="dim")
    return tag("div", before, named, text, _gold(asked), css="rs rs-label-question")


def one_line(asked: Question, limit: int = 90) -> str:
    """Return the question on one line of at most `limit` characters."""
    return cut(asked.query.text, limit)


def _body(read: Passage, words: Marker) -> list[Markup]:
    """Return the text of a Markdown file rendered, with its source on demand; other text as stored."""
    if not is_markdown(read.doc_id):
        return [tag("div", marked(read.text, words), css="raw", dir="auto")]
    stored = tag("div", read.text, css="raw", dir="auto")
    raw = tag("details", tag("summary", "Stored text"), stored, css="stored")
    return [tag("div", rendered(read.text, words), css="rs-markdown"), raw]


def _gold(asked: Question) -> Markup:
    golds: Sequence[str] = asked.answers or ((asked.answer,) if asked.answer else ())
    if not golds:
        note = "The question is labelled as unanswerable." if asked.answerable is False else ""
        return tag("div", note, css="dim") if note else EMPTY
    label = "Gold answer" if asked.answers else "Author's note"
    texts = [tag("div", text, css="said", dir="auto") for text in golds]
    return tag("details", tag("summary", label), *texts)


def _found(one: Pooled) -> Markup:
    ranks = sorted(one.found, key=lambda pair: (pair[1], pair[0]))
    chips = [tag("span", f"{cut(title(route), 40)} ", tag("b", rank), css="chip") for route, rank in ranks]
    head = f"Found by {len(ranks)} routes, with its rank:" if ranks else "Imported; found by no route."
    return tag("div", tag("span", head, css="dim"), " ", join(chips, " "), css="found")


def _words(corpus: str) -> Analyzer:
    return _analyzer(corpus, current_fingerprint(corpus, settings=state.engine().settings))


@st.cache_resource(max_entries=16, show_spinner=False)
def _analyzer(corpus: str, fingerprint: str | None) -> Analyzer:  # noqa: ARG001 - part of the cache key
    """Return the corpus' analyzer, or one for whole words if the corpus has no index here."""
    try:
        info = catalogue.describe(corpus, state.engine().settings).info
    except RouteScopeError:
        info = None
    return analyzer(info.language) if info is not None else replace(analyzer("english"), language="none")
