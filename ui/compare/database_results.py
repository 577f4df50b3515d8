"""Database queries of routes, and what they returned: the query, its rows, the attempts before."""

from __future__ import annotations

from markupsafe import Markup

from core.analysis.run_view import Recorded, recorded
from core.domain.outputs import TableResult
from core.domain.types import RouteResult, Run
from ui.app.markup import render

MAX_ROWS = 50  # rows
CELL = 200  # characters


def tables(run: Run) -> Markup:
    """Return every query of every route with its rows, or a note if there is none."""
    found = [(result, one) for result in run.results for one in queries(result)]
    return render("database_results", found=found, most=MAX_ROWS, cell=CELL)


def queries(result: RouteResult) -> list[Recorded[TableResult]]:
    """Return the innermost steps that queried a database."""
    found = recorded(result.spans, TableResult)
    outer = {one.span.parent for one in found}
    return [one for one in found if one.span.id not in outer]
