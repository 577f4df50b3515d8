"""The report of a release: which route, why, what it costs and does worse, how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.analysis.metrics import titled
from core.domain import people
from core.domain.format import between, milliseconds, number
from core.evaluation.finding import count
from core.evaluation.release import text as words
from core.evaluation.release.against import Against
from core.evaluation.release.checks import Check, quantity
from core.evaluation.release.facts import limits, opponent, setup, worse_at
from core.evaluation.release.gate import Decision
from core.evaluation.release.ladder import climb, in_words
from core.evaluation.release.measured import Measured
from core.evaluation.release.rule import SHOWN
from core.evaluation.templating import render

TOP = 10  # questions that are listed
KINDS: Mapping[str, str] = {"passed": "passed", "failed": "failed", "cannot be told": "open"}


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell; `kind` is "passed", "failed", "open" or "", which colours it besides its words."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under heads; the first cell of a row names it."""

    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the report, in this order: its title, paragraphs, a table and a list."""

    title: str = ""
    texts: tuple[str, ...] = ()
    table: Table | None = None
    points: tuple[str, ...] = ()


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
    title = f"Release decision: {measured.figures.get('dataset', measured.name)}"
    made = parts(measured, decision, against)
    if who.account:
        made.insert(1, Part(texts=(f"This report was made by {who.account}.",)))
    return render("release.html" if kind == "html" else "release.md", title=title, parts=made)


def parts(measured: Measured, decision: Decision, against: Against | None = None) -> list[Part]:
    """Return the parts of the report, in order."""
    asked = f"Required: {'; '.join(words.asked(decision.criteria))}. Passing routes are listed first."
    spread = "Tokens, model calls and price are totals divided by the questions that the route completed."
    return [
        Part(texts=tuple(words.every(decision))),
        *(
            [
                Part(
                    f"Against the release of {against.name}",
                    (against.summary,),
                    points=tuple(against.sentences()[1:]),
                )
            ]
            if against
            else []
        ),
        Part("Criteria", (asked,), criteria_table(decision)),
        Part("What the routes cost", (spread,), costs_table(decision)),
        *_worse(measured, decision),
        *_rests(decision),
        Part(
            "The ladder: from plain search upwards",
            points=tuple(in_words(climb(measured, decision), measured)),
        ),
        Part("The labelled set and its limits", points=tuple(limits(measured, decision))),
        Part("Settings", table=_table(("setting", "value"), setup(measured, decision))),
    ]


def criteria_table(decision: Decision) -> Table:
    """Criteria by routes, each with its state in words and its figure; the routes that pass first."""
    ordered = sorted(decision.candidates, key=lambda one: (one.route != decision.chosen, not one.passes))
    names = list(dict.fromkeys(check.name for one in ordered for check in one.checks))
    limit = {check.name: words.limit(check) for one in ordered for check in one.checks}
    heads = ("route", *(f"{name}, {limit[name]}" if limit[name] else name for name in names))
    rows = []
    for one in ordered:
        by = {check.name: check for check in one.checks}
        name_cell = Cell(f"{one.title} ({one.route}): {words.standing(decision, one)}")
        rows.append((name_cell, *(_state(by[name]) for name in names)))
    return Table(heads, tuple(rows))


def costs_table(decision: Decision) -> Table:
    """Time and model use by route, the cheapest first."""
    rows = [
        (
            Cell(one.title),
            *(Cell("?" if value is None else milliseconds(value)) for value in (one.p50_ms, one.p95_ms)),
            *(Cell("?" if value is None else quantity(value)) for value in (one.calls, one.tokens)),
            Cell("unknown" if one.cost is None else quantity(one.cost)),
        )
        for one in sorted(decision.candidates, key=lambda one: one.expense)
    ]
    heads = (
        "route",
        "p50",
        "p95",
        "model calls per question",
        "tokens per question",
        "price of 1,000 questions",
    )
    return Table(heads, tuple(rows))


def _state(check: Check) -> Cell:
    return Cell(f"{SHOWN.get(check.state, check.state)}: {check.told}", KINDS[check.state])


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    return Table(tuple(heads), tuple(tuple(map(Cell, row)) for row in rows))


def _worse(measured: Measured, decision: Decision) -> list[Part]:
    """Kinds of question and single questions on which the route is worse than its opponent."""
    route = decision.shown
    other = opponent(decision, route)
    title, metric = measured.title(route), decision.criteria.metric
    if other is None:
        return []
    heading = f"What {title} does worse than {measured.title(other)}"
    below = sorted(
        (one for one in decision.losses if one.route == route and one.delta < 0), key=lambda one: one.delta
    )
    if below:
        heads = (
            "kind of question",
            "questions",
            f"difference in {titled(metric)}",
            "interval",
            "result",
        )
        rows = (
            (
                one.mode,
                str(one.n),
                number(one.delta, signed=True),
                between(one.low, one.high, signed=True),
                "shown worse" if one.shown else "not shown",
            )
            for one in below
        )
        first = Part(heading, table=_table(heads, rows))
    elif other == decision.baseline and decision.losses:
        first = Part(heading, ("Its mean is not below the baseline's on any kind of question.",))
    else:
        first = Part(heading)
    lost = worse_at(measured, route, other, metric)
    if lost is None:
        text = "The questions cannot be determined from metrics.json alone."
        return [first, Part(texts=(text,))]
    if not lost:
        return [first, Part(texts=("It scores lower on no question.",))]
    text = f"It scores lower on {count(len(lost))}; the {min(TOP, len(lost))} largest differences:"
    shown = _table(
        ("question", "kind", title, measured.title(other)),
        ((one.text, one.mode or "none", f"{one.value:.3f}", f"{one.other:.3f}") for one in lost[:TOP]),
    )
    return [first, Part(texts=(text,), table=shown)]


def _rests(decision: Decision) -> list[Part]:
    """Return the comparisons that the verdict rests on."""
    if not decision.verdict.pairs:
        return []
    rows = (
        (
            decision.titled(one.other),
            str(one.n),
            number(one.delta, signed=True),
            between(one.low, one.high, signed=True),
        )
        for one in decision.verdict.pairs
    )
    title = decision.titled(decision.verdict.pairs[0].route)
    heads = ("route", "questions", f"{title} minus it", "95% interval")
    text = (
        f"A route may ship if the lower end of each interval is above -{decision.verdict.margin:g}. The "
        "intervals need no correction for the number of routes, because every one of them has to."
    )
    return [Part("What the verdict rests on", (text,), _table(heads, rows))]
