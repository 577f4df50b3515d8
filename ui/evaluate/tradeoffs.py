"""Trade-offs: what quality costs, and what choosing the best route for each question would give."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.analysis.metrics import titled
from core.analysis.token_usage import Totals, price, prices_in
from core.evaluation import costs, leaderboard, oracle, text
from core.evaluation.costs import Point
from ui.app.evaluated import once
from ui.app.markup import show
from ui.app.routes import title
from ui.components import tables
from ui.evaluate.view import Look, sentences, values

COSTS = {
    "p50_ms": "Median latency (p50)",
    "p95_ms": "95th percentile latency (p95)",
    "tokens": "Tokens a question",
    "price": "Cost of 1,000 questions",
}
TIMES = ("p50_ms", "p95_ms")
PAIRS = 5  # pairs of routes that are listed


def points(look: Look, cost: str) -> dict[str, Point] | None:
    """Return each route's quality and cost, or None if the cost is unknown or 0 for all."""
    rows = look.figures["routes"]
    amounts: dict[str, float | None]
    if cost == "price":
        amounts = {}
        for route, row in rows.items():
            used = Totals(prompt=row["prompt_tokens"], completion=row["completion_tokens"])
            whole, asked = price(used, *prices_in(row)), sum(row["statuses"].values())
            amounts[route] = None if whole is None or not asked else 1000 * whole / asked
    else:
        amounts = {route: at for route, (_, at) in costs.points(look.figures, look.metric, cost).items()}
    if cost not in TIMES and not any(amounts.values()):
        return None
    return {route: (leaderboard.value(row, look.metric), amounts[route]) for route, row in rows.items()}


def worth(found: Mapping[str, Point], look: Look, cost: str) -> list[str]:
    """Describe which routes are worth their cost, and which beat the baseline."""
    on = costs.front(found)
    if not on:
        return ["No route has both a value and a cost."]
    said = [
        f"{len(on)} of {len(found)} routes are worth their cost, cheapest first: {', '.join(map(title, on))}."
    ]
    if better := costs.beaten_by(found, look.baseline):
        said.append(
            f"{title(look.baseline)}, the baseline, is beaten by {', '.join(map(title, better))}: "
            f"{titled(look.metric)} at least as high for no more {'time' if cost in TIMES else 'cost'}."
        )
    return said


def draw(look: Look) -> None:
    """Draw what choosing the best route for each question would give."""
    metric = look.metric
    found = once(look.evaluation, "oracle", metric, compute=lambda: oracle.oracle(values(look), metric))
    if found is None or len(found["regret"]) < 2:
        st.info("It takes two routes with scores to compare what each is best at.")
        return
    show(sentences(text.oracle(found, title)))
    regret = [
        {
            "Route": title(route),
            "Regret": one["mean"],
            **tables.interval(one["ci95"]),
            "Best on": one["best"],
            "Questions": one["n"],
        }
        for route, one in found["regret"].items()
    ]
    pairs = [
        {
            "Routes": " + ".join(map(title, pair["routes"])),
            "Better of the two": pair["mean"],
            "Gain over the better one": pair["gain"],
            **tables.interval(pair["ci95"]),
        }
        for pair in found["pairs"][:PAIRS]
    ]
    left, right = st.columns(2)
    left.caption("Regret: how far each route falls short of the best route for each question, on average.")
    tables.table(regret, "evaluate_regret", "Regret of each route", place=left)
    right.caption(f"The {len(pairs)} of {len(found['pairs'])} pairs that gain most over their better route.")
    tables.table(pairs, "evaluate_pairs", "Pairs of routes that complement each other", place=right)
