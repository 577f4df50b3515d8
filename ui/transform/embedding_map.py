"""The map of question, rewrites and passages, how far to trust it, and the true cosines of one passage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from core.analysis.embedding_map import Plane, Point, cosine, nearest, nearest_on, points
from core.analysis.searches import standing_for
from core.domain.format import number
from core.domain.types import Run
from ui.app import picked
from ui.app.markup import cut, md, show, tag
from ui.app.names import title_of
from ui.app.plot import pick_point
from ui.charts.maps import LOOK, describe_map, query_map
from ui.components import tables
from ui.transform.vectors import Space, placed, space


def draw(run: Run, gold: Mapping[str, int], depth: int) -> None:
    """Draw the choice of a passage, the map, and the passage's cosines."""
    chosen = picked.pick(run, gold)
    found = [
        replace(one, label=title_of(run, one.key)) if one.kind == "passage" else one
        for one in points(run, gold, depth)
    ]
    stored = {text: one.title for one in run.results for text in standing_for(one, chosen or "")}
    found += [Point(text, "stored", text, (title,)) for text, title in stored.items()]
    known = space(run, found)
    if known is None:
        return
    if len(found) < 3:
        st.info("The map needs at least two passages or rewrites besides the question. This run has fewer.")
        return
    plane = placed((run.id, known.embedder, len(known.points), known.note), known.vectors)
    summary = " ".join(describe_space(known, plane, chosen, depth))
    st.markdown(md(summary))
    figure = query_map(found, plane, gold=gold, chosen=chosen)
    pick_point(figure, f"map:{run.id}", summary, _look_at)
    _cosines(run, known, chosen, gold)


def describe_space(known: Space, plane: Plane, chosen: str | None, depth: int) -> list[str]:
    """Describe how far to trust the map, where it misleads, and which passages it shows."""
    at = _row(known, chosen)
    among = [n for n, one in enumerate(known.points) if (one.kind == "passage") == (at is None)]
    name, at = ("the question", 0) if at is None else ("the selected passage", at)
    really, seemingly = nearest(at, among, known.vectors), nearest_on(at, among, plane.xy)
    sentences = [describe_map(plane)]
    if really is not None and seemingly is not None:
        near = cosine(known.vectors[at], known.vectors[really])
        on_map = ", also on the map." if really == seemingly else f"; on the map: {_named(known, seemingly)}."
        sentences.append(
            f"Nearest to {name} by true cosine: {_named(known, really)} ({number(near)}){on_map}"
        )
    sentences.append(f"The map shows the top {depth} passages of every route and the labelled passages.")
    return [*sentences, *([known.note] if known.note else [])]


def _look_at(id: str) -> None:
    """Look at the passage whose point was clicked, unless that is of a text."""
    if id:
        st.session_state[picked.PASSAGE] = id


def _cosines(run: Run, known: Space, chosen: str | None, gold: Mapping[str, int]) -> None:
    """Draw the exact cosine of each text with the chosen passage, or with the best labelled one."""
    labelled = [id for id, grade in gold.items() if grade > 0 and id in run.passages]
    id = chosen or max(labelled, key=gold.__getitem__, default=None)
    at = _row(known, id)
    if id is None:
        st.caption("Select a passage, or click one on the map, to see its true cosine with each query.")
    elif at is None:
        st.caption("The selected passage has no label and is in no route's top, so it is not on the map.")
    else:
        st.caption("True cosine of the passage at the right with each query, which the map approximates.")
        near = [(cosine(known.vectors[at], known.vectors[n]), one) for n, one in enumerate(known.points)]
        rows = [
            {
                "Cosine": round(value, 4),
                "Text": cut(one.key, 200),
                "Kind": LOOK[one.kind][0],
                "Routes": ", ".join(one.routes),
            }
            for value, one in sorted(near, key=lambda pair: -pair[0])
            if one.kind != "passage"
        ]
        left, right = st.columns(2)
        with left:
            tables.show(rows, hide_index=True, width="stretch", key="map_cosines")
        with right:
            passage = tag("div", run.passages[id].text, css="rs-quote", dir="auto")
            show(tag("div", tag("b", title_of(run, id)), passage, css="rs"))


def _row(known: Space, chosen: str | None) -> int | None:
    keys = [one.key if one.kind == "passage" else None for one in known.points]
    return keys.index(chosen) if chosen is not None and chosen in keys else None


def _named(known: Space, at: int) -> str:
    one = known.points[at]
    return "the question" if one.kind == "question" else f"“{cut(one.label, 80)}”"
