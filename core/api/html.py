"""Tables for notebooks. Everything in them is escaped: it may be a document's or a model's text."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from core.evaluation.templating import render


def table(
    headers: Sequence[object],
    rows: Sequence[Sequence[object]],
    *,
    above: Sequence[str] = (),
    below: Sequence[str] = (),
    right: Collection[int] = (),
) -> str:
    """Rows under headers, with lines of text above and below; the columns in `right` are flushed right."""
    return render("notebook.html", headers=headers, rows=rows, above=above, below=below, right=right)
