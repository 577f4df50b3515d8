"""What each route decided on its way, and why: the branches and loops in words."""

from __future__ import annotations

from markupsafe import Markup

from core.charts.look import milliseconds
from core.reading_answers import Decision, decisions, warned
from core.types import RouteResult, Run
from ui.markup import join, tag


def path(run: Run) -> Markup:
    """The decisions of every route in order; says so if none decided anything."""
    blocks = [
        _block(result, decisions(result)) for result in run.results if decisions(result) or warned(result)
    ]
    if not blocks:
        return tag(
            "div", "No route of this run had anything to decide: none branches or loops.", css="rs dim"
        )
    return tag("div", *blocks, css="rs")


def _block(result: RouteResult, found: list[Decision]) -> Markup:
    rows = [
        tag(
            "tr",
            tag("td", number, css="num dim"),
            tag("td", one.span.name),
            tag("td", tag("span", one.decision, css="chip accent")),
            tag("td", one.why, dir="auto"),
            tag("td", milliseconds(one.span.ms), css="num dim"),
        )
        for number, one in enumerate(found, 1)
    ]
    heads = [tag("th", name) for name in ("", "Step", "Decided", "Why")]
    warnings = [
        tag(
            "div",
            f"{span.name}: passage {number} is worded like an instruction ({', '.join(what)})",
            css="bad",
        )
        for span, by in warned(result)
        for number, what in by.items()
    ]
    return tag(
        "div",
        tag("h4", result.title),
        *warnings,
        tag(
            "table",
            tag("thead", tag("tr", *heads, tag("th", "Time", css="num"))),
            tag("tbody", join(rows)),
            css="rs-table",
        ),
        css="rs-block",
    )
