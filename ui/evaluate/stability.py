"""Stability: how much the figures of routes that call the model vary from round to round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.analysis.metrics import titled
from core.evaluation import text
from core.evaluation.finding import count
from ui.app.markup import md, show
from ui.app.routes import title
from ui.components import tables
from ui.evaluate.view import Look, sentences


def draw(look: Look) -> None:
    """Draw it."""
    figures = look.evaluation.figures
    found: Mapping[str, Any] = figures.get("stability") or {}
    if not found.get("routes"):
        st.markdown(md("This evaluation has one round, so it cannot show how much figures vary."))
        st.caption(
            "Routes that do not call the model return the same ranking every time. To see how much the"
            " others vary, choose more than one round under “New evaluation”, with routes or answers that"
            " call the model: each further round uses another seed."
        )
        return
    base = title(figures["baseline"])
    rows = {route: by[look.metric] for route, by in found["routes"].items() if look.metric in by}
    if not rows:
        st.info(md(f"No question was scored in {titled(look.metric)} in every round. Choose another metric."))
        return
    head = f"{found['rounds']} rounds; {len(rows)} of {len(look.evaluation.routes)} routes were rerun."
    show(sentences([head, *text.rounds(figures, title, look.metric)]))
    _table(rows, found["rounds"])
    st.caption(
        md(
            f"Over the questions scored in every round: {count(max(r['n'] for r in rows.values()))}. "
            f"A difference from {base} that is no larger than its variation may be due to chance."
        )
    )


def _table(rows: Mapping[str, Mapping[str, Any]], rounds: int) -> None:
    import pandas as pd

    made = [
        {
            "Route": title(route),
            **{f"Round {n}": mean for n, mean in enumerate(one["means"], 1)},
            "Standard deviation": one["sd"],
            "Changed": one["changed"],
            "Difference varies by": one["varies"],
            "Questions": one["n"],
        }
        for route, one in rows.items()
    ]
    three = [*(f"Round {n}" for n in range(1, rounds + 1)), "Standard deviation", "Difference varies by"]
    tables.show(
        pd.DataFrame(made),
        hide_index=True,
        width="stretch",
        key="evaluate_stability",
        column_config={
            **dict.fromkeys(three, st.column_config.NumberColumn(format="%.4f")),
            "Changed": st.column_config.NumberColumn(
                format="percent", help="Share of the questions whose value differed between rounds"
            ),
        },
        alt="Means of each round",
    )
