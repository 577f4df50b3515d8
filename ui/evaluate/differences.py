"""Differences from the baseline: in words, as a forest plot, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.analysis.metrics import titled
from core.evaluation import finding, leaderboard
from ui.app.help_mark import term
from ui.app.markup import md, show
from ui.app.plot import plot
from ui.app.routes import title
from ui.charts.intervals import of_findings
from ui.components import tables
from ui.evaluate.view import Look, sentences


def draw(look: Look) -> None:
    """Draw it."""
    found = compared(look)
    if not found:
        st.info("This evaluation has only one route, so there is no other to compare it with.")
        return
    name, base = titled(look.metric), title(look.baseline)
    rows = [finding.compared(one, title(route), base, name) for route, one in found.items()]
    texts = [finding.sentence(one) for one in rows if one.shown]
    if none := [one.subject for one in rows if not one.shown]:
        texts.append(
            f"No difference from {base} found for {finding.listed(none)}. This does not show that they are "
            "equal."
        )
    show(sentences(texts))
    plot(of_findings(rows), "evaluate_forest", " ".join(texts), table=False)
    _table(found)
    statistics = look.figures["statistics"]
    st.caption(
        md(
            "Differences cover the questions that both routes completed. Their intervals are not corrected "
            f"for multiple comparisons. Test: {statistics['test']}, over all routes and metrics against this "
            "baseline. d_z: the mean difference divided by the standard deviation of the differences. "
            "Superior: the share of questions on which the route is better, counting ties as half. "
            "Detectable: the smallest true difference that would be detected four times in five, after the "
            "correction."
        )
    )


def compared(look: Look) -> dict[str, Mapping[str, Any]]:
    """Return each route's difference from the baseline, best route first."""
    rows = look.figures["routes"]
    order = leaderboard.distinct(look.figures, look.metric)
    return {
        route: one for route in order if (one := leaderboard.difference(rows[route], look.metric)) is not None
    }


def _table(found: Mapping[str, Mapping[str, Any]]) -> None:
    import pandas as pd

    rows = [
        {
            "Route": title(route),
            "Verdict": one["verdict"],
            "Difference": one["delta"],
            "95% from": one["ci95"][0] if one["ci95"] else None,
            "to": one["ci95"][1] if one["ci95"] else None,
            "p": one["p"],
            "p (Holm)": one["p_holm"],
            "d_z": one["d_z"],
            "Wins": one["wins"],
            "Ties": one["ties"],
            "Losses": one["losses"],
            "Superior": one["superiority"],
            "Detectable": one["detectable_holm"],
            "Questions": one["n"],
        }
        for route, one in found.items()
    ]
    signed = {"Difference": None, "95% from": "confidence interval", "to": "confidence interval"}
    plain = {
        "p": "permutation test",
        "p (Holm)": "Holm correction",
        "d_z": "effect size",
        "Superior": "superiority",
        "Detectable": "detectable difference",
    }
    tables.show(
        pd.DataFrame(rows),
        hide_index=True,
        width="stretch",
        key="evaluate_differences",
        column_config={
            "Route": st.column_config.TextColumn(pinned=True),
            **{name: _number("%+.3f", key) for name, key in signed.items()},
            **{name: _number("%.3f", key) for name, key in plain.items()},
        },
        alt="Differences from the baseline with intervals and p-values",
    )


def _number(form: str, key: str | None) -> Any:
    return st.column_config.NumberColumn(format=form, help=term(key) if key else None)
