"""The Answers tab: what was written, how it came about, and the tables and trees it came from."""

from __future__ import annotations

from core.branches import trees
from core.reading_drafts import writing
from core.types import Run
from ui import branches
from ui.cited import answers
from ui.drafts import drafts
from ui.markup import show, tag
from ui.tables import queries, tables


def draw(run: Run) -> None:
    """The answers side by side, then each way of writing that some route of the run went."""
    show(answers(run))
    if any(writing(result) for result in run.results):
        _heading("Drafts and their critique")
        show(drafts(run))
    if trees(run):
        _heading("Segments tried")
        branches.draw(run)
    if any(any(queries(result)) for result in run.results):
        _heading("Queries to tables")
        show(tables(run))


def _heading(text: str) -> None:
    show(tag("div", tag("h3", text, css="rs-part"), css="rs"))
