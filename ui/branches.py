"""The segments a route tried, as a tree with the critique of each, and their ranking by other weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st
from markupsafe import Markup

from core.branches import WEIGHTS, in_order, is_number, rescore, scorable, support_told, trees
from core.charts.look import milliseconds
from core.types import RouteResult, Run, Span
from ui.markup import EMPTY, cut, join, md, show, tag

NONE = "No route of this run wrote several segments to choose from."
RANGES = {"relevance": (0.0, 1.0), "support": (0.0, 1.0), "utility": (-1.0, 1.0)}


def branches(run: Run) -> Markup:
    """Every tree of the run as it was chosen from; says so if there is none."""
    found = trees(run)
    if not found:
        return tag("div", NONE, css="rs dim")
    return tag("div", *(_block(run, result, span, span.output) for result, span in found), css="rs")


def draw(run: Run) -> None:
    """Each tree with its weights, which rank it anew at once: from the stored run, without any model."""
    found = trees(run)
    if not found:
        show(tag("div", NONE, css="rs dim"))
    for result, span in found:
        tree = span.output
        stored = tree.get("weights") if isinstance(tree.get("weights"), Mapping) else {}
        stored = {name: float(stored[name]) for name in WEIGHTS if is_number(stored.get(name))}
        if stored and scorable(tree):
            weights = _controls(f"{run.id}-{result.route}-{span.id}", stored)
            if weights != stored:
                tree = rescore(tree, weights)
        show(tag("div", _block(run, result, span, tree), css="rs"))


def _controls(key: str, stored: Mapping[str, float]) -> dict[str, float]:
    weights = {}
    for column, (name, value) in zip(st.columns(len(stored)), stored.items(), strict=True):
        with column:
            given = st.number_input(
                md(f"Weight of {name}"), 0.0, 10.0, value, 0.1, key=f"weight-{name}-{key}",
                help="Ranks what the run wrote anew; nothing is written again.",
            )  # fmt: skip
            weights[name] = float(given)
    return weights


def _block(run: Run, result: RouteResult, span: Span, tree: Mapping[str, Any]) -> Markup:
    facts = f"  {span.name} · {milliseconds(span.ms)}"
    rows = [_row(run, at, branch) for at, branch in in_order(tree["branches"])]
    names = ("Segment", "Passage", "Relevance", "Support", "Utility")
    head = tag("tr", *(tag("th", name) for name in names), tag("th", "Score", css="num"))
    return tag(
        "div",
        tag("h4", result.title, tag("span", facts, css="dim")),
        _told(tree),
        tag("table", tag("thead", head), tag("tbody", *rows), css="rs-table"),
        css="rs-block",
    )


def _told(tree: Mapping[str, Any]) -> Markup:
    """What was decided; for a tree ranked anew, what that cannot tell."""
    if "open" not in tree:
        why = cut(str(tree.get("why", "")), 240)
        return tag(
            "div", tag("b", cut(str(tree.get("decision", "")), 80)), tag("span", f"  {why}", css="dim")
        )
    told = "ranked by other weights than in the run: only what it had written"
    if tree["open"]:
        told += f"; {len(tree['open'])} paths end early, as the run did not go on from them"
    return tag("div", tag("b", told))


def _row(run: Run, at: int, branch: Mapping[str, Any]) -> Markup:
    passage = run.passages.get(str(branch.get("passage")))
    title = passage.title or passage.doc_id if passage else str(branch.get("passage") or "none")
    chosen = branch.get("chosen") is True
    text = cut(str(branch.get("text", "")), 300)
    judged = {
        "relevance": branch.get("relevance"),
        "support": support_told(branch.get("support")),
        "utility": branch.get("utility"),
    }
    return tag(
        "tr",
        tag(
            "td",
            tag("b" if chosen else "span", text, dir="auto"),
            tag("span", "chosen", css="chip accent") if chosen else EMPTY,
            style=f"padding-left:{0.4 + 1.4 * (min(int(branch['depth']), 9) - 1):.1f}rem",
        ),
        tag("td", cut(title, 60), dir="auto"),
        join([tag("td", _meter(value, *RANGES[name])) for name, value in judged.items()]),
        tag("td", _score(branch.get("score")), css="num"),
        title=f"segment {at + 1}",
    )


def _meter(value: Any, low: float, high: float) -> Markup:
    if not is_number(value):
        return tag("span", "not judged", css="dim")
    share = min(1.0, max(0.0, (value - low) / (high - low)))
    bar = tag("div", tag("i", style=f"width:{100 * share:.1f}%"), css="rs-meter", style="min-width:4rem")
    return join([tag("span", f"{value:.2f}"), bar])


def _score(value: Any) -> str:
    return f"{value:.2f}" if is_number(value) else "–"
