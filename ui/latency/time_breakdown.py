"""The time of a run by kind of step, then by step; shared work counts once. And parts of all views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from core.analysis.critical_path import TimeShare, by_kind, by_step
from core.analysis.timeline import label, spent_in_words
from core.domain.format import brief, milliseconds
from core.domain.types import Run
from ui.app.choice import choice
from ui.app.markup import fragment, join, show, tag
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
    return fragment("latency.sentences", first, others)


def switch(label: str, name: str, options: Mapping[str, str], help: str | None = None) -> str:
    """Draw a choice between `options` (value to label), kept in the address as `name`; return its value."""
    return choice(name, f"latency_{name}", label, options, segmented=True, help=help)


def share_of(value: float) -> float:
    """Return a share between 0 and 1."""
    return min(1.0, max(0.0, value))


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
        shares = ", ".join(f"{brief(one.total / total)} {label(one)}" for one in rest[:4])
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
    rows = []
    for one, name in zip(found, names, strict=True):
        colour = KINDS[one.kind][1] if one.kind else ""
        rows.append((name, one, share_of(one.total / most), colour, brief(one.total / total)))
    return fragment("latency.spent", title, rows, note)
