"""The numbers that a chart shows, as rows: for those who do not see it, or want to read them off."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import unescape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Row = dict[str, str]
_BREAK, _MARK = re.compile(r"(?:<br>)+"), re.compile(r"</?(?:b|i|span)\b[^<>]*>")


def numbers(figure: Figure) -> list[Row]:
    """Return a row for each point, bar or cell: its place on both axes and its hover text.

    Decorative lines and texts, without a name and a hover, are left out.
    """
    x, y = _axis(figure.layout.xaxis, "x"), _axis(figure.layout.yaxis, "y")
    rows: list[Row] = []
    for trace in figure.data:
        if trace.type == "heatmap":
            rows += _cells(trace, x, y)
        elif trace.name or trace.hoverinfo != "skip":
            rows += _points(trace, x, y)
    return rows


class _Axis:
    """An axis with its name and its tick labels."""

    def __init__(self, name: str, ticks: dict[Any, str]) -> None:
        self.name, self.ticks = name, ticks

    def in_words(self, value: Any) -> str:
        return _in_words(self.ticks.get(value) or value)


def _axis(axis: Any, name: str) -> _Axis:
    """Return an axis; its ticks replace values if they are words rather than places on a scale."""
    words = axis.ticktext is not None and axis.type != "log"
    ticks = dict(zip(_list(axis.tickvals), axis.ticktext, strict=False)) if words else {}
    return _Axis(axis.title.text or name, ticks)


def _points(trace: Any, x: _Axis, y: _Axis) -> list[Row]:
    begins = _list(trace.base) if trace.type == "bar" else []
    hints = _list(trace.customdata)
    rows = []
    for nth, (at, up) in enumerate(zip(_list(trace.x), _list(trace.y), strict=False)):
        if at is None or up is None:
            continue
        row = {"series": _in_words(trace.name), y.name: y.in_words(up), x.name: x.in_words(at)}
        if nth < len(begins):
            row["from"] = _in_words(begins[nth])
        row["details"] = _hint(hints[nth]) if nth < len(hints) else ""
        rows.append({name: text for name, text in row.items() if text})
    return rows


def _cells(trace: Any, x: _Axis, y: _Axis) -> list[Row]:
    values, texts = _list(trace.z), _list(trace.text)
    across = _list(trace.x) or list(range(len(_list(values[0])) if values else 0))
    down = _list(trace.y) or list(range(len(values)))
    rows = []
    for i, line in enumerate(values):
        written = _list(texts[i]) if i < len(texts) else []
        for j, value in enumerate(_list(line)):
            if value is None or value != value:
                continue
            row = {y.name: y.in_words(down[i]), x.name: x.in_words(across[j]), "value": _in_words(value)}
            if j < len(written) and written[j]:
                row["details"] = _in_words(written[j])
            rows.append(row)
    return rows


def _hint(of: Any) -> str:
    parts: Iterable[Any] = of if isinstance(of, Sequence) and not isinstance(of, str) else _list(of) or [of]
    return " · ".join(text for part in parts if (text := _in_words(part)))


def _list(values: Any) -> list[Any]:
    if values is None or isinstance(values, str | int | float):
        return []
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _in_words(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else _plain(str(value))


def _plain(text: str) -> str:
    """Return a chart's text without its markup and unescaped."""
    return unescape(_MARK.sub("", _BREAK.sub(" · ", text).removeprefix(" · ")))
