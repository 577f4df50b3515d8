"""The segments a route tried, as a tree with the critique of each, and their ranking by other weights."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from markupsafe import Markup

from core.domain.format import milliseconds
from core.domain.outputs import Segment, SegmentTree
from core.domain.types import RouteResult, Run, Span
from core.steps.beam import WEIGHTS, in_order, rescore, support_of, trees
from ui.app.markup import EMPTY, cut, join, md, show, table, tag
from ui.app.names import title_of

NO_SEGMENTS = "No route of this run wrote alternative segments."
MAX_WEIGHT = 10.0  # that a weight can be set to
RANGES = {"relevance": (0.0, 1.0), "support": (0.0, 1.0), "utility": (-1.0, 1.0)}


def draw(run: Run) -> None:
    """Draw each tree with its weights; changing them reranks the stored run without a model."""
    found = trees(run)
    if not found:
        show(tag("div", NO_SEGMENTS, css="rs dim"))
    for result, span, tree in found:
        stored = {name: tree.weights[name] for name in WEIGHTS if name in tree.weights}
        ends: tuple[int, ...] | None = None
        if stored and all(0 <= weight <= MAX_WEIGHT for weight in stored.values()):
            weights = _controls(f"{run.id}-{result.route}-{span.id}", stored)
            if weights != stored:
                tree, ends = rescore(tree, weights)
        show(tag("div", _block(run, result, span, tree, ends), css="rs"))


def _controls(key: str, stored: Mapping[str, float]) -> dict[str, float]:
    weights = {}
    for column, (name, value) in zip(st.columns(len(stored)), stored.items(), strict=True):
        with column:
            given = st.number_input(
                md(f"Weight of {name}"),
                0.0,
                MAX_WEIGHT,
                value,
                0.1,
                key=f"weight-{name}-{key}",
                help="Ranks the stored segments again; no new text is written.",
            )
            weights[name] = float(given)
    return weights


def _block(
    run: Run, result: RouteResult, span: Span, tree: SegmentTree, ends: tuple[int, ...] | None = None
) -> Markup:
    """Return a tree as the route chose from it, or ranked by other weights with paths in `ends` cut short."""
    facts = f"  {span.name} · {milliseconds(span.ms)}"
    if ends is None:
        why = join([tag("b", cut(tree.decision, 80)), tag("span", f"  {cut(tree.why, 240)}", css="dim")])
    else:
        cut_short = f"; {len(ends)} paths end early, where the run did not continue them" if ends else ""
        why = tag("b", "ranked with other weights than in the run, using stored segments only", cut_short)
    rows = [_row(run, at, branch) for at, branch in in_order(tree.branches)]
    heads = ("Segment", "Passage", "Relevance", "Support", "Utility", "Score")
    title = tag("h4", result.title, tag("span", facts, css="dim"))
    return tag("div", title, tag("div", why), table(heads, rows, numbers={5}), css="rs-block")


def _row(run: Run, at: int, branch: Segment) -> Markup:
    title = title_of(run, branch.passage) if branch.passage else "none"
    judged = {
        "relevance": branch.relevance,
        "support": support_of(branch.support),
        "utility": branch.utility,
    }
    return tag(
        "tr",
        tag(
            "td",
            tag("b" if branch.chosen else "span", cut(branch.text, 300), dir="auto"),
            tag("span", "chosen", css="chip accent") if branch.chosen else EMPTY,
            style=f"padding-left:{0.4 + 1.4 * (min(branch.depth, 9) - 1):.1f}rem",
        ),
        tag("td", cut(title, 60), dir="auto"),
        join([tag("td", _meter(value, *RANGES[name])) for name, value in judged.items()]),
        tag("td", "–" if branch.score is None else f"{branch.score:.2f}", css="num"),
        title=f"segment {at + 1}",
    )


def _meter(value: float | None, low: float, high: float) -> Markup:
    if value is None:
        return tag("span", "not judged", css="dim")
    share = min(1.0, max(0.0, (value - low) / (high - low)))
    bar = tag("div", tag("i", style=f"width:{100 * share:.1f}%"), css="rs-meter", style="min-width:4rem")
    return join([tag("span", f"{value:.2f}"), bar])
