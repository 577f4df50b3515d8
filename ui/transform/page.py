"""What each route made of the question: words first, then texts, tree, imagined passages and the map."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from core.analysis.run_view import title_of, worked
from core.analysis.searches import Outcome, outcome
from core.domain.types import Run
from ui.app.markup import cut, md, show
from ui.app.tabs import tabs
from ui.components.gold import gold_grades
from ui.components.rewrites import texts
from ui.transform import embedding_map, proxies, tree

DEPTH = 10
TAB = "transform_tab"
NAMED = 4  # routes, finds or losses that a sentence names


def draw(run: Run) -> None:
    """The page below the run's own line."""
    gold = gold_grades(run)
    if not worked(run):
        st.info("No route of this run has ended with a result, so there is nothing to tell of its texts yet.")
    if said := in_words(run, outcome(run, gold, DEPTH), gold):
        st.markdown(md(" ".join(said)))
    grown = tree.trees(run, DEPTH)
    views: dict[str, Callable[[], None]] = {
        "Texts": lambda: show(texts(run, DEPTH, gold)),
        **({"Tree": lambda: show(tree.drawn(run, grown, gold, DEPTH))} if grown else {}),
        "Proxies": lambda: proxies.draw(run, gold, DEPTH),
        "Map": lambda: embedding_map.draw(run, gold, DEPTH),
    }
    tabs(views, TAB)


def in_words(run: Run, found: Outcome, gold: Mapping[str, int]) -> list[str]:
    """What the rewriting came to, in one or two sentences."""
    count = len(found.changed) + len(found.same) + len(found.silent)
    if not count:
        return []
    if not found.changed:
        return [f"Every one of the {count} routes with a result searched with the question as it is."]
    said = [f"{len(found.changed)} of {count} routes searched with another text than the question."]
    if not gold:
        return [*said, "The question has no labels, so which text paid is told by what only it found."]
    wins = [f"“{cut(one, 90)}” alone found {ids}" for one, ids in _by_first(run, found.finds)]
    losses = [f"{one} lost {ids}" for one, ids in _by_first(run, found.losses)]
    return [
        *said,
        _some(wins)
        or f"No written text found a labelled passage in its top {DEPTH} that no other text found.",
        _some(losses) or "No rewriting lost a labelled passage that the question finds by the same search.",
    ]


def _by_first(run: Run, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Passages by what found or lost them, in words."""
    ids: dict[str, list[str]] = {}
    for one, id in pairs:
        ids.setdefault(one, []).append(_title(run, id))
    return [(one, " and ".join(dict.fromkeys(titles))) for one, titles in ids.items()]


def _some(parts: list[str]) -> str:
    more = f"; and {len(parts) - NAMED} more" if len(parts) > NAMED else ""
    return f"{'; '.join(parts[:NAMED])}{more}." if parts else ""


def _title(run: Run, id: str) -> str:
    return f"“{cut(title_of(run, id), 70)}”"
