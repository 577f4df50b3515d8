"""The times of one run: the waterfall of its routes, a table, and one route with all its calls."""

from __future__ import annotations

from typing import Any

import streamlit as st
from markupsafe import Markup

from core.analysis import external, token_usage
from core.analysis.critical_path import critical, ended, on_path, timed
from core.analysis.remarks import prepared_by
from core.analysis.run_view import depths, reuse, source, worked
from core.analysis.timeline import ALONE, lead, path_in_words
from core.domain.format import brief, milliseconds
from core.domain.types import RouteResult, Run
from ui.app.choice import choice
from ui.app.help_mark import mark, marked
from ui.app.markup import cut, fragment, show, tag
from ui.app.plot import plot
from ui.charts import style
from ui.charts.style import KINDS, Figure
from ui.charts.waterfall import waterfall, without_model
from ui.components.grid import STATUS
from ui.latency.time_breakdown import STEP_OPTIONS, sentences, share_of, switch

SPANS = 400  # that are listed of one route
ROUTE = "latency_route"
DRAWN = "latency_drawn"  # the run whose waterfall was drawn last, and what was drawn


def draw(run: Run) -> None:
    """Draw the finding, the waterfall, the table of times, and one route in full."""
    if not any(result.spans for result in run.results):
        none = "No route of this run recorded a step. See Compare for the reason."
        waiting = "No route of this run has ended yet."
        show(tag("div", waiting if run.status == "running" else none, css="rs dim"))
        return
    said = lead(run) or ["No route of this run succeeded. The chart shows each one up to where it ended."]
    said = [*said, token_usage.prompt_cache(run)]
    waited = [result.title for result in run.results if prepared_by(result.spans)]
    if waited:
        said.append(
            f"{', '.join(waited)} embedded passages while the question waited. Prepare them on Corpus."
        )
    if any(external.call(result) is not None for result in run.results):
        said.append(
            "A call of your own pipeline is measured from outside; its stages are as long as it reported, and"
            " drawn one after another."
        )
    show(sentences([*said, ALONE]))
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        only = switch("Steps", *STEP_OPTIONS) == "retrieval"
        calls = switch("Inside steps", "calls", {"no": "Hidden", "yes": "Shown below"})
    if only and (retrieval := without_model(run)):
        show(tag("div", retrieval, css="rs"))
    given = {"retrieval_only": only, "calls": calls == "yes"}
    known = tuple((one.route, one.status, one.wall_ms, len(one.spans)) for one in run.results)
    figure = _figure((run.id, run.created, known, style.is_dark()), run, **given)
    st.session_state[DRAWN] = run.id, [*said, ALONE], figure, "waterfall", " ".join(said)
    plot(figure, "waterfall", " ".join(said))
    show(times(run))
    titles = {result.route: cut(result.title, 60) for result in run.results if result.spans}
    slowest = max(worked(run) or [r for r in run.results if r.spans], key=ended)
    chosen = choice("route", ROUTE, "Route in detail", titles, usual=slowest.route, width=320)
    show(spans(next(result for result in run.results if result.route == chosen and result.spans)))


def behind(run: Run) -> None:
    """Draw the last waterfall again, at its place in a closed tab, so that the browser keeps it."""
    of, said, *drawn = st.session_state.get(DRAWN, ("", []))
    if of == run.id:
        show(sentences(said))
        st.container()
        plot(*drawn, table=False)


@st.cache_resource(max_entries=16, show_spinner=False)
def _figure(known: tuple[Any, ...], _run: Run, **given: Any) -> Figure:  # noqa: ARG001 - the cache key
    return waterfall(_run, **given)


def times(run: Run) -> Markup:
    """Return a row for each route in the waterfall's order.

    It has the time alone and in this run, the reused part, and the longest step.
    """
    rows = []
    for one in sorted(run.results, key=lambda one: (one.status != "ok", not one.spans, ended(one))):
        status = "" if one.status == "ok" else STATUS.get(one.status, one.status)
        path = critical(one)
        colour, share = "", ""
        if path.longest is not None:
            colour, share = KINDS[path.longest.kind][1], brief(path.share(path.longest.id))
        used = reuse(run, one) if one.spans else None
        rows.append((one, external.call(one) is not None, status, used, path, colour, share))
    return fragment("latency.times", rows, external.OUTSIDE)


def spans(result: RouteResult) -> Markup:
    """Return every span below its parent, with its start, duration and origin."""
    within, path, end = on_path(result), critical(result), ended(result) or 1.0
    depth, drawable = depths(result.spans), {span.id for span in timed(result.spans)}
    rows = []
    for span in result.spans[:SPANS]:
        kind, colour = KINDS[span.kind]
        facts = [kind]
        if span.shared_with:
            facts.append(f"work done by {cut(span.shared_with, 60)}")
        if came_from := source(result, span):
            facts.append("from a recording" if came_from == "recording" else "from the cache")
        if (slack := path.slack.get(span.id)) is not None:
            facts.append(f"{milliseconds(slack)} slack")
        on, ends = span.id in within, (0.0, 0.0)
        if span.id in drawable:
            ends = share_of(span.start_ms / end), share_of((span.start_ms + span.ms) / end)
        rows.append((span, depth[span.id], on, (*ends, colour, "" if on else "off"), facts))
    told = f"{path_in_words(result)} {milliseconds(path.gap)} of the route's time passed between its steps."
    step = marked("Step", "span")
    return fragment("latency.spans", told, step, rows, len(result.spans), mark("critical path"))
