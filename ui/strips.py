"""What was kept of each passage, strip by strip, and what was dropped."""

from __future__ import annotations

from markupsafe import Markup

from core.charts.look import milliseconds
from core.reading import Kept, Stripping, strippings
from core.types import RouteResult, Run
from ui.markup import EMPTY, cut, tag

LONG = 400  # characters of a strip that are shown


def strips(run: Run) -> Markup:
    """Every step of the run that kept parts of passages; nothing at all if there is none."""
    blocks = [_block(run, result, step) for result in run.results for step in strippings(result)]
    return tag("div", *blocks, css="rs") if blocks else EMPTY


def _block(run: Run, result: RouteResult, step: Stripping) -> Markup:
    facts = f"  {step.span.name} · {milliseconds(step.span.ms)}"
    floor = step.span.inputs.get("floor")
    rule = f", those from {floor:g} on and each passage's best" if isinstance(floor, int | float) else ""
    head = tag("tr", tag("th", "Strip"), tag("th", "Score", css="num"), tag("th", ""))
    rows = [
        row
        for id, some in step.strips.items()
        for row in (_passage(run, id, some), *(_strip(strip) for strip in some))
    ]
    return tag(
        "div",
        tag("h4", result.title, tag("span", facts, css="dim")),
        tag("div", tag("b", f"kept: {step.kept} of {step.count} strips"), tag("span", rule, css="dim")),
        tag("table", tag("thead", head), tag("tbody", *rows), css="rs-table"),
        css="rs-block",
    )


def _passage(run: Run, id: str, some: tuple[Kept, ...]) -> Markup:
    passage = run.passages.get(id)
    title = cut(passage.title or passage.doc_id, 90) if passage else cut(id, 90)
    kept = f"{sum(strip.kept for strip in some)} of {len(some)}"
    return tag("tr", tag("td", tag("b", title), dir="auto"), tag("td", ""), tag("td", kept, css="dim"))


def _strip(strip: Kept) -> Markup:
    return tag(
        "tr",
        tag("td", cut(strip.text, LONG), css="" if strip.kept else "dim", dir="auto"),
        tag("td", "–" if strip.score is None else f"{strip.score:.2f}", css="num"),
        tag("td", "kept" if strip.kept else "dropped", css="" if strip.kept else "dim"),
    )
