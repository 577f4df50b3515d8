"""Tables of the Release page: criteria by routes, and the escalation ladder."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from markupsafe import Markup

from core.analysis.metrics import titled
from core.domain.format import between, milliseconds, number
from core.evaluation.finding import quantity
from core.evaluation.release.checks import SHOWN, Candidate, Check
from core.evaluation.release.gate import Decision
from core.evaluation.release.ladder import climb, in_words
from core.evaluation.release.measured import Measured
from core.evaluation.release.text import brief, limit, standing
from ui.app.help_mark import marked
from ui.app.markup import EMPTY, md, table_of, tag
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
    heads = [
        tag("th", name, tag("div", limit(check), css="dim") if limit(check) else EMPTY)
        for name, check in checks.items()
    ]
    heads += [tag("th", text, css="num") for text in (marked("p50", "p50 and p95"), "tokens")]
    body = [_row(one, decision) for one in decision.ordered]
    drawn = table_of(tag("tr", tag("th", "route"), *heads), body, css="rs-release-table")
    signs = " · ".join(f"{sign} {SHOWN.get(name, name)}" for name, sign in SIGNS.items())
    legend = f"{signs}. Hover over a figure to see its interval and what may be missed."
    return tag("div", drawn, tag("div", legend, css="dim"), css="rs rs-wide")


def _row(one: Candidate, decision: Decision) -> Markup:
    first = one.route == decision.chosen
    base = " · baseline" if one.route == decision.baseline else ""
    outcome = tag("div", standing(decision, one), base, css="up" if first else "dim")
    name = tag("td", tag("b", one.title), outcome)
    p50 = "?" if one.p50_ms is None else milliseconds(one.p50_ms)
    tokens = "?" if one.tokens is None else quantity(one.tokens)
    cells = [tag("td", p50, css="num"), tag("td", tokens, css="num")]
    return tag("tr", name, *map(_cell, one.checks), *cells, css="rs-release-ship" if first else "")


def _cell(check: Check) -> Markup:
    kind = {"passed": "passed", "failed": "failed"}.get(check.state, "open")
    state = SHOWN.get(check.state, check.state)
    sign = tag("span", SIGNS[check.state], css=f"rs-release-{kind}", role="img", aria_label=state)
    more = tag("div", state, ": ", check.told, css="dim") if check.state != "passed" else EMPTY
    return tag("td", sign, " ", brief(check), more, title=check.told)


def ladder(measured: Measured, decision: Decision) -> None:
    """Draw the ladder's finding, then each rung."""
    found = climb(measured, decision)
    *rungs, last = in_words(found, measured)
    st.markdown(f"**{md(last)}**")
    st.markdown("\n".join(f"{at}. {md(text)}" for at, text in enumerate(rungs, 1)))
    rows = []
    for rung in found.rungs:
        one, gain = rung.candidate, rung.gain
        known = {name: getattr(one, name, None) for name in ("mean", "p95_ms", "calls", "tokens")}
        rows.append(
            {
                "rung": rung.title,
                "": MARKS[rung.state],
                "route": measured.title(rung.route) if rung.route else "",
                titled(found.metric): known["mean"],
                "gain": number(gain.delta, signed=True) if gain else "",
                "95% interval": between(gain.low, gain.high, signed=True) if gain else "",
                "answered": "" if rung.answered is None else f"{rung.answered:.0%}",
                "p95": "" if known["p95_ms"] is None else milliseconds(known["p95_ms"]),
                "calls": known["calls"],
                "tokens": known["tokens"],
                "also measured on this rung": ", ".join(map(measured.title, rung.others)),
            }
        )
    answered = "Share of labelled questions with a relevant passage in the first ten here or on a rung below"
    about = "The rungs of the ladder"
    formats = {"calls": "%.1f", "tokens": "%.0f"}
    tables.table(rows, "release_ladder", about, formats=formats, helps={"answered": answered})
    st.caption("From plain search upwards, each rung is compared with the last one taken below it.")
