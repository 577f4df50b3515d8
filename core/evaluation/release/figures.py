"""Whether a document is the figures of an evaluation, as far as a decision is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from core.analysis.metrics import METRICS
from core.domain.errors import BadInput

_COUNTS = ("llm_calls", "prompt_tokens", "completion_tokens", "failed")
_OTHERS = ("n", "ci95", "vs_baseline", "counts")  # of a block, besides its means


def check(figures: Any, name: str) -> None:
    """BadInput unless `figures` could have been written by `eval`; `name` is for the message."""
    try:
        good = _figures(figures)
    except (KeyError, TypeError, AttributeError):
        good = False
    if not good:
        raise BadInput(f"{name} is not an evaluation's metrics.json; give the file that `eval` wrote")


def number(value: Any) -> bool:
    """Whether it is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _figures(figures: Mapping[str, Any]) -> bool:
    rows, by_mode = figures["routes"], figures["by_mode"]
    return (
        bool(rows)
        and figures["baseline"] in rows
        and _count(figures["queries"])
        and (figures.get("sample") is None or {"of", "seed"} <= set(figures["sample"]))
        and all(map(_row, rows.values()))
        and all(_block(block, block) for by_route in by_mode.values() for block in by_route.values())
    )


def _row(row: Mapping[str, Any]) -> bool:
    answers, extra = row.get("answers", {}), row.get("extra", {})
    return (
        all(_count(row[key]) for key in _COUNTS)
        and all(row[key] is None or number(row[key]) for key in ("p50_ms", "p95_ms"))
        and _block(row, METRICS)
        and all(_block(block, [key for key in block if key not in _OTHERS]) for block in (answers, extra))
    )


def _block(block: Mapping[str, Any], means: Any) -> bool:
    """Means with their number, intervals and differences from the baseline; an empty one is fine."""
    return (
        all(block.get(key) is None or number(block[key]) for key in means if key not in _OTHERS)
        and _count(block.get("n", 0))
        and all(map(_count, block.get("counts", {}).values()))
        and all(map(_ends, block.get("ci95", {}).values()))
        and all(map(_difference, block.get("vs_baseline", {}).values()))
    )


def _difference(told: Mapping[str, Any]) -> bool:
    known = all(number(told[key]) for key in ("delta", "p", "p_holm")) and _count(told["n"])
    return known and (told.get("sd") is None or number(told["sd"]))


def _ends(pair: Any) -> bool:
    return pair is None or (len(pair) == 2 and all(map(number, pair)))


def _count(value: Any) -> bool:
    return number(value) and value >= 0 and int(value) == value
