"""The Ranks view: passages by routes, with the rank in the cell; a press on a row selects its passage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import streamlit as st
from markupsafe import Markup

from core.analysis.rank_overlap import RankRow, rank_rows, strength
from core.analysis.run_view import worked
from core.analysis.term_contributions import Marker
from core.domain.format import milliseconds
from core.domain.types import RouteResult, Run
from ui.app import names
from ui.app.markup import EMPTY, cut, join, tag
from ui.components.grid import View, Waiting, found_relevant, numbered
from ui.components.hits import excerpt, mark

SORT = "matrix_sort"  # the route by whose ranks the rows are sorted; without it by all routes
LINE = 160  # characters of a passage's line
CAPTION = "Rank of each passage in each route. A stronger colour means a higher rank."
_NO_RANK = Markup("<td></td>")


def rows_of(run: Run, view: View) -> list[RankRow]:
    """Return the best passages with their ranks, by the ranks of the chosen route if one is chosen."""
    rows = rank_rows(run, depth=view.depth, gold=view.gold, lit=view.lit)
    order = [result.route for result in worked(run)]
    chosen = st.session_state.get(SORT)
    if chosen in order:
        at = order.index(chosen)
        rows.sort(key=lambda row: row.ranks[at] or len(run.passages) + 1)
    return rows


def matrix(
    run: Run, view: View, rows: Sequence[RankRow], marker: Marker | None, waiting: Sequence[Waiting] = ()
) -> Markup:
    """Return passages as rows with their name and one line, and routes as columns with coloured ranks."""
    results, numbers = worked(run), numbered(run)
    heads = [_head(result, view, many=len(results) > 12) for result in results]
    heads += [
        tag("th", tag("span", one.title), tag("i", "…", title=_doing(one)), scope="col", css="dim")
        for one in waiting
    ]
    blank = _NO_RANK * len(waiting)
    body = [_row(run, view, row, numbers, marker, blank) for row in rows]
    corner = tag("th", tag("span", CAPTION, css="rs-unseen"), "Passage", scope="col")
    table = tag(
        "table",
        tag("thead", tag("tr", corner, *heads)),
        tag("tbody", *body),
        css="rs-matrix many" if len(heads) > 12 else "rs-matrix",
        style=f"--routes:{len(heads)}",
    )
    return tag(
        "div",
        tag("div", table, css="rs-matrix-box", tabindex="0", role="region", aria_label=CAPTION),
        css="rs",
    )


def _doing(one: Waiting) -> str:
    """Describe what a route that has not ended does."""
    return f"{'running' if one.running else 'waiting'}: {one.step or 'to start'}"


def _head(result: RouteResult, view: View, *, many: bool) -> Markup:
    """Return the head of a route's column: its name, time and relevant passages; a press sorts by it."""
    ms = milliseconds(result.ms)
    sorted_by = st.session_state.get(SORT) == result.route
    button = tag(
        "button",
        tag("span", cut(result.title, 40)),
        type="button",
        data_press=f"sort {result.route}",
        title=f"{result.title}, {ms}: sort by its ranks",
        aria_pressed=str(sorted_by).lower(),
    )
    found = found_relevant(view.gold, result, view.depth)
    time = EMPTY if many else tag("span", ms, css="dim nowrap")
    return tag("th", button, time, found, scope="col", css="base" if result.route == view.baseline else "")


def _row(
    run: Run, view: View, row: RankRow, numbers: Mapping[str, int], marker: Marker | None, blank: Markup
) -> Markup:
    passage, number = run.passages.get(row.id), numbers.get(row.id)
    name = names.named(run.corpus, passage) if passage else row.name
    title = tag(
        "button",
        cut(name, 140),
        type="button",
        css="title",
        dir="auto",
        data_press=f"passage {number}" if number is not None else "",
        title=name,
    )
    grade = mark(view.gold.get(row.id))
    line = excerpt(passage, marker, LINE) if passage and view.density != "S" else EMPTY
    cells = join([_cell(rank, view.depth) for rank in row.ranks])
    return tag(
        "tr",
        tag("th", tag("div", title, grade), tag("div", line, css="snip", dir="auto"), scope="row"),
        cells,
        blank,
        data_p=number if number is not None else "",
        css="gold" if row.grade > 0 else "",
    )


@lru_cache(4096)
def _cell(rank: int | None, depth: int) -> Markup:
    """Return the cell of a rank, in stronger colour for a higher rank and without one below `depth`."""
    if rank is None:
        return _NO_RANK
    share = strength(rank, depth)
    css = "strong" if share > 0.6 else ""
    return tag("td", rank, css=css, style=f"--v:{share:.2f}" if share else "")
