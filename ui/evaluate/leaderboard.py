"""The leaderboard: which route leads, in a sentence and a figure, then every route with its figures."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.analysis.metrics import KNOWN, titled
from core.analysis.token_usage import Totals, price, prices_in
from core.domain.format import number
from core.evaluation import judged_ranges as ranges
from core.evaluation import leaderboard, text, verdict_text
from core.evaluation.comparison import differences
from core.evaluation.pairs import pair
from core.evaluation.release.gate import Decision
from core.evaluation.verdict import Verdict
from ui.app import help_mark
from ui.app.choice import choice
from ui.app.help_mark import term
from ui.app.markup import md, show
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
COST, MEANS = "evaluate_cost", "means"

QUALITY, ANSWERED, QUERIED = (
    [one.name for one in KNOWN.values() if one.column and one.kind == kind]
    for kind in ("ranking", "answer", "rows")
)


def draw(look: Look) -> None:
    """Draw who leads, the figure, the table, and what the figures can show."""
    decision = decided(look)
    said = verdict_text.leader(decision.verdict, title, titled(look.metric))
    show(sentences([said]))
    _figure(look, decision.verdict, said)
    settle.button(look.evaluation, decision.verdict.open_pair, "evaluate_settle")
    _table(look)
    with st.expander("What these figures can and cannot show"):
        _reading(look, decision)


def _figure(look: Look, verdict: Verdict, said: str) -> None:
    """Draw the means with their intervals, or against a time or cost if that is wanted."""
    found = {cost: known for cost in COSTS if (known := points(look, cost)) is not None}
    cost = choice(
        "cost",
        COST,
        "Figure",
        [MEANS, *found],
        segmented=True,
        format_func=lambda name: "Means" if name == MEANS else COSTS[name],
        label_visibility="collapsed",
    )
    if cost != MEANS:
        said = " ".join(worth(found[cost], look, cost))
        names = {route: title(route) for route in look.evaluation.routes}
        figure = tradeoff(
            found[cost],
            names,
            look.baseline,
            metric=titled(look.metric),
            cost=COSTS[cost],
            time=cost in TIMES,
        )
        plot(figure, "evaluate_front", said, table=False)
        st.caption(md(said))
        return
    best = verdict.best_so_far
    base = leaderboard.value(look.figures["routes"][look.baseline], look.metric)
    lines = {f"leads: {title(best.route)}": best.mean} if best else {}
    if base is not None and (best is None or best.route != look.baseline):
        lines[f"baseline: {title(look.baseline)}"] = base
    figure = intervals(_standing(look, verdict), titled(look.metric), lines)
    pick_point(figure, f"evaluate_means:{look.evaluation.name}:{look.metric}", said, _open)


def _standing(look: Look, verdict: Verdict) -> list[IntervalRow]:
    """Return each route's mean, best first, on the interval of its difference from the leading route."""
    best, by, found = verdict.best_so_far, values(look), []
    for route in leaderboard.distinct(look.figures, look.metric):
        mean = leaderboard.value(look.figures["routes"][route], look.metric)
        if mean is None:
            continue
        ends, hint, known = None, f"{title(route)}: {number(mean)}", None
        if best is not None and route == best.route:
            kind = LEADS
        else:
            kind = BEHIND if route in verdict.behind else OUT if route in verdict.excluded else OPEN
            if best is not None:
                known = pair(best.route, route, differences(by, best.route, route, look.metric))
        if known is not None:
            ends = mean - (known.high - known.delta), mean + (known.delta - known.low)
            hint += f". {verdict_text.compared(known, title)}"
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
        f"Sorted by {by}. A route's interval in the figure is that of its difference from the leading "
        "route: one that reaches the leader's line cannot be told from it. Verdicts are corrected for all "
        "pairs. Times are for each route on its own, over all questions it completed. Unjudged: the share "
        "of a metric's passages without a label. They count as not relevant, so a route with many of them "
        "may be better than its score."
    )
    st.caption(md(" ".join(notes)))
    if judge := found.get("judge"):
        st.caption(
            md(
                f"{_ranged(look.metric)}: from every unjudged passage as not relevant to as judged. All "
                f"other figures are by people's labels alone. {ranges.said(judge)} "
                f"{ranges.order_said(judge, look.metric, title)}"
            )
        )


def rows(look: Look) -> list[dict[str, Any]]:
    """Return a row for each route, best first; None stands for missing figures."""
    table = look.figures["routes"]
    unjudged = look.figures.get("unjudged", {}).get(look.metric, "unjudged@10")
    equal: dict[str, list[str]] = {}
    for route, row in table.items():
        if "same_as" in row:
            equal.setdefault(row["same_as"], []).append(title(route))
    made = []
    for route in leaderboard.distinct(look.figures, look.metric):
        row = table[route]
        tokens = Totals(prompt=row["prompt_tokens"], completion=row["completion_tokens"])
        cost = price(tokens, *prices_in(row))
        answers = row.get("answers")
        seen = max(1, sum(row["statuses"].values()))
        made.append(
            {
                "Route": " = ".join([title(route), *equal.get(route, ())])
                + (" (baseline)" if route == look.baseline else ""),
                **{titled(name): row.get(name) for name in _order(look.metric)},
                **({titled(name): answers[name] for name in ANSWERED} if answers else {}),
                **{titled(name): row["extra"][name] for name in QUERIED if name in row.get("extra", {})},
                unjudged: row[unjudged],
                "p50 ms": row["p50_ms"],
                "p95 ms": row["p95_ms"],
                "tokens a question": tokens.tokens / seen,
                "cost of 1,000": None if cost is None else 1000 * cost / seen,
                "scored": row["n"],
                "not scored": row.get("not_scored", look.figures["unlabelled"]),
                "failed": row["failed"],
                **_range(look, route),
            }
        )
    return made


def _range(look: Look, route: str) -> dict[str, str]:
    """Return the range of the chosen metric if a model judged the unjudged passages."""
    judge = look.figures.get("judge")
    if not judge or look.metric not in judge["orders"]:
        return {}
    ends = ranges.ends_of(judge, route, look.metric)
    return {_ranged(look.metric): "" if ends is None else f"{ends[0]:.3f} to {ends[1]:.3f}"}


def _ranged(metric: str) -> str:
    """Return the heading of the column of ranges."""
    return f"{titled(metric)}, range with judge"


def _order(metric: str) -> list[str]:
    """Return the metrics of rankings, the chosen one first."""
    return [name for name in QUALITY if name == metric] + [name for name in QUALITY if name != metric]


def _table(look: Look) -> None:
    import pandas as pd

    made = rows(look)
    frame = pd.DataFrame(made)
    empty = [name for name in ("cost of 1,000", "tokens a question") if not frame[name].fillna(0).any()]
    frame = frame.drop(columns=empty)
    if look.metric in ANSWERED and titled(look.metric) in frame:
        frame.insert(1, titled(look.metric), frame.pop(titled(look.metric)))
    if _ranged(look.metric) in frame:  # next to the metric
        frame.insert(2, _ranged(look.metric), frame.pop(_ranged(look.metric)))
    helps = {titled(name): help_mark.metric(name) for name in (*QUALITY, *ANSWERED, *QUERIED)}
    three = {
        name: st.column_config.NumberColumn(format="%.3f", help=helps.get(name, help_mark.metric(name)))
        for name in frame
        if name not in COUNTS
    }
    time = term("p50 and p95", "For the route on its own.")
    tables.show(
        frame,
        hide_index=True,
        width="stretch",
        key="leaderboard",
        height="content",
        column_config={
            **three,
            "Route": st.column_config.TextColumn(pinned=True),
            _ranged(look.metric): st.column_config.TextColumn(help=term("LLM judge")),
            "p50 ms": st.column_config.NumberColumn(format="%.1f", help=time),
            "p95 ms": st.column_config.NumberColumn(format="%.1f", help=time),
            "tokens a question": st.column_config.NumberColumn(format="%.0f"),
            "cost of 1,000": st.column_config.NumberColumn(format="%.4g", help="Price of 1,000 questions"),
            "scored": st.column_config.NumberColumn(help="Questions that the ranking metrics cover"),
            "not scored": st.column_config.NumberColumn(
                help="Questions the route completed, but that have no relevant passage"
            ),
            "failed": st.column_config.NumberColumn(
                help="Questions the route did not complete; excluded, not counted as 0"
            ),
        },
        alt=f"Routes by {titled(look.metric)}",
    )
    if "cost of 1,000" in empty and "tokens a question" not in empty:
        st.caption(md(f"No prices are set: {HOW}."))


COUNTS = (
    "Route",
    "p50 ms",
    "p95 ms",
    "tokens a question",
    "cost of 1,000",
    "scored",
    "not scored",
    "failed",
    "asked",
)
