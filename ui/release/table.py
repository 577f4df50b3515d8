"""Criteria by routes on the Release page: each passed, failed or undetermined, by a sign and in words."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from core.domain.format import milliseconds
from core.evaluation.finding import quantity
from core.evaluation.release.checks import SHOWN, Candidate, Check
from core.evaluation.release.gate import Decision
from core.evaluation.release.text import brief, limit, standing
from ui.app.help_mark import marked
from ui.app.markup import EMPTY, join, table_of, tag

SIGNS: Mapping[str, str] = {"passed": "✓", "failed": "✗", "cannot be told": "?"}


def table(decision: Decision) -> Markup:
    """Return the routes, passing ones first, with the figure of each criterion and why one was missed."""
    checks = {check.name: check for one in decision.ordered for check in one.checks}
    heads = [
        tag("th", name, tag("div", limit(check), css="dim") if limit(check) else EMPTY)
        for name, check in checks.items()
    ]
    head = tag(
        "tr",
        tag("th", "route"),
        *heads,
        tag("th", marked("p50", "p50 and p95"), css="num"),
        tag("th", "tokens", css="num"),
    )
    body = [_row(one, decision) for one in decision.ordered]
    drawn = table_of(head, body, css="rs-release-table")
    return tag("div", drawn, _legend(), css="rs rs-wide")


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


def _legend() -> Markup:
    signs = join((f"{sign} {SHOWN.get(name, name)}" for name, sign in SIGNS.items()), " · ")
    return tag("div", signs, ". Hover over a figure to see its interval and what may be missed.", css="dim")
