"""Hypothetical passages next to a real one: whether they are nearer to it than the question is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import streamlit as st
from markupsafe import Markup

from core.analysis.embedding_map import Nearness, Point, nearest, nearness, points
from core.analysis.searches import searched_keys, standing_for
from core.analysis.term_contributions import Marker
from core.domain.format import number
from core.domain.text import searchable
from core.domain.types import Run
from ui.app import picked
from ui.app.help_mark import mark
from ui.app.markup import EMPTY, fragment, show
from ui.app.names import title_of
from ui.transform.vectors import Space, space

MAX_TEXTS = 12  # texts that are set beside the passage


def draw(run: Run, gold: Mapping[str, int], depth: int) -> None:
    """Draw a passage next to each hypothetical one, or a message if the run has none."""
    found = points(run, gold, depth)
    proxies = [one for one in found if one.kind == "imagined"]
    if not proxies and not any(map(searched_keys, run.results)):
        st.info(
            "No route in this run used a hypothetical passage (HyDE) or searched texts that stand for"
            " passages (HyPE). Run the question with such a route, from the “query” or “index” family."
        )
        st.page_link("compare.py", label="Run again in Compare")
        return
    chosen = picked.pick(run, gold, label="Compare with passage")
    known = space(run, found)
    if known is None:
        return
    id = chosen if chosen in run.passages else fallback(known, gold)
    if id is None:
        st.info("The run found no passage to compare with the hypothetical ones.")
        return
    keys = {text: one.title for one in run.results for _, text in standing_for(one, id)}
    more = [Point(text, "text", text, (by,)) for text, by in keys.items()]
    if not any(one.key == id and one.kind == "passage" for one in found):
        more.append(Point(id, "passage", run.passages[id].title))
    known = space(run, [*found, *more])
    if known is not None:
        show(_beside(run, known, id, gold, proxies, more, asked=chosen == id))


def fallback(known: Space, gold: Mapping[str, int]) -> str | None:
    """Return the passage to show first.

    That is the best labelled one, else the nearest to the first hypothetical passage, else to the question.
    """
    rows = [n for n, one in enumerate(known.points) if one.kind == "passage"]
    best = max(rows, key=lambda n: gold.get(known.points[n].key, 0), default=None)
    if best is not None and gold.get(known.points[best].key, 0) <= 0:
        first = next((n for n, one in enumerate(known.points) if one.kind == "imagined"), 0)
        best = nearest(first, rows, known.vectors)
    return None if best is None else known.points[best].key


def _beside(
    run: Run,
    known: Space,
    id: str,
    gold: Mapping[str, int],
    proxies: list[Point],
    keys: list[Point],
    *,
    asked: bool,
) -> Markup:
    """Return each text next to the passage, with common words marked and cosines above."""
    vectors = dict(zip(((one.kind, one.key) for one in known.points), known.vectors, strict=True))
    question, beside = vectors["question", run.query.text], vectors["passage", id]
    texts = [*proxies, *(one for one in keys if one.kind == "text")]
    near = [nearness(question, vectors[one.kind, one.key], beside) for one in texts]
    nearer = sum(one.nearer for one in near[: len(proxies)])
    lead = f"{nearer} of {len(proxies)} hypothetical passages are nearer to " if proxies else "Compared with "
    which = "" if asked else f" (the {'best labelled passage' if gold.get(id) else 'nearest passage found'})"
    passage = run.passages[id]
    by_passage = Marker(searchable(passage.title, passage.text), (), known.analyzer)
    pairs = []
    for one, at in zip(texts[:MAX_TEXTS], near, strict=False):
        kind, told = "text in the index for this passage", verdict_of_key(at)
        if one.kind == "imagined":
            kind, told = "hypothetical passage", verdict(at)
        sides = by_passage.pieces(one.key), Marker(one.key, (), known.analyzer).pieces(passage.text)
        pairs.append((one, kind, *told, at, *sides))
    return fragment(
        "transform.proxies",
        lead,
        f"{which} than the question is." if proxies else f"{which}.",
        id,
        pairs,
        len(texts) - MAX_TEXTS,
        known,
        mark("HyDE") if proxies else EMPTY,
        mark("cosine similarity"),
        partial(title_of, run),
        gold,
    )


def verdict(near: Nearness) -> tuple[bool, str]:
    """Return whether a hypothetical passage is nearer to the passage than the question is, and a sentence."""
    return _compared(near.own, near.question, "the passage", "the question is")


def verdict_of_key(near: Nearness) -> tuple[bool, str]:
    """Return whether the question finds a text that stands for the passage more easily, and a sentence."""
    return _compared(near.drift, near.question, "the question", "the passage itself is")


def _compared(value: float, other: float, goal: str, rival: str) -> tuple[bool, str]:
    by, figures = value - other, f"{number(value)} against {number(other)}"
    if abs(by) < 0.0005:
        return True, f"As near to {goal} as {rival}: {figures}."
    how = "Nearer to" if by > 0 else "Farther from"
    return by > 0, f"{how} {goal} than {rival}: {figures}, {number(by, signed=True)}."
