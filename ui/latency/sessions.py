"""Times and tokens over the stored runs: percentiles by route and by step, model use by route."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st
from markupsafe import Markup

from core.analysis import timeline
from core.analysis.timeline import FROM, NEEDED, Latency, Usage
from core.analysis.token_usage import price
from core.domain.format import milliseconds
from core.domain.types import Run
from core.evaluation.finding import count
from core.store.search import Traces
from ui.app import account, say, state
from ui.app.markup import md, show, table, tag
from ui.app.plot import plot
from ui.charts.percentiles import ROWS_SHOWN, range_plot
from ui.components import tables
from ui.components.cost import costs, money
from ui.latency.time_breakdown import sentences, switch, took

ANSWERED = "Writing an answer takes far longer than searching"
TIMES = "Cached and recorded times were measured when the work was done, possibly on another machine"
NOW = "measured now"
Found = tuple[Traces, list[Latency], list[Latency], list[Usage]]


def draw(run: Run) -> None:
    """Draw latency percentiles over the stored runs, in sentences, as a chart and as a table."""
    wrote = any(result.answer for result in run.results)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        scope = _scope(run)
        by = switch("Per", "by", {"routes": "Route", "steps": "Step"})
        answers = {"no": "Without answer", "yes": "With answer"}
        if by == "routes":
            usual = dict(reversed(answers.items())) if wrote else answers
            answered = switch("Runs", "answers", usual, ANSWERED) == "yes"
        times = switch("Times", "times", {"now": "Measured now", "all": "With cached and recorded"}, TIMES)
    found = _found(None if scope == "all" else run.corpus)
    if found is None:
        return
    read, routes, steps, _ = found
    every = [one for one in routes if one.answered == answered] if by == "routes" else steps
    rows = [one for one in every if times == "all" or one.source == "now"]
    said = timeline.sessions_in_words(read, rows, len(every) - len(rows))
    if by == "routes":
        said.append(timeline.against(run, rows))
    show(sentences(said))
    if not rows:
        st.info("No measurement matches. Choose other times or runs.")
        return
    plot(range_plot(rows), "percentiles", " ".join(said), table=False)
    if len(rows) > ROWS_SHOWN:
        st.caption(f"The chart shows the {ROWS_SHOWN} slowest of {len(rows)}; the table shows all.")
    sources = [FROM[one.source].removeprefix(" · ") or NOW for one in rows]
    tables.table(
        [
            {
                "Name": one.title,
                **({"Time from": given} if set(sources) != {NOW} else {}),
                "n": one.n,
                **{f"p{p}": took(one.at[p]) for p in NEEDED},
                "Largest": milliseconds(one.largest),
            }
            for one, given in zip(rows, sources, strict=True)
        ],
        "latency_table",
        "Latency percentiles",
    )
    needed = ", ".join(f"p{p} {needed}" for p, needed in NEEDED.items() if needed > 1)
    say.caption(
        "Of routes and steps that ended well. A route's time is its time alone; a step counts in the route "
        f"that executed it. Minimum number of measurements for a percentile: {needed}."
    )


def tokens(run: Run) -> None:
    """Draw model use by route, in this run and on average over the stored runs."""
    found = _found(None if _scope(run) == "all" else run.corpus)
    asking = [one for one in found[3] if one.calls] if found is not None else []
    if found is not None and asking:
        most, quiet = asking[0], len(found[3]) - len(asking)
        said = [
            f"{most.title} uses the most: {most.prompt + most.completion:,.0f} tokens per run in "
            f"{most.calls:.1f} calls, averaged over {count(most.runs, 'runs')}.",
            f"{quiet} of {len(found[3])} routes never called a language model." if quiet else "",
            f"From {found[0].runs} of {found[0].of} runs. Each route counts as if it ran alone. Runs that "
            "write an answer use more.",
        ]
        show(sentences(said))
    show(tag("div", tag("h4", "In this run"), css="rs rs-block"))
    show(costs(run))
    show(tag("div", tag("h4", "Average over stored runs"), css="rs rs-block"))
    if asking:
        show(_mean(asking))
    elif found is not None:
        show(tag("div", "No route of these runs called a language model.", css="rs dim"))


def _scope(run: Run) -> str:
    named = run.corpus if len(run.corpus) <= 40 else f"{run.corpus[:39]}…"
    return switch("Runs on", "scope", {"corpus": md(named), "all": "All corpora"})


def _found(corpus: str | None) -> Found | None:
    """Return the latencies of stored runs, or None, with the reason on the page, if unreadable."""
    store = state.store()
    with say.errors():
        newest = store.sessions(limit=1, corpus=corpus)
        if newest:
            version = (f"{newest[0].id} {account.key()}", newest[0].status, store.count(corpus=corpus))
            return _read(str(store.path), corpus, version)
        st.info("No runs are stored for this corpus yet.")
    return None


@st.cache_data(max_entries=8, ttl=300, show_spinner="Reading the times of stored runs")
def _read(path: str, corpus: str | None, version: tuple[str, str, int]) -> Found:  # noqa: ARG001 - of the cache's key
    read = state.store().traces(corpus)
    runs = list(read.results.values())
    return replace(read, results={}), timeline.by_route(runs), timeline.by_step(runs), timeline.usage(runs)


def _mean(found: list[Usage]) -> Markup:
    settings = state.engine().settings
    prices = settings.llm_price_prompt, settings.llm_price_completion
    each = [f"{name} per run" for name in ("Calls", "Prompt tokens", "Completion tokens", "Reasoning tokens")]
    heads = ["Route", "Runs", "With answer", *each]
    if None not in prices:
        heads.append("Price per run, at today's prices")
    rows = []
    for one in found:
        cells = [one.title, f"{one.runs:,}", f"{one.answered:,}", f"{one.calls:.1f}"]
        cells += [f"{one.prompt:,.0f}", f"{one.completion:,.0f}", f"{one.sum.reasoning / one.runs:,.0f}"]
        if (cost := price(one.sum, *prices)) is not None:
            cells.append(money(cost / one.runs))
        rows.append(cells)
    return tag("div", table(heads, rows, numbers=range(1, len(heads))), css="rs")
