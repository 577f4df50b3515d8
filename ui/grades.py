"""How passages were graded, with the thresholds and what was decided."""

from __future__ import annotations

from markupsafe import Markup

from core.charts.look import milliseconds
from core.reading import Grade, Grading, gradings
from core.types import RouteResult, Run
from ui.markup import EMPTY, cut, join, tag


def grades(run: Run) -> Markup:
    """Every grading of the run; says so if there is none."""
    blocks = [_block(run, result, grading) for result in run.results for grading in gradings(result)]
    if not blocks:
        return tag("div", "No route of this run graded what it found.", css="rs dim")
    return tag("div", *blocks, css="rs")


def _block(run: Run, result: RouteResult, grading: Grading) -> Markup:
    facts = f"  {grading.span.name} · {milliseconds(grading.span.ms)}"
    why = f"decided: {grading.decision}" if grading.decision else grading.span.error or "no decision"
    rule = f"thresholds: below {grading.low:.3g} doubted, from {grading.high:.3g} on trusted"
    head = tag("tr", tag("th", "Passage"), tag("th", "Grade", css="num"), tag("th", "0 to 1"), tag("th", ""))
    rows = [_row(run, grading, grade) for grade in grading.grades]
    return tag(
        "div",
        tag("h4", result.title, tag("span", facts, css="dim")),
        tag("div", tag("b", why), tag("span", f"  {rule}", css="dim")),
        tag("div", cut(grading.why, 300), css="dim", dir="auto") if grading.why else EMPTY,
        tag("table", tag("thead", head), tag("tbody", *rows), css="rs-table"),
        css="rs-block",
    )


def _row(run: Run, grading: Grading, grade: Grade) -> Markup:
    passage = run.passages.get(grade.id)
    title = cut(passage.title or passage.doc_id, 90) if passage else grade.id
    if grade.value is None:
        return tag(
            "tr",
            tag("td", title, dir="auto"),
            tag("td", "–", css="num"),
            tag("td", tag("span", grade.state or "not scored", css="bad")),
            tag("td", cut(grade.why, 160), css="dim"),
        )
    lines = [tag("b", style=f"left:{100 * _unit(edge):.1f}%") for edge in (grading.low, grading.high)]
    meter = tag("div", tag("i", style=f"width:{100 * _unit(grade.value):.1f}%"), join(lines), css="rs-meter")
    return tag(
        "tr",
        tag("td", title, dir="auto"),
        tag("td", f"{grade.value:.2f}", css="num"),
        tag("td", meter),
        tag("td", _word(grading, grade.value), css="dim"),
    )


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))


def _word(grading: Grading, value: float) -> str | Markup:
    if value >= grading.high:
        return "trusted"
    return "doubted" if value < grading.low else EMPTY
