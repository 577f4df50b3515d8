"""Each query term's contribution to a passage's BM25 score, compared with the score stored in the run."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from core.analysis.term_contributions import Contribution, contributions, searched_by_terms
from core.domain.errors import BadInput, RouteScopeError
from core.domain.types import Passage, Run
from ui.app import opening, state
from ui.app.markup import EMPTY, cut, join, md, show, tag

TOLERANCE = 1e-3  # of a score: what rounding may explain


def draw(run: Run, passage: Passage) -> None:
    """Draw each term's part of the BM25 score, for the question or another text searched by terms."""
    stored = searched_by_terms(run) or {run.query.text: {}}
    text = run.query.text if run.query.text in stored else next(iter(stored))
    if len(stored) > 1:
        text = (
            st.selectbox(
                "BM25 query",
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
        st.caption("No BM25 score: the current corpus does not contain this passage.")
        return
    except RouteScopeError as error:
        st.caption(md(f"BM25 term scores are not available: {error}"))
        return
    show(tag("div", _table(found, stored[text].get(passage.id)), css="rs rs-passage-terms"))
    if corpus.fingerprint != run.fingerprint:
        st.caption("The corpus was reindexed after this run. These figures come from the current index.")


def _table(found: list[Contribution], stored: float | None) -> Markup:
    total = sum(one.part for one in found)
    most = max((one.part for one in found), default=0.0) or 1.0
    heads = (
        ("Term", ""),
        ("Count", "num"),
        ("IDF", "num"),
        ("TF part", "num"),
        ("Score", "num"),
        ("", "less"),
    )
    rows = [
        tag(
            "tr",
            tag(
                "td",
                tag("bdi", ", ".join(cut(word, 40) for word in one.words)),
                tag("span", f" ×{one.asked}", css="dim") if one.asked > 1 else EMPTY,
            ),
            tag("td", one.found or "–", css="num"),
            tag("td", f"{one.idf:.2f}", css="num"),
            tag("td", f"{one.tf:.2f}" if one.found else "–", css="num"),
            tag("td", f"{one.part:.2f}" if one.found else "–", css="num"),
            tag("td", _bar(one.part / most), css="less"),
        )
        for one in found
    ]
    score = tag("td", f"{total:.2f}", css="num")
    foot = tag("tr", tag("td", "BM25 score", colspan="4"), score, tag("td", css="less"))
    note = f"{_beside(total, stored)} Counts include title and text."
    head = tag("tr", *(tag("th", text, css=css) for text, css in heads))
    if not found:
        return tag("div", "The query has no term that BM25 uses.", css="dim")
    table = tag("table", tag("thead", head), tag("tbody", *rows), tag("tfoot", foot), css="rs-table")
    return join([tag("div", note, css="dim"), table])


def _beside(total: float, stored: float | None) -> str:
    """Compare the sum with the score stored in the run."""
    if stored is None:
        return "Score of a term = IDF × TF part. No BM25 search with this query lists the passage."
    if abs(total - stored) <= TOLERANCE * max(1.0, abs(stored)):
        return "Score of a term = IDF × TF part. The sum is the score stored in the run."
    return f"Score of a term = IDF × TF part. The run stored {stored:.2f}, from an earlier index."


def _bar(share: float) -> Markup:
    return tag("div", tag("i", style=f"width:{100 * max(0.0, share):.0f}%"), css="rs-meter")
