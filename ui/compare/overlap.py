"""The Overlap tab: how alike the routes' rankings are, and what each finds that nobody else does."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from core.analysis.rank_overlap import PERSISTENCE, Measure, Overlap, alone, overlap
from core.domain.types import Run
from ui.app import say
from ui.app.choice import choice
from ui.app.help_mark import term
from ui.app.markup import EMPTY, cut, join, md, render, show, table, tag
from ui.app.names import title_of
from ui.app.routes import title
from ui.components.grid import View

MEASURES: dict[Measure, str] = {"jaccard": "Same passages (Jaccard)", "rbo": "Same order (RBO)"}
MAX_NAMED = 3  # passages that are named of those only one route found
CROWDED = 18  # routes from which cells hold the value without its leading "0."


def draw(run: Run, view: View) -> None:
    """Draw the similarity of each pair of routes and the passages that only one route found."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        label, note = "Similarity measure", term("RBO")
        measure = choice("overlap", "overlap", label, MEASURES, segmented=True, help=note)
    found = overlap(run, measure, depth=view.depth)
    finding = describe_overlap(found)
    st.markdown(md(finding))
    meaning = f"Passages in both top {view.depth} lists, divided by passages in either."
    if measure == "rbo":
        meaning = f"Rank-biased overlap with p = {PERSISTENCE:g}: the first 10 ranks carry 86% of it."
    say.caption(f"{meaning} A stronger colour means more similar rankings.")
    show(tag("div", triangle(found, finding), _only(run, view.depth), css="rs"))


def describe_overlap(found: Overlap) -> str:
    """Name the most and the least similar routes."""
    pairs = found.pairs()
    if not pairs:
        return "Comparing rankings needs at least two routes with results."
    ends = (("Most", pairs[0]), ("Least", pairs[-1]))[: len(pairs)]
    sentences = " ".join(
        f"{which} similar: {title(one)} and {title(other)} ({value:.2f})."
        for which, (one, other, value) in ends
    )
    if found.empty:
        sentences += f" Not compared, because they found nothing: {', '.join(map(title, found.empty))}."
    return sentences


def triangle(found: Overlap, finding: str) -> Markup:
    """Return the similarity of each pair of routes, in stronger colour for more similar pairs."""
    if (count := len(found.routes)) < 2:
        return EMPTY
    names = [title(route) for route in found.routes]
    values = [row[:at] for at, row in enumerate(found.values.tolist())]
    return render("overlap", names=names, values=values, finding=finding, crowded=count >= CROWDED)


def _only(run: Run, depth: int) -> Markup:
    """Return a row for each route with passages in its top that no other route has there, most first."""
    found = [(route, ids) for route, ids in alone(run, depth).items() if ids]
    head = tag("h3", "Found by only one route", css="rs-part")
    if not found:
        none = f"Every passage in a route's top {depth} is also in another route's top {depth}."
        return head + tag("div", none, css="dim")
    rows = []
    for route, ids in sorted(found, key=lambda one: -len(one[1])):
        shown = join([tag("bdi", cut(title_of(run, id), 70)) for id in ids[:MAX_NAMED]], " · ")
        more = f" and {len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else ""
        rows.append((title(route), len(ids), join([shown, more])))
    return head + table(("Route", f"Only in its top {depth}", "Highest ranked"), rows, numbers=(1,))
