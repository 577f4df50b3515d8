"""The times of one run: the waterfall of its routes, a table, and one route with all its calls."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from core.analysis import external, token_usage
from core.analysis.critical_path import Path, critical, ended, on_path, timed
from core.analysis.remarks import command, prepared_by
from core.analysis.run_view import reuse, source, worked
from core.analysis.timeline import ALONE, lead, path_in_words
from core.domain.format import brief, milliseconds
from core.domain.types import RouteResult, Run, Span
from ui.app import address
from ui.app.help_mark import mark, marked
from ui.app.markup import EMPTY, cut, join, show, table_of, tag
from ui.app.plot import plot
from ui.charts.style import KINDS
from ui.charts.waterfall import waterfall, without_model, zooms
from ui.components.grid import STATUS
from ui.latency.parts import STEP_OPTIONS, meter, sentences, switch

SPANS = 400  # that are listed of one route
ROUTE = "latency_route"


def draw(run: Run) -> None:
    """Draw the findings, the waterfall, the table of times, and one route in full."""
    if not any(result.spans for result in run.results):
        none = "No route of this run recorded a step. See Compare for the reason."
        waiting = "No route of this run has ended yet."
        show(tag("div", waiting if run.status == "running" else none, css="rs dim"))
        return
    said = lead(run) or ["No route of this run succeeded. The chart shows each one up to where it ended."]
    said = [*said, token_usage.in_words(token_usage.prompt_cache(run)), *_embedded(run)]
    show(sentences(said))
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        only = switch("Steps", *STEP_OPTIONS) == "retrieval"
        calls = switch("Inside steps", "calls", {"no": "Hidden", "yes": "Shown below"})
        until = _zoom(run)
    if only and (retrieval := without_model(run)):
        said = [*said, retrieval]
        show(tag("div", retrieval, css="rs"))
    figure = waterfall(run, retrieval_only=only, calls=calls == "yes", until=until)
    plot(figure, "waterfall", " ".join(said))
    what = (
        "Gaps left by the language model's steps are closed."
        if only
        else "The number in a bar is the share of the route's time."
    )
    theirs = ""
    if any(external.call(result) is not None for result in run.results):
        theirs = (
            "A call of your own pipeline is measured from outside; its stages are as long as it reported, and"
            " drawn one after another. "
        )
    legend = f"A bar starts when the step started. {what} {theirs}{ALONE}"
    show(tag("div", tag("div", legend, css="dim rs-latency-note"), css="rs"))
    _one_route(run)
    show(times(run))


def _embedded(run: Run) -> list[str]:
    """Describe what routes embedded during the query, with the command that precomputes it."""
    needs = {result.title: made for result in run.results if (made := prepared_by(result.spans))}
    if not needs:
        return []
    every = dict.fromkeys(need for made in needs.values() for need in made)
    return [
        f"{', '.join(needs)} embedded passages while the question waited, which is part of their time. To"
        f" prepare: {command(every, run.corpus)}"
    ]


def times(run: Run) -> Markup:
    """Return a row for each route in the waterfall's order.

    It has the time alone and in this run, the reused part, and the longest step.
    """
    rows = [_row(run, result) for result in sorted(run.results, key=_order)]
    heads = ["Alone", "In this run", "Shared", "Cached", "Recorded"]
    head = tag(
        "tr", tag("th", "Route"), *(tag("th", text, css="num") for text in heads), tag("th", "Longest step")
    )
    wall = tag(
        "div",
        "In this run: from the start to the end of the route, including time waiting for other routes' steps"
        " and loading models. Shared, cached, recorded: the part of the time alone that this route did not"
        " spend in this run.",
        css="dim",
    )
    table = table_of(head, rows)
    return tag("div", table, wall, css="rs rs-block rs-latency-times")


def _row(run: Run, result: RouteResult) -> Markup:
    name: list[object] = [result.title]
    if external.call(result) is not None:
        name.append(tag("span", external.OUTSIDE, css="chip"))
    if result.status != "ok":
        name.append(tag("span", STATUS.get(result.status, result.status), css="chip bad"))
    if not result.spans:
        reason = tag("td", cut(result.error or "no steps", 160), css="dim", colspan="6", dir="auto")
        return tag("tr", tag("td", join(name, " ")), reason)
    used, path = reuse(run, result), critical(result)
    numbers = [path.total, result.wall_ms, used.shared_ms, used.cached_ms, used.recorded_ms]
    return tag(
        "tr",
        tag("td", join(name, " ")),
        *(tag("td", milliseconds(ms) if ms else "–", css="num") for ms in numbers),
        tag("td", *_longest(path), dir="auto"),
    )


def _longest(path: Path) -> tuple[object, ...]:
    if path.longest is None:
        return ("–",)
    dot = tag("i", css="rs-latency-dot", style=f"background:{KINDS[path.longest.kind][1]}")
    return dot, cut(path.longest.name, 60), tag("span", f" {brief(path.share(path.longest.id))}", css="dim")


def _order(result: RouteResult) -> tuple[bool, bool, float]:
    return result.status != "ok", not result.spans, ended(result)


def _zoom(run: Run) -> float | None:
    """Draw the choice of a zoom and return it in ms; None shows the full time."""
    offered = {"": "Full time"} | {f"{ms:g}": f"The first {milliseconds(ms)}" for ms in zooms(run)}
    address.take("zoom", "latency_zoom", address.one_of(list(offered)))
    if st.session_state.get("latency_zoom") not in offered:
        st.session_state["latency_zoom"] = ""
    chosen = st.selectbox(
        "Zoom",
        list(offered),
        format_func=offered.__getitem__,
        key="latency_zoom",
        width=170,
        help="You can also drag over the chart to zoom; double-click to reset",
    )
    address.keep("zoom", chosen)
    return float(chosen) if chosen else None


def _one_route(run: Run) -> None:
    titles = {result.route: result.title for result in run.results if result.spans}
    slowest = max(worked(run) or [r for r in run.results if r.spans], key=ended)
    address.take("route", ROUTE, address.one_of(list(titles)))
    if st.session_state.get(ROUTE) not in titles:
        st.session_state[ROUTE] = slowest.route
    chosen = st.selectbox(
        "Route in detail",
        list(titles),
        format_func=lambda route: cut(titles[route], 60),
        key=ROUTE,
        width=320,
        persist_state="session",
    )
    address.keep("route", None if chosen == slowest.route else chosen)
    show(spans(next(result for result in run.results if result.route == chosen and result.spans)))


def spans(result: RouteResult) -> Markup:
    """Return every span below its parent, with its start, duration and origin."""
    within, path, end = on_path(result), critical(result), ended(result) or 1.0
    depth: dict[int | None, int] = {None: -1}
    for span in result.spans:
        depth[span.id] = depth.get(span.parent, -1) + 1
    drawable = {span.id for span in timed(result.spans)}
    listed = result.spans[:SPANS]
    rows = [
        _span(
            result,
            span,
            depth[span.id],
            end,
            drawn=span.id in drawable,
            on=span.id in within,
            slack=path.slack.get(span.id),
        )
        for span in listed
    ]
    heads = [tag("th", marked("Step", "span")), tag("th", "", css="wide")]
    heads += [tag("th", text, css="num") for text in ("From", "Took")]
    heads.append(tag("th", "Kind and origin"))
    table = table_of(tag("tr", *heads), rows)
    gap = f"{milliseconds(path.gap)} of the route's time passed between its steps."
    more = f" The first {SPANS} of {len(result.spans)} spans." if len(result.spans) > SPANS else ""
    key = "● on the critical path: if the step took longer, so would the route. ○ off the critical path."
    return tag(
        "div",
        tag("p", path_in_words(result), f" {gap}", dir="auto"),
        table,
        tag("div", f"{key}{more} ", mark("critical path"), css="dim"),
        css="rs rs-block rs-latency-route",
    )


def _span(
    result: RouteResult, span: Span, depth: int, end: float, *, drawn: bool, on: bool, slack: float | None
) -> Markup:
    kind, colour = KINDS[span.kind]
    facts = [kind]
    if span.shared_with:
        facts.append(f"work done by {cut(span.shared_with, 60)}")
    if came_from := source(result, span):
        facts.append("from a recording" if came_from == "recording" else "from the cache")
    if slack is not None:
        facts.append(f"{milliseconds(slack)} slack")
    low, high = (span.start_ms / end, (span.start_ms + span.ms) / end) if drawn else (0.0, 0.0)
    mark = tag(
        "span", "● " if on else "○ ", css="up" if on else "dim", title="on the critical path" if on else ""
    )
    return tag(
        "tr",
        tag("td", mark, cut(span.name, 90), dir="auto", style=f"padding-left:{1.1 * min(depth, 8):.1f}rem"),
        tag("td", meter(low, high, colour, "" if on else "off")),
        tag("td", milliseconds(span.start_ms), css="num dim"),
        tag("td", milliseconds(span.ms), css="num"),
        tag(
            "td",
            " · ".join(facts),
            tag("div", cut(span.error, 300), css="bad", dir="auto") if span.error else EMPTY,
            css="dim",
        ),
    )
