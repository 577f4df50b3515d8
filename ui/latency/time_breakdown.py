"""The time of a run by kind of step, then by step; shared work counts once."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from core.analysis.time_breakdown import TimeShare, by_kind, by_step
from core.analysis.timeline import label, percent, spent_in_words
from core.domain.format import brief, milliseconds
from core.domain.types import Run
from ui.app.markup import cut, join, show, table_of, tag
from ui.charts.style import KINDS
from ui.latency.parts import STEP_OPTIONS, meter, sentences, switch

STEPS = 25  # that are listed


def draw(run: Run) -> None:
    """Draw the finding and two tables."""
    only = switch("Steps", *STEP_OPTIONS) == "retrieval"
    everything, steps = by_kind(run), by_step(run)
    if not steps:
        show(tag("div", "No route of this run has a timed step.", css="rs dim"))
        return
    said = [
        spent_in_words(everything),
        "A step's time excludes the calls inside it. Work that several routes share counts once, in the route"
        " that executed it. Steps that ran in parallel count in full.",
    ]
    rest = [one for one in everything if one.kind != "LLM"]
    kinds, steps = (rest, [one for one in steps if one.kind != "LLM"]) if only else (everything, steps)
    if len(rest) < len(everything) and rest:
        said.insert(1, f"Without the language model: {_shares(rest)}.")
    more = [f"The first {STEPS} of {len(steps)} steps."] if len(steps) > STEPS else []
    show(
        join(
            [
                sentences(said),
                _table("By kind of step", kinds, [label(one) for one in kinds]),
                _table("By step", steps[:STEPS], [one.name for one in steps[:STEPS]], more),
            ]
        )
    )


def _shares(found: Sequence[TimeShare]) -> str:
    total = sum(one.total for one in found) or 1.0
    return ", ".join(f"{percent(one.total / total)} {label(one)}" for one in found[:4])


def _table(title: str, found: Sequence[TimeShare], names: Sequence[str], notes: Sequence[str] = ()) -> Markup:
    total = sum(one.total for one in found) or 1.0
    most = max((one.total for one in found), default=1.0) or 1.0
    heads = [tag("th", title), tag("th", "", css="wide")]
    heads += [tag("th", text, css="num") for text in ("Share", "Spent now", "Cached or recorded", "Count")]
    rows = [
        tag(
            "tr",
            tag("td", cut(name, 80), dir="auto"),
            tag("td", meter(0, one.total / most, KINDS[one.kind][1] if one.kind else "")),
            tag("td", brief(one.total / total), css="num"),
            tag("td", _took(one.ms["now"]), css="num"),
            tag("td", _took(one.ms["cache"] + one.ms["recording"]), css="num dim"),
            tag("td", f"{one.count:,}", css="num dim"),
        )
        for one, name in zip(found, names, strict=True)
    ]
    table = table_of(tag("tr", *heads), rows, css="rs-latency-spent")
    return tag("div", table, *(tag("div", note, css="dim") for note in notes), css="rs rs-block")


def _took(ms: float) -> str:
    return milliseconds(ms) if ms else "–"
