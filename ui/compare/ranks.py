"""The Ranks view: passages by routes, with the rank in the cell; a press on a row selects its passage."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import streamlit as st
from markupsafe import Markup

from core.analysis.rank_overlap import RankRow, rank_rows, strength
from core.analysis.run_view import worked
from core.analysis.term_contributions import Marker
from core.domain.types import Run
from ui.app import names
from ui.app.markup import EMPTY, join, render, tag
from ui.components.grid import View, Waiting, found_relevant, numbered
from ui.components.hits import excerpt, mark

SORT = "matrix_sort"  # the route by whose ranks the rows are sorted; without it by all routes
LINE = 160  # characters of a passage's line
MANY = 12  # routes above which heads are upright and have no times
CAPTION = "Rank of each passage in each route. A stronger colour means a higher rank."


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
    results, numbers, drawn = worked(run), numbered(run), []
    for row in rows:
        passage = run.passages.get(row.id)
        line = excerpt(passage, marker, LINE) if passage and view.density != "S" else EMPTY
        cells = join([_cell(rank, view.depth) for rank in row.ranks])
        name = names.named(run.corpus, passage) if passage else row.name
        drawn.append((numbers.get(row.id, ""), row.grade > 0, name, mark(view.gold.get(row.id)), line, cells))
    return render(
        "matrix",
        caption=CAPTION,
        results=results,
        waiting=waiting,
        rows=drawn,
        many=len(results) > MANY,
        upright=len(results) + len(waiting) > MANY,
        sorted_by=st.session_state.get(SORT),
        baseline=view.baseline,
        found=partial(found_relevant, view.gold, depth=view.depth),
    )


@lru_cache(4096)
def _cell(rank: int | None, depth: int) -> Markup:
    """Return the cell of a rank, in stronger colour for a higher rank and without one below `depth`."""
    share = strength(rank, depth) if rank is not None else 0.0
    style = f"--v:{share:.2f}" if share else ""
    return tag("td", "" if rank is None else rank, css="strong" if share > 0.6 else "", style=style)
