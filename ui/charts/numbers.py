"""The numbers that a chart shows, as rows: for those who do not see it, or want to read them off."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import unescape
from typing import Any

from ui.charts.style import Figure

Row = dict[str, str]
Axis = tuple[str, Callable[[Any], str]]
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


def _axis(axis: Any, name: str) -> Axis:
    """Return an axis' name and how its values read: as ticks, if those are words and no places on a scale."""
    words = axis.ticktext is not None and axis.type != "log"
    ticks = dict(zip(_list(axis.tickvals), axis.ticktext, strict=False)) if words else {}
    return axis.title.text or name, lambda value: _in_words(ticks.get(value) or value)


def _points(trace: Any, x: Axis, y: Axis) -> list[Row]:
    begins = _list(trace.base) if trace.type == "bar" else []
    hints, rows = _list(trace.customdata), []
    for nth, (at, up) in enumerate(zip(_list(trace.x), _list(trace.y), strict=False)):
        if at is not None and up is not None:
            row = {"series": _in_words(trace.name), y[0]: y[1](up), x[0]: x[1](at)}
            row["from"] = _in_words(begins[nth]) if nth < len(begins) else ""
            row["details"] = _hint(hints[nth]) if nth < len(hints) else ""
            rows.append({name: text for name, text in row.items() if text})
    return rows


def _cells(trace: Any, x: Axis, y: Axis) -> list[Row]:
    texts, rows = _list(trace.text), []
    for i, (down, line) in enumerate(zip(_list(trace.y), _list(trace.z), strict=True)):
        written = _list(texts[i]) if i < len(texts) else []
        for j, (across, value) in enumerate(zip(_list(trace.x), _list(line), strict=True)):
            if value is not None and value == value:
                row = {y[0]: y[1](down), x[0]: x[1](across), "value": _in_words(value)}
                row["details"] = _in_words(written[j]) if j < len(written) else ""
                rows.append({name: text for name, text in row.items() if text})
    return rows


def _hint(of: Any) -> str:
    parts: Iterable[Any] = of if isinstance(of, Sequence) and not isinstance(of, str) else _list(of) or [of]
    return " · ".join(text for part in parts if (text := _in_words(part)))


def _list(values: Any) -> list[Any]:
    if values is None or isinstance(values, str | int | float):
        return []
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _in_words(value: Any) -> str:
    """Return a value as text, without the markup of charts."""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = "" if value is None else _BREAK.sub(" · ", str(value)).removeprefix(" · ")
    return unescape(_MARK.sub("", text))
