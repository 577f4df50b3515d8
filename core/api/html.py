"""Tables for notebooks. Everything in them is escaped: it may be a document's or a model's text."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from markupsafe import Markup, escape

CELL = "padding:2px 8px;vertical-align:top"
TEXT, FIGURE = "text-align:left", "text-align:right;white-space:nowrap"
# A notebook takes $...$ in any text for a formula, and draws it.
PLAIN = "tex2jax_ignore mathjax_ignore"


def table(
    headers: Sequence[object],
    rows: Sequence[Sequence[object]],
    *,
    above: Sequence[str] = (),
    below: Sequence[str] = (),
    right: Collection[int] = (),
) -> str:
    """Rows under headers, with lines of text above and below; the columns in `right` are flushed right."""

    def row(cells: Sequence[object], tag: str) -> Markup:
        return Markup("<tr>{}</tr>").format(
            Markup("").join(
                Markup('<{0} style="{1};{2}" dir="auto">{3}</{0}>').format(
                    Markup(tag), CELL, FIGURE if at in right else TEXT, cell
                )
                for at, cell in enumerate(cells)
            )
        )

    body = Markup("").join(row(cells, "td") for cells in rows)
    grid = Markup("<table><thead>{}</thead><tbody>{}</tbody></table>").format(row(headers, "th"), body)
    # Plain text from here on: whoever adds to Markup has what is added escaped.
    return str(Markup('<div class="{}">{}{}{}</div>').format(PLAIN, _lines(above), grid, _lines(below)))


def _lines(texts: Sequence[str]) -> Markup:
    return Markup("").join(Markup('<div dir="auto">{}</div>').format(escape(text)) for text in texts)
