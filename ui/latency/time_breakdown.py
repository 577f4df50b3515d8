"""The time of a run by kind of step, then by step; shared work counts once. And parts of all views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from core.analysis.critical_path import TimeShare, by_kind, by_step
from core.analysis.timeline import label, percent, spent_in_words
from core.domain.format import brief, milliseconds
from core.domain.types import Run
from ui.app.choice import choice
from ui.app.markup import EMPTY, cut, join, show, table, tag
from ui.charts.style import KINDS

STEPS = 25  # that are listed
STEP_OPTIONS = (
    "show",
    {"all": "All", "retrieval": "Retrieval only"},
    "Leaves out the language model's steps, which dwarf the searches",
)


def sentences(said: Sequence[str]) -> Markup:
    """Return the findings: the first one stands out, the others open by a click."""
    first, *others = [one for one in said if one] or [""]
    if not first:
        return EMPTY
    lines = tag("ul", *(tag("li", one, dir="auto") for one in others))
    more = tag("details", tag("summary", "More about these times"), lines) if others else EMPTY
    return tag("div", tag("p", tag("b", first), dir="auto"), more, css="rs rs-latency-words")


def switch(label: str, name: str, options: Mapping[str, str], help: str | None = None) -> str:
    """Draw a choice between `options` (value to label), kept in the address as `name`; return its value."""
    return choice(
        name,
        f"latency_{name}",
        label,
        list(options),
        segmented=True,
        format_func=options.__getitem__,
        help=help,
    )


def meter(low: float, high: float, colour: str = "", css: str = "") -> Markup:
    """Return a bar from `low` to `high`, as shares of its width."""
    left, width = 100 * min(1.0, max(0.0, low)), 100 * min(1.0, max(0.0, high - low))
    style = f"left:{left:.2f}%;width:{width:.2f}%" + (f";background:{colour}" if colour else "")
    return tag("div", tag("i", style=style, css=css), css="rs-latency-bar")


def took(ms: float | None) -> str:
    """Return a duration, or a dash for none."""
    return milliseconds(ms) if ms else "–"


def draw(run: Run) -> None:
    """Draw the finding and two tables."""
    everything, steps = by_kind(run), by_step(run)
    if not steps:
        show(tag("div", "No route of this run has a timed step.", css="rs dim"))
        return
    said = [spent_in_words(everything)]
    rest = [one for one in everything if one.kind != "LLM"]
    if len(rest) < len(everything) and rest:
        total = sum(one.total for one in rest) or 1.0
        shares = ", ".join(f"{percent(one.total / total)} {label(one)}" for one in rest[:4])
        said.append(f"Without the language model: {shares}.")
    said.append(
        "A step's time excludes the calls inside it. Work that several routes share counts once, in the "
        "route that executed it. Steps that ran in parallel count in full."
    )
    show(sentences(said))
    kinds = everything
    if switch("Steps", *STEP_OPTIONS) == "retrieval":
        kinds, steps = rest, [one for one in steps if one.kind != "LLM"]
    note = f"The first {STEPS} of {len(steps)} steps." if len(steps) > STEPS else ""
    by_name = _table("By step", steps[:STEPS], [one.name for one in steps[:STEPS]], note)
    show(join([_table("By kind of step", kinds, [label(one) for one in kinds]), by_name]))


def _table(title: str, found: Sequence[TimeShare], names: Sequence[str], note: str = "") -> Markup:
    total = sum(one.total for one in found) or 1.0
    most = max((one.total for one in found), default=1.0) or 1.0
    rows = [
        (
            cut(name, 80),
            meter(0, one.total / most, KINDS[one.kind][1] if one.kind else ""),
            brief(one.total / total),
            took(one.ms["now"]),
            (took(one.ms["cache"] + one.ms["recording"]), "dim"),
            (f"{one.count:,}", "dim"),
        )
        for one, name in zip(found, names, strict=True)
    ]
    heads = (title, ("", "wide"), "Share", "Spent now", "Cached or recorded", "Count")
    drawn = table(heads, rows, numbers=range(2, 6), css="rs-latency-spent")
    return tag("div", drawn, tag("div", note, css="dim") if note else EMPTY, css="rs rs-block")
