"""The report of a release: which route, why, what it costs and does worse, how sure that is."""

from __future__ import annotations

from typing import Literal

from core.domain import people
from core.evaluation.release.against import Against
from core.evaluation.release.facts import limits, opponent, setup, worse_at
from core.evaluation.release.gate import Decision
from core.evaluation.release.ladder import climb, in_words
from core.evaluation.release.measured import Measured
from core.evaluation.templating import render

TOP = 10  # questions that are listed


def report(
    measured: Measured,
    decision: Decision,
    against: Against | None = None,
    *,
    kind: Literal["html", "markdown"] = "html",
) -> str:
    """Return the whole report; the same input gives the same text. `against`: the comparison with a
    snapshot.
    """
    who = people.require("release")
    people.record("release report", measured.name)
    other = opponent(decision, decision.shown)
    return render(
        "release.html" if kind == "html" else "release.md",
        title=f"Release decision: {measured.figures.dataset or measured.name}",
        measured=measured,
        decision=decision,
        against=against,
        account=who.account,
        other=other,
        lost=worse_at(measured, decision.shown, other, decision.criteria.metric) if other else None,
        top=TOP,
        ladder=in_words(climb(measured, decision), measured),
        limits=limits(measured, decision),
        setup=setup(measured, decision),
    )
