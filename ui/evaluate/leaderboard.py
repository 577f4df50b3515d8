"""The leaderboard: which route leads, in a sentence and a figure, then every route with its figures."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.analysis.metrics import HEADLINE, KNOWN, titled
from core.analysis.token_usage import Totals, price, prices_in
from core.domain.format import between, number
from core.evaluation import leaderboard, text
from core.evaluation import verdict as verdicts
from core.evaluation.comparison import differences, pair
from core.evaluation.release.gate import Decision
from core.evaluation.release.measured import of_figures
from core.evaluation.verdict import Verdict
from ui.app import say
from ui.app.choice import choice
from ui.app.glossary import of_metric
from ui.app.markup import show
from ui.app.plot import pick_point, plot
from ui.app.routes import title
from ui.charts.intervals import BEHIND, LEADS, OPEN, OUT, IntervalRow, intervals
from ui.charts.tradeoff import tradeoff
from ui.components import settle, tables
from ui.components.cost import HOW
from ui.evaluate import questions
from ui.evaluate.tradeoffs import COSTS, TIMES, points, worth
from ui.evaluate.view import Look, decided, sentences, values

TAB = "evaluate_tab"
COST, MEANS, UNJUDGED = "evaluate_cost", "means", "unjudged@10"

QUALITY, ANSWERED, QUERIED = (
    [one.name for one in KNOWN.values() if one.column and one.kind == kind]
    for kind in ("ranking", "answer", "rows")
)


def draw(look: Look) -> None:
    """Draw who leads, the figure, the table, and what the figures can show."""
    decision = decided(look)
    said = verdicts.leader(decision.verdict, title, titled(look.metric))
    show(sentences([said]))
    with st.container():
        _figure(look, decision.verdict, said)
    with st.container():
        settle.button(look.evaluation, decision.verdict.open_pair, "evaluate_settle")
    _table(look)
    with st.expander("What these figures can and cannot show"):
        _reading(look, decision)


def _figure(look: Look, verdict: Verdict, said: str) -> None:
    """Draw the means with their intervals, or against a time or cost if that is wanted."""
    found = {cost: known for cost in COSTS if (known := points(look, cost)) is not None}
    named = {MEANS: "Means", **{cost: COSTS[cost] for cost in found}}
    cost = choice("cost", COST, "Figure", named, segmented=True, label_visibility="collapsed")
    name = titled(look.metric)
    if cost != MEANS:
        said = " ".join(worth(found[cost], look, cost))
        titles, time = {route: title(route) for route in look.evaluation.routes}, cost in TIMES
        at = found[cost]
        figure = tradeoff(at, titles, look.baseline, metric=name, cost=COSTS[cost], time=time)
        plot(figure, "evaluate_front", said, table=False)
        say.caption(said)
        return
    best = verdict.best_so_far
    base = leaderboard.value(look.figures["routes"][look.baseline], look.metric)
    lines = {f"leads: {title(best.route)}": best.mean} if best else {}
    if base is not None and (best is None or best.route != look.baseline):
        lines[f"baseline: {title(look.baseline)}"] = base
    figure = intervals(_standing(look, verdict), name, lines)
    pick_point(figure, f"evaluate_means:{look.evaluation.name}:{look.metric}", said, _open)


def _standing(look: Look, verdict: Verdict) -> list[IntervalRow]:
    """Return each route's mean, best first, on the interval of its difference from the leading route."""
    best, by, found = verdict.best_so_far, values(look), []
    corrected = of_figures(look.figures, look.evaluation.name).corrected(look.metric)
    for route in leaderboard.distinct(look.figures, look.metric):
        mean = leaderboard.value(look.figures["routes"][route], look.metric)
        if mean is None:
            continue
        ends, hint = None, f"{title(route)}: {number(mean)}"
        kind = BEHIND if route in verdict.behind else OUT if route in verdict.excluded else OPEN
        if best is not None and route == best.route:
            kind = LEADS
        elif best is not None:
            one = corrected.get((best.route, route))
            known = pair(best.route, route, differences(by, best.route, route, look.metric))
            if one is not None:
                known, mean = one.difference, best.mean - one.mean
            if known is not None:
                ends = mean - (known.high - known.delta), mean + (known.delta - known.low)
                hint += f". {verdicts.compared(known, title)}"
        found.append(IntervalRow(route, title(route), mean, ends, kind, hint))
    return found


def _open(route: str) -> None:
    """Show the questions of a route."""
    st.session_state[questions.ONE] = route
    st.session_state[TAB] = "Questions"


def _reading(look: Look, decision: Decision) -> None:
    found = look.figures
    document = {"metric": look.metric, **decision.verdict.document()}
    show(sentences(text.found({**found, "decision": document}, title, [look.metric])))
    notes = text.counted(found, title, len(look.evaluation.questions))
    notes += [f"{line}." for line in (*found.get("reading", ()), *found["warnings"])]
    name, measure = titled(look.metric), found["measures"].get(look.metric)
    by = f"{name} ({measure} of ir_measures)" if measure not in (None, name) else name
    if "queries_judged_by" in found:
        notes.append(f"{found['queries_judged_by']}.")
    notes.append(
        f"Sorted by {by}. Intervals in the figure: of the difference from the leader. Verdicts are corrected "
        "for all pairs. Unjudged passages count as not relevant: a route with many may be better than shown."
    )
    if judge := found.get("judge"):
        notes.append(
            f"{_ranged(look.metric)}: from every unjudged passage as not relevant to as judged. All "
            f"other figures are by people's labels alone. {text.judge_said(judge)} "
            f"{text.order_said(judge, look.metric, title)}"
        )
    say.caption(" ".join(notes))


def _ranged(metric: str) -> str:
    """Return the heading of the column of ranges."""
    return f"{titled(metric)}, range with judge"


def _rows(look: Look) -> list[dict[str, Any]]:
    """Return a row for each route, best first, the chosen metric first; None stands for missing figures."""
    table, judge = look.figures["routes"], look.figures.get("judge")
    unjudged = look.figures.get("unjudged", {}).get(look.metric, UNJUDGED)
    equal: dict[str, list[str]] = {}
    for route, row in table.items():
        if "same_as" in row:
            equal.setdefault(row["same_as"], []).append(title(route))
    made = []
    for route in leaderboard.distinct(look.figures, look.metric):
        row = table[route]
        tokens = Totals(prompt=row["prompt_tokens"], completion=row["completion_tokens"])
        cost = price(tokens, *prices_in(row))
        seen = max(1, sum(row["statuses"].values()))
        known = {name: row.get(name) for name in QUALITY} | (row.get("answers") or {})
        known |= {name: value for name, value in row.get("extra", {}).items() if name in QUERIED}
        named = {titled(name): known[name] for name in (*QUALITY, *ANSWERED, *QUERIED) if name in known}
        first = titled(look.metric)
        ranged = {}
        if judge and look.metric in judge["orders"]:
            ends = text.ends_of(judge, route, look.metric)
            ranged[_ranged(look.metric)] = "" if ends is None else f"{ends[0]:.3f} to {ends[1]:.3f}"
        if look.metric == HEADLINE and (look.figures.get("corrected") or {}).get("pairs"):
            one = row["corrected"]
            interval = between(*one["ci95"])
            ranged[f"{first}, corrected"] = f"{number(one['mean'])} [{interval}]: {one['equal_to']} labels"
        made.append(
            {
                "Route": " = ".join([title(route), *equal.get(route, ())])
                + (" (baseline)" if route == look.baseline else ""),
                **({first: named.pop(first)} if first in named else {}),
                **ranged,
                **named,
                unjudged: row[unjudged],
                "p50 ms": row["p50_ms"],
                "p95 ms": row["p95_ms"],
                "tokens a question": tokens.tokens / seen,
                "cost of 1,000": None if cost is None else 1000 * cost / seen,
                "scored": row["n"],
                "not scored": row.get("not_scored", look.figures["unlabelled"]),
                "failed": row["failed"],
            }
        )
    return made


def _table(look: Look) -> None:
    made = _rows(look)
    may = ("cost of 1,000", "tokens a question", titled("vital_recall"), titled("nugget_score"))
    empty = [name for name in may if all(not row.get(name) for row in made)]
    tables.table(
        [{name: value for name, value in row.items() if name not in empty} for row in made],
        "leaderboard",
        f"Routes by {titled(look.metric)}",
        height="content",
        columns={
            **{titled(name): {"help": of_metric(name)} for name in (*QUALITY, *ANSWERED, *QUERIED)},
            look.figures.get("unjudged", {}).get(look.metric, UNJUDGED): {"help": of_metric(UNJUDGED)},
            _ranged(look.metric): {"help": "LLM judge"},
        },
        pinned="Route",
    )
    if "cost of 1,000" in empty and "tokens a question" not in empty:
        say.caption(f"No prices are set: {HOW}.")
