"""What each term of a text adds to a passage's BM25 score, beside the score that the run keeps."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from core.analysis.term_contributions import Contribution, contributions, searched_by_terms
from core.domain.errors import BadInput, RouteScopeError
from core.domain.types import Passage, Run
from ui.app import opening, state
from ui.app.markup import EMPTY, cut, join, md, show, tag

NEAR = 1e-3  # of a score: what rounding may explain


def draw(run: Run, passage: Passage) -> None:
    """What each term adds to the BM25 score, for the question or another text that was searched by terms."""
    stored = searched_by_terms(run) or {run.query.text: {}}
    text = run.query.text if run.query.text in stored else next(iter(stored))
    if len(stored) > 1:
        text = (
            st.selectbox(
                "BM25 searched with",
                list(stored),
                format_func=lambda one: cut(one, 90),
                key=f"terms_of:{run.id}",
            )
            or text
        )
    opening.wait_for(run.corpus)
    try:
        corpus = state.engine().corpus(run.corpus)
        found = contributions(corpus, text, passage)
    except BadInput:
        st.caption("No BM25 score: the corpus as it is here has no such passage.")
        return
    except RouteScopeError as error:
        st.caption(md(f"What each term adds to BM25 cannot be told: {error}"))
        return
    show(tag("div", _table(found, stored[text].get(passage.id)), css="rs rs-passage-terms"))
    if corpus.fingerprint != run.fingerprint:
        st.caption(
            "The corpus has been indexed anew since this run: these figures are of the corpus as it is now."
        )


def _table(found: list[Contribution], stored: float | None) -> Markup:
    total = sum(one.part for one in found)
    most = max((one.part for one in found), default=0.0) or 1.0
    heads = (
        ("Term", ""),
        ("Count", "num"),
        ("IDF", "num"),
        ("TF part", "num"),
        ("Adds", "num"),
        ("", "less"),
    )
    rows = [
        tag(
            "tr",
            tag("td", tag("bdi", ", ".join(cut(word, 40) for word in one.words)),
                tag("span", f" ×{one.asked}", css="dim") if one.asked > 1 else EMPTY),
            tag("td", one.found or "–", css="num"),
            tag("td", f"{one.idf:.2f}", css="num"),
            tag("td", f"{one.tf:.2f}" if one.found else "–", css="num"),
            tag("td", f"{one.part:.2f}" if one.found else "–", css="num"),
            tag("td", _bar(one.part / most), css="less"),
        )
        for one in found
    ]  # fmt: skip
    score = tag("td", f"{total:.2f}", css="num")
    foot = tag("tr", tag("td", "BM25 score", colspan="4"), score, tag("td", css="less"))
    told = f"{_beside(total, stored)} Counts are of title and text."
    head = tag("tr", *(tag("th", text, css=css) for text, css in heads))
    if not found:
        return tag("div", "The text has no word that BM25 looks at.", css="dim")
    table = tag("table", tag("thead", head), tag("tbody", *rows), tag("tfoot", foot), css="rs-table")
    return join([tag("div", told, css="dim"), table])


def _beside(total: float, stored: float | None) -> str:
    """What the sum says beside the score that the run keeps."""
    if stored is None:
        return "A term adds IDF × TF part. No list of a BM25 search with this text has the passage."
    if abs(total - stored) <= NEAR * max(1.0, abs(stored)):
        return "A term adds IDF × TF part; together they are the score that the run keeps."
    return (
        f"A term adds IDF × TF part. The run keeps another score, {stored:.2f}: the corpus was another then."
    )


def _bar(share: float) -> Markup:
    return tag("div", tag("i", style=f"width:{100 * max(0.0, share):.0f}%"), css="rs-meter")
