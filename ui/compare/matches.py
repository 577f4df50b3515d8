"""Why a passage was found, if a step recorded it: by tokens, or by weighted terms."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from markupsafe import Markup

from core.analysis.term_contributions import TokenMatch, TokenStep, expansions, token_matches
from core.domain.format import milliseconds
from core.domain.outputs import Search, Terms
from core.domain.types import RouteResult, Run, Span
from ui.app.markup import EMPTY, cut, join, md, show, table_of, tag
from ui.app.names import title_of
from ui.charts.match import describe_match, match_heatmap

CHART = {"displayModeBar": False}


def draw(run: Run) -> None:
    """Draw every step that recorded how passages matched, or a message if there is none."""
    drawn = False
    for result in run.results:
        for number, tokens in enumerate(token_matches(result)):
            _tokens(run, result, tokens, f"{result.route}-{number}")
            drawn = True
        for span, found in expansions(result):
            show(tag("div", _expansion(run, result, span, found), css="rs"))
            drawn = True
    if not drawn:
        message = "No route in this run recorded which tokens or terms of a passage matched."
        show(tag("div", message, css="rs dim"))


def _tokens(run: Run, result: RouteResult, tokens: TokenStep, key: str) -> None:
    show(tag("div", _head(result, tokens.model, tokens.span.name, tokens.span.ms), css="rs"))
    whole = [match for match in tokens.hits if match.drawable]
    if whole:
        chosen = st.selectbox(
            "Passage",
            range(len(whole)),
            format_func=lambda at: cut(f"{at + 1}. {title_of(run, whole[at].passage.id)}", 90),
            key=f"match-{key}",
            width=420,
        )
        match = whole[chosen or 0]
        st.caption(md(_left_out(match)))
        st.plotly_chart(
            match_heatmap(match),
            theme=None,
            width="stretch",
            config=CHART,
            key=f"heatmap-{key}",
            alt=describe_match(match),
        )
    show(tag("div", _best(run, tokens.hits), css="rs"))


def _left_out(match: TokenMatch) -> str:
    rows, columns = len(match.passage.cosines), len(match.passage.passage)
    caption = "Rows are question tokens, columns passage tokens. A ring marks the most similar passage token."
    if rows < len(match.query):
        caption += f" Showing the first {rows} of {len(match.query)} rows."
    if columns < match.passage.tokens:
        caption += f" Showing the first {columns} of {match.passage.tokens} columns."
    return caption


def _best(run: Run, hits: Sequence[TokenMatch]) -> Markup:
    """Return passages by question token: the most similar token and its cosine; cosines sum to the score."""
    head = [tag("th", "Passage"), tag("th", "Sum", css="num"), tag("th", "Most similar tokens")]
    rows = [
        tag(
            "tr",
            tag("td", cut(title_of(run, hit.passage.id), 90), dir="auto"),
            tag("td", f"{sum(cosine for _, cosine in hit.passage.best):.2f}", css="num"),
            tag("td", join([_pair(*pair) for pair in zip(hit.query, hit.passage.best, strict=False)], " ")),
        )
        for hit in hits
    ]
    return table_of(tag("tr", *head), rows)


def _pair(token: str, best: tuple[str, float]) -> Markup:
    found, cosine = best
    label = token if token == found else f"{token} → {found}"
    return tag("span", tag("bdi", cut(label, 60)), f" {cosine:.2f}", css="chip")


def _expansion(run: Run, result: RouteResult, span: Span, found: Search) -> Markup:
    weights = _meters(found.expansion)
    more = found.terms - len(found.expansion)
    rest = tag("div", f"and {more} terms with lower weights", css="dim") if more > 0 else EMPTY
    hits = [
        tag(
            "tr",
            tag("td", cut(title_of(run, id), 90), dir="auto"),
            tag("td", _sum(terms), css="num"),
            tag("td", join([_share(*term) for term in terms], " ")),
        )
        for id, terms in found.matched.items()
    ]
    head = tag(
        "tr", tag("th", "Passage"), tag("th", "Score", css="num"), tag("th", "Contribution of each term")
    )
    table = table_of(head, hits) if hits else EMPTY
    title = _head(result, found.model, span.name, span.ms)
    return tag("div", title, weights, rest, table, css="rs-block")


def _meters(terms: Terms) -> Markup:
    """Return the search terms with their weights as bars."""
    most = max((weight for _, weight in terms), default=0.0) or 1.0
    rows = [
        tag(
            "tr",
            tag("td", tag("bdi", cut(term, 60))),
            tag("td", f"{weight:.2f}", css="num"),
            tag(
                "td",
                tag("div", tag("i", style=f"width:{100 * max(0.0, weight) / most:.1f}%"), css="rs-meter"),
            ),
        )
        for term, weight in terms
    ]
    head = tag("tr", tag("th", "Query term"), tag("th", "Weight", css="num"), tag("th", ""))
    return table_of(head, rows)


def _share(term: str, share: float) -> Markup:
    return tag("span", tag("bdi", cut(term, 60)), f" {share:.2f}", css="chip")


def _sum(terms: Terms) -> str:
    return f"{sum(share for _, share in terms):.2f}"


def _head(result: RouteResult, model: str, name: str, ms: float) -> Markup:
    facts = " · ".join(filter(None, [cut(model, 80), name, milliseconds(ms)]))
    return tag("h4", result.title, tag("span", f"  {facts}", css="dim"))
