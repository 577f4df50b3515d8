"""The whole trace of every route: each step with what went in and what came out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from core.analysis.run_view import describe, facts
from core.domain.format import milliseconds
from core.domain.types import RouteResult, Run, Span
from ui.app.markup import EMPTY, cut, join, table_of, tag
from ui.components.reasoning import thoughts

VALUE_CHARACTERS = 1500  # characters of a value that are shown


def steps(run: Run) -> Markup:
    """Return a folded table of steps for each route."""
    return tag("div", *(_route(result) for result in run.results), css="rs")


def _route(result: RouteResult) -> Markup:
    depth: dict[int | None, int] = {None: -1}
    for span in result.spans:
        depth[span.id] = depth.get(span.parent, 0) + 1
    rows = [_step(span, depth[span.id], result.spans) for span in result.spans]
    head = tag(
        "tr",
        *(tag("th", text) for text in ("Step", "Kind")),
        *(tag("th", t, css="num") for t in ("Start", "Duration")),
    )
    table = table_of(head, rows)
    steps_word = "step" if len(result.spans) == 1 else "steps"
    count = f"  {len(result.spans)} {steps_word} · {milliseconds(result.ms)}"
    summary = tag("summary", tag("b", result.title), tag("span", count, css="dim"))
    return tag(
        "details",
        summary,
        table if rows else tag("div", cut(result.error or "no steps", 300), css="dim"),
        css="rs-trace",
    )


def _step(span: Span, depth: int, spans: Sequence[Span]) -> Markup:
    marks = [span.cached or "", f"shared with {span.shared_with}" if span.shared_with else ""]
    if span.tokens:
        marks.append(f"{span.tokens.prompt} + {span.tokens.completion} tokens")
        if span.tokens.reasoning:
            marks.append(f"{span.tokens.reasoning} of them reasoning")
    if span.hits is not None:
        marks.append(f"{len(span.hits)} hits")
    parameters = [f"parameter {parameter} sets {name}" for name, parameter in span.set_by.items()]
    detail = [
        *(_value(f"{label}:", where) for label, where in (describe(link, spans) for link in span.links)),
        *(_value(name, value) for name, value in span.args.items()),
        *([_value("", ", ".join(parameters))] if parameters else []),
        *(_value(name, value) for name, value in span.attributes.items()),
        *(_value(f"→ {name}", value) for name, value in facts(span.output).items() if name != "reasoning"),
        thoughts([span]),
    ]
    body = tag(
        "details",
        tag("summary", span.name, " ", tag("span", " · ".join(filter(None, marks)), css="dim")),
        *detail,
    )
    error = tag("div", cut(span.error, 400), css="bad", dir="auto") if span.error else EMPTY
    return tag(
        "tr",
        tag("td", body, error, style=f"padding-left:{1.1 * depth:.1f}rem"),
        tag("td", span.kind.lower(), css="dim"),
        tag("td", milliseconds(span.start_ms), css="num dim"),
        tag("td", milliseconds(span.ms), css="num"),
    )


def _value(name: str, value: Any) -> Markup:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = (
        text
        if len(text) <= VALUE_CHARACTERS
        else f"{text[:VALUE_CHARACTERS]}… ({len(text):,} characters in total)"
    )
    return tag(
        "div", join([tag("span", f"{name} ", css="dim"), tag("span", shown, dir="auto")]), css="rs-quote"
    )
