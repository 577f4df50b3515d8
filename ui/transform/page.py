"""Rewrites of the question: a summary, then rewrites, tree and the map."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import streamlit as st
from markupsafe import Markup

from core.analysis.run_view import worked
from core.analysis.searches import Branch, SearchOutcome, outcome, tree
from core.domain.rank_changes import ranks
from core.domain.types import RouteResult, Run
from ui.app.markup import cut, fragment, md, show
from ui.app.names import title_of
from ui.app.tabs import tabs
from ui.components.gold import gold_grades
from ui.components.rewrites import texts
from ui.transform import embedding_map

DEPTH = 10
TAB = "transform_tab"
TOP = 3  # passages that a query is shown with
MAX_NAMED = 4  # routes, finds or losses that a sentence names


@st.fragment  # a click leaves the line on the run and the sidebar as they are
def draw(run: Run) -> None:
    """Draw the page below the line about the run."""
    gold = gold_grades(run)
    if not worked(run):
        st.info("No route in this run has a result yet, so there are no queries to show.")
    if sentences := describe_rewrites(run, outcome(run, gold, DEPTH), gold):
        st.markdown(md(" ".join(sentences)))
    grown = trees(run, DEPTH)
    views: dict[str, Callable[[], None]] = {
        "Texts": lambda: show(texts(run, DEPTH, gold)),
        **({"Tree": lambda: show(drawn(run, grown, gold, DEPTH))} if grown else {}),
        "Map": lambda: embedding_map.draw(run, gold, DEPTH),
    }
    tabs(views, TAB)


def trees(run: Run, depth: int) -> list[tuple[RouteResult, Branch]]:
    """Return the routes that have a tree of queries."""
    return [(one, found) for one in run.results if (found := tree(run, one, depth))]


def drawn(run: Run, grown: list[tuple[RouteResult, Branch]], gold: Mapping[str, int], depth: int) -> Markup:
    """Return all trees of queries, one below the other."""
    made = [
        (result, root, ranks(result.hits), sum(one.found is not None for one in root.all()))
        for result, root in grown
    ]
    return fragment("transform.trees", made, TOP, depth, partial(title_of, run), gold)


def describe_rewrites(run: Run, found: SearchOutcome, gold: Mapping[str, int]) -> list[str]:
    """Describe in a few sentences what rewriting changed."""
    count = len(found.changed) + len(found.same) + len(found.silent)
    if not count:
        return []
    if not found.changed:
        return [f"All {count} routes with a result searched with the question as written."]
    summary = [f"{len(found.changed)} of {count} routes searched with a rewrite."]
    if not gold:
        return [*summary, "The question has no labels. The table shows which passages only one query found."]
    wins = _by_first(run, found.finds, "Only “{}” found {}")
    losses = _by_first(run, found.losses, "{} lost {}")
    return [
        *summary,
        wins or f"No rewrite found a labelled passage in its top {DEPTH} that every other query missed.",
        losses or "No rewrite lost a labelled passage that the same search finds with the question.",
    ]


def _by_first(run: Run, pairs: Sequence[tuple[str, str]], sentence: str) -> str:
    """Describe passages by the query that found or lost them; "" without any."""
    ids: dict[str, list[str]] = {}
    for one, id in pairs:
        ids.setdefault(cut(one, 90), []).append(f"“{cut(title_of(run, id), 70)}”")
    parts = [sentence.format(one, " and ".join(dict.fromkeys(titles))) for one, titles in ids.items()]
    more = f"; and {len(parts) - MAX_NAMED} more" if len(parts) > MAX_NAMED else ""
    return f"{'; '.join(parts[:MAX_NAMED])}{more}." if parts else ""
