"""Why a passage was found, if a step recorded it: by tokens, or by weighted terms."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.analysis.term_contributions import TokenMatch, TokenStep, expansions, token_matches
from core.domain.types import RouteResult, Run
from ui.app import say
from ui.app.markup import cut, fragment, show, tag
from ui.app.names import title_of
from ui.app.plot import plot
from ui.charts.heatmaps import describe_match, match_heatmap


def draw(run: Run) -> None:
    """Draw every step that recorded how passages matched, or a message if there is none."""
    drawn = False
    for result in run.results:
        for number, tokens in enumerate(token_matches(result)):
            _tokens(run, result, tokens, f"{result.route}-{number}")
            drawn = True
        for span, found in expansions(result):
            show(fragment("matches.terms", result, span, found, partial(title_of, run)))
            drawn = True
    if not drawn:
        message = "No route in this run recorded which tokens or terms of a passage matched."
        show(tag("div", message, css="rs dim"))


def _tokens(run: Run, result: RouteResult, tokens: TokenStep, key: str) -> None:
    show(tag("div", fragment("matches.head", result, tokens.model, tokens.span), css="rs"))
    if whole := [match for match in tokens.hits if match.drawable]:
        chosen = st.selectbox(
            "Passage",
            range(len(whole)),
            format_func=lambda at: cut(f"{at + 1}. {title_of(run, whole[at].passage.id)}", 90),
            key=f"match-{key}",
            width=420,
        )
        match = whole[chosen or 0]
        say.caption(_left_out(match))
        plot(match_heatmap(match), f"heatmap-{key}", describe_match(match), table=False)
    best = []
    for hit in tokens.hits:
        pairs = zip(hit.query, hit.passage.best, strict=False)
        named = [(token if token == one else f"{token} → {one}", cosine) for token, (one, cosine) in pairs]
        best.append((hit.passage.id, sum(cosine for _, cosine in hit.passage.best), named))
    show(fragment("matches.tokens", best, partial(title_of, run)))


def _left_out(match: TokenMatch) -> str:
    rows, columns = len(match.passage.cosines), len(match.passage.passage)
    return (
        f"Rows are {rows} of {len(match.query)} question tokens, columns {columns} of {match.passage.tokens} "
        "passage tokens. A ring marks the most similar passage token."
    )
