"""The segments a route tried, as a tree with the critique of each, and their ranking by other weights."""

from __future__ import annotations

import streamlit as st

from core.domain.types import Run
from core.steps.beam import WEIGHTS, in_order, rescore, support_of, trees
from ui.app.markup import fragment, md, show, tag
from ui.app.names import title_of

NO_SEGMENTS = "No route of this run wrote alternative segments."
MAX_WEIGHT = 10.0  # that a weight can be set to


def draw(run: Run) -> None:
    """Draw each tree with its weights; changing them reranks the stored run without a model."""
    found = trees(run)
    if not found:
        show(tag("div", NO_SEGMENTS, css="rs dim"))
    for result, span, tree in found:
        stored = {name: tree.weights[name] for name in WEIGHTS if name in tree.weights}
        ends: tuple[int, ...] | None = None
        if stored and all(0 <= weight <= MAX_WEIGHT for weight in stored.values()):
            weights = {}
            for column, (name, value) in zip(st.columns(len(stored)), stored.items(), strict=True):
                key = f"weight-{name}-{run.id}-{result.route}-{span.id}"
                label, note = md(f"Weight of {name}"), "Ranks the stored segments again; writes no new text."
                weights[name] = column.number_input(label, 0.0, MAX_WEIGHT, value, 0.1, key=key, help=note)
            if weights != stored:
                tree, ends = rescore(tree, weights)
        rows = []
        for at, one in in_order(tree.branches):
            judged = (one.relevance, 0, 1), (support_of(one.support), 0, 1), (one.utility, -1, 1)
            rows.append((at, one, title_of(run, one.passage) if one.passage else "none", judged))
        show(fragment("evaluators.tree", result, span, tree, ends, rows))
