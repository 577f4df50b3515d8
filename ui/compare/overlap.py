"""The Overlap tab: how alike the routes' rankings are, and what each finds that nobody else does."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from core.analysis.rank_overlap import PERSISTENCE, Overlap, alone, overlap, weight
from core.domain.types import Run
from ui.app import address
from ui.app.help_mark import term
from ui.app.markup import EMPTY, cut, join, md, show, table_of, tag
from ui.app.names import title_of
from ui.app.routes import title
from ui.components.grid import View

JACCARD, RBO = "Same passages (Jaccard)", "Same order (RBO)"
MEASURES = {"jaccard": JACCARD, "rbo": RBO}
MAX_NAMED = 3  # passages that are named of those only one route found
CROWDED = 18  # routes from which cells hold the value without its leading "0."
_CELL = Markup('<td style="--alike:{:.0f}%" title="{} – {}: {:.3f}">{}</td>')


def draw(run: Run, view: View) -> None:
    """Draw the similarity of each pair of routes and the passages that only one route found."""
    address.take("overlap", "overlap", MEASURES.__getitem__)
    address.take("p", "persistence", address.one_of(list(PERSISTENCE)))
    st.session_state.setdefault("overlap", JACCARD)
    st.session_state.setdefault("persistence", 0.9)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        measure = st.segmented_control(
            "Similarity measure",
            list(MEASURES.values()),
            required=True,
            key="overlap",
            persist_state="session",
            help=term("RBO"),
        )
        p = 0.9
        if measure == RBO:
            chosen = st.segmented_control(
                "Persistence p",
                PERSISTENCE,
                required=True,
                key="persistence",
                persist_state="session",
                help="Values near 1 give lower ranks more weight",
            )
            p = chosen or p
    by_rank = measure == RBO
    address.keep("overlap", "rbo" if by_rank else None)
    address.keep("p", str(p) if by_rank and p != 0.9 else None)
    found = overlap(run, "rbo" if by_rank else "jaccard", depth=view.depth, p=p)
    finding = describe_overlap(found)
    st.markdown(md(finding))
    meaning = _meaning(by_rank, view.depth, p)
    st.caption(
        md(f"{meaning} A stronger colour means more similar rankings. Similar routes are next to each other.")
    )
    show(tag("div", triangle(found, finding), _only(run, view.depth), css="rs"))


def describe_overlap(found: Overlap) -> str:
    """Name the most and the least similar routes."""
    pairs = found.pairs()
    if not pairs:
        return "Comparing rankings needs at least two routes with results."
    one, other, most = pairs[0]
    equal = sum(value >= 1 - 1e-9 for _, _, value in pairs)
    sentences = f"Most similar: {title(one)} and {title(other)} ({most:.2f})"
    sentences += f", one of {equal} identical pairs." if equal > 1 else "."
    if len(pairs) > 1:
        one, other, least = pairs[-1]
        sentences += f" Least similar: {title(one)} and {title(other)} ({least:.2f})."
    if found.empty:
        sentences += f" Not compared, because they found nothing: {', '.join(map(title, found.empty))}."
    return sentences


def _meaning(by_rank: bool, depth: int, p: float) -> str:
    if not by_rank:
        return f"Passages in both top {depth} lists, divided by passages in either."
    return (
        f"Rank-biased overlap of the full rankings; 1 means identical. With p = {p:g}, the first 10 ranks"
        f" carry {weight(10, p):.0%} of the weight."
    )


def triangle(found: Overlap, finding: str) -> Markup:
    """Return the similarity of each pair of routes, in stronger colour for more similar pairs."""
    count = len(found.routes)
    if count < 2:
        return EMPTY
    names = [title(route) for route in found.routes]
    # One template for hundreds of cells: an element made part by part takes four times as long.
    rows = [
        tag(
            "tr",
            tag("th", cut(names[at], 40), scope="row", title=names[at]),
            *(
                _CELL.format(100 * value, names[at], other, value, cell_text(value, count))
                for other, value in zip(names[:at], found.values[at].tolist(), strict=False)
            ),
        )
        for at in range(1, count)
    ]
    heads = (tag("th", tag("span", cut(name, 40)), scope="col", title=name) for name in names[:-1])
    head = tag("thead", tag("tr", tag("td"), *heads))
    table = tag("table", head, tag("tbody", *rows), aria_label=finding)
    return tag(
        "div",
        table,
        css="rs-overlap",
        tabindex="0",
        role="region",
        aria_label="Similarity of each pair of routes",
    )


def cell_text(value: float, count: int) -> str:
    """Return a cell's value: "0.42", or ".42" in a crowded table."""
    text = f"{value:.2f}"
    return text.removeprefix("0") if count >= CROWDED else text


def _only(run: Run, depth: int) -> Markup:
    """Return a row for each route with passages in its top that no other route has there."""
    found = sorted(
        ((route, ids) for route, ids in alone(run, depth).items() if ids), key=lambda one: -len(one[1])
    )
    head = tag("h3", "Found by only one route", css="rs-part")
    if not found:
        return head + tag(
            "div",
            f"Every passage in a route's top {depth} is also in another route's top {depth}.",
            css="dim",
        )
    rows = [
        tag(
            "tr",
            tag("td", title(route), css="nowrap"),
            tag("td", len(ids), css="num"),
            tag(
                "td",
                join([tag("bdi", cut(title_of(run, id), 70)) for id in ids[:MAX_NAMED]], " · "),
                f" and {len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else EMPTY,
            ),
        )
        for route, ids in found
    ]
    cells = (
        tag("th", "Route"),
        tag("th", f"Only in its top {depth}", css="num"),
        tag("th", "Highest ranked"),
    )
    table = table_of(tag("tr", *cells), rows)
    return join([head, tag("p", most_alone(found, depth)), table])


def most_alone(found: list[tuple[str, list[str]]], depth: int) -> str:
    """Name the route with the most passages that no other route found; `found` is sorted."""
    most = len(found[0][1])
    first = [title(route) for route, ids in found if len(ids) == most]
    names, finds = " and ".join(first[:3]), "finds" if len(first) == 1 else "find"
    return f"{names} {finds} the most passages that no other route has in its top {depth}: {most}."
