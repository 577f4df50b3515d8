"""Tables of the Release page: criteria by routes, and the escalation ladder."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from markupsafe import Markup

from core.analysis.metrics import titled
from core.domain.format import between, milliseconds, number
from core.evaluation.finding import quantity
from core.evaluation.release.gate import SHOWN, Decision
from core.evaluation.release.measured import Measured
from core.evaluation.release.report import climb
from core.evaluation.templating import say, sentences
from ui.app.help_mark import marked
from ui.app.markup import fragment, md
from ui.components import tables

SIGNS: Mapping[str, str] = {"passed": "✓", "failed": "✗", "cannot be told": "?"}
MARKS = {
    "taken": "↑ taken",
    "reached": "✓ ships",
    "skipped": "– skipped",
    "not needed": "not needed",
    "not measured": "not measured",
    "equal": "= another rung",
}


def criteria(decision: Decision) -> Markup:
    """Return the routes, passing ones first, with the figure of each criterion and why one was missed."""
    checks = {check.name: check for one in decision.ordered for check in one.checks}
    rows = []
    for one in decision.ordered:
        base = " · baseline" if one.route == decision.baseline else ""
        p50 = "?" if one.p50_ms is None else milliseconds(one.p50_ms)
        cells = p50, "?" if one.tokens is None else quantity(one.tokens)
        told = f"{say('decision.standing', decision, one)}{base}"
        figures = [(check, say("decision.brief", check)) for check in one.checks]
        rows.append((one, one.route == decision.chosen, told, figures, cells))
    heads = [(name, say("decision.limit", check)) for name, check in checks.items()]
    return fragment("release.criteria", heads, marked("p50", "p50 and p95"), rows, SIGNS, SHOWN)


def ladder(measured: Measured, decision: Decision) -> None:
    """Draw the ladder's finding, then each rung."""
    found = climb(measured, decision)
    *rungs, last = sentences("ladder.rungs", found, measured)
    st.markdown(f"**{md(last)}**")
    st.markdown("\n".join(f"{at}. {md(text)}" for at, text in enumerate(rungs, 1)))
    rows = []
    for rung in found.rungs:
        one, gain = rung.candidate, rung.gain
        mean, p95, calls, tokens = (
            getattr(one, name, None) for name in ("mean", "p95_ms", "calls", "tokens")
        )
        rows.append(
            {
                "rung": rung.title,
                "": MARKS[rung.state],
                "route": measured.title(rung.route) if rung.route else "",
                titled(found.metric): mean,
                "gain": number(gain.delta, signed=True) if gain else "",
                "95% interval": between(gain.low, gain.high, signed=True) if gain else "",
                "answered": "" if rung.answered is None else f"{rung.answered:.0%}",
                "p95": "" if p95 is None else milliseconds(p95),
                "calls": calls,
                "tokens": tokens,
                "also measured on this rung": ", ".join(map(measured.title, rung.others)),
            }
        )
    tables.table(rows, "release_ladder", "The rungs of the ladder")
    st.caption("From plain search upwards, each rung is compared with the last one taken below it.")
