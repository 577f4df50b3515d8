"""The escalation ladder of the Release page."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.analysis.metrics import titled
from core.domain.format import between, milliseconds, number
from core.evaluation.release.gate import Decision
from core.evaluation.release.ladder import Ladder, Rung, climb, in_words
from core.evaluation.release.measured import Measured
from ui.app.markup import md
from ui.components import tables

MARKS = {
    "taken": "↑ taken",
    "reached": "✓ ships",
    "skipped": "– skipped",
    "not needed": "not needed",
    "not measured": "not measured",
    "equal": "= another rung",
}


def draw(measured: Measured, decision: Decision) -> None:
    """Draw the ladder's finding, then each rung."""
    ladder = climb(measured, decision)
    *rungs, last = in_words(ladder, measured)
    st.markdown(f"**{md(last)}**")
    st.caption(
        "From plain search upwards, each rung is compared with the last one taken below it. The route on a "
        "rung is the one that ships, else the cheapest that meets the limits, else the best."
    )
    st.markdown("\n".join(f"{at}. {md(text)}" for at, text in enumerate(rungs, 1)))
    tables.show(
        [_row(rung, ladder, measured) for rung in ladder.rungs],
        hide_index=True,
        width="stretch",
        column_config={"others": st.column_config.TextColumn("also measured on this rung")},
    )
    if any(rung.answered is not None for rung in ladder.rungs):
        st.caption(
            "Answered: the share of labelled questions with a relevant passage in the first ten on this rung "
            "or on one taken below it. This is what escalation could reach if it always escalated at the "
            "right time."
        )


def _row(rung: Rung, ladder: Ladder, measured: Measured) -> dict[str, Any]:
    one, gain = rung.candidate, rung.gain
    return {
        "rung": rung.title,
        "": MARKS[rung.state],
        "route": measured.title(rung.route) if rung.route else "",
        titled(ladder.metric): "" if one is None or one.mean is None else f"{one.mean:.3f}",
        "gain": number(gain.delta, signed=True) if gain else "",
        "95% interval": between(gain.low, gain.high, signed=True) if gain else "",
        "answered": "" if rung.answered is None else f"{rung.answered:.0%}",
        "p95": "" if one is None or one.p95_ms is None else milliseconds(one.p95_ms),
        "calls": "" if one is None or one.calls is None else f"{one.calls:.1f}",
        "tokens": "" if one is None or one.tokens is None else f"{one.tokens:,.0f}",
        "others": ", ".join(map(measured.title, rung.others)),
    }
