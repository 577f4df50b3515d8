"""The Ranks tab: passages by routes, the rank in the cell; a cell that is clicked picks its passage."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pandas as pd
import streamlit as st

from core.analysis.rank_overlap import Row, rank_rows, strength
from core.analysis.run_view import worked
from core.domain.types import Run
from ui.app import picked
from ui.app.markup import cut, md
from ui.app.plot import dark
from ui.charts.style import shade
from ui.components import tables
from ui.components.grid import View

MATRIX = "matrix"  # key of the table
ROWS = "matrix_rows"  # the ids of its rows, from the first
PASSAGE = "passage"  # name of the first column; those of routes are their numbers
ROW, HEAD = 24, 34  # pixels
# By dark or not. A name that is pinned is drawn with 60 % of its colour: only the full one reads.
INK = {False: "#000000", True: "#ffffff"}
LIT = {False: "#ffe9a3", True: "#5c4f1b"}
GOLD = {False: "#d5e8e5", True: "#1c3f40"}
CAPTION = "Rank of each passage in each route. A stronger colour means a higher rank."


def draw(run: Run, view: View, again: str) -> None:
    """Draw the ranks of the best passages by route.

    A click on a cell opens its passage and redraws the fragment with the key `again`, which holds the
    passage choice.
    """
    rows = rank_rows(run, depth=view.depth, gold=view.gold, lit=view.lit)
    st.session_state[ROWS] = [row.id for row in rows]
    hint = " Click a cell to open its passage, or a heading to sort."
    st.caption(CAPTION + hint + (" ◆ marks labelled passages." if view.gold else ""))
    titles = [result.title for result in worked(run)]
    tables.painted(
        styled(rows, len(titles), view, dark=dark()),
        key=MATRIX,
        hide_index=True,
        width="content",
        height=HEAD + ROW * max(1, len(rows)) + 3,
        row_height=ROW,
        placeholder="",
        column_config=_columns(titles),
        on_select=lambda: _follow(again),
        selection_mode="single-cell",
        alt=CAPTION,
    )


def _follow(again: str) -> None:
    """Select the passage of the cell that was clicked."""
    cells = st.session_state[MATRIX]["selection"]["cells"]
    if cells and cells[0][0] < len(st.session_state[ROWS]):
        st.session_state[picked.PASSAGE] = st.session_state[ROWS][cells[0][0]]
        st.rerun(again)


def styled(rows: list[Row], routes: int, view: View, *, dark: bool) -> Any:
    """Return the rows as a table with a column for each route, coloured by rank."""
    columns = {PASSAGE: [f"◆{row.grade} {row.name}" if row.grade > 0 else row.name for row in rows]}
    ranks = {str(at): pd.array([row.ranks[at] for row in rows], dtype="Int64") for at in range(routes)}
    frame = tables.safe(pd.DataFrame({**columns, **ranks}))
    paint = [_paint(row, view, dark=dark) for row in rows]
    # A short name of the table: the browser searches the style of each cell in all that name it.
    style = frame.style.set_uuid("r").format(na_rep="")
    return style.apply(lambda _: pd.DataFrame(paint, index=frame.index, columns=frame.columns), axis=None)


def _paint(row: Row, view: View, *, dark: bool) -> list[str]:
    """Return the CSS of a row's cells."""
    lit = f"background-color:{LIT[dark]}" if row.id == view.lit else ""
    marked = lit or (f"background-color:{GOLD[dark]}" if row.grade > 0 else "")
    name = f"color:{INK[dark]};{marked}"
    return [name, *((rank and _cell(rank, view.depth, dark=dark)) or lit for rank in row.ranks)]


@lru_cache(4096)
def _cell(rank: int, depth: int, *, dark: bool) -> str:
    share = strength(rank, depth)
    if not share:
        return ""
    css = f"background-color:{shade(share, dark=dark)}"
    return f"{css};color:#ffffff" if share > 0.75 else css


def _columns(titles: list[str]) -> dict[str, Any]:
    wide = max(74, min(130, 1000 // max(1, len(titles))))
    routes = {
        str(at): st.column_config.NumberColumn(cut(title, 40), width=wide, help=md(title), alignment="center")
        for at, title in enumerate(titles)
    }
    return {PASSAGE: st.column_config.TextColumn("Passage", width=290, pinned=True), **routes}
