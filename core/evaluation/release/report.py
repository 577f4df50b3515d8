"""The report of a release: which route, why, what it costs and does worse, how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from core.domain.format import milliseconds
from core.evaluation.naming import named
from core.evaluation.release import text
from core.evaluation.release.against import Against
from core.evaluation.release.checks import Check, counted, number, share
from core.evaluation.release.document import Block, Cell, Heading, Items, Table, Text, html, markdown
from core.evaluation.release.facts import limits, opponent, setup, worse_at
from core.evaluation.release.gate import Decision
from core.evaluation.release.ladder import climb, in_words
from core.evaluation.release.measured import Measured
from core.evaluation.release.selection_stability import HOW

TOP = 10  # questions that are listed
KINDS: Mapping[str, str] = {"passed": "passed", "failed": "failed", "cannot be told": "open"}


def report(
    measured: Measured,
    decision: Decision,
    against: Against | None = None,
    *,
    kind: Literal["html", "markdown"] = "html",
) -> str:
    """The whole report; the same input gives the same text. `against`: the comparison with a snapshot."""
    title = f"Release decision: {measured.figures.get('dataset', measured.name)}"
    blocks = parts(measured, decision, against)
    return html(title, blocks) if kind == "html" else markdown(title, blocks)


def parts(measured: Measured, decision: Decision, against: Against | None = None) -> list[Block]:
    """The report as blocks, in order."""
    return [
        Text(text.headline(decision)),
        *(Text(said) for said in text.why(decision)),
        Text(text.sure(decision)),
        *_against(against),
        Heading("Criteria"),
        Text(f"Asked for: {'; '.join(text.asked(decision.criteria))}. Routes that pass stand first."),
        criteria_table(decision),
        Heading("What the routes cost"),
        Text("Tokens, model calls and price are spread over the questions at which the route ended well."),
        costs_table(decision),
        *_worse(measured, decision),
        *_sure(decision),
        *_ladder(measured, decision),
        Heading("The labelled set and its limits"),
        Items(tuple(limits(measured, decision))),
        Heading("Settings"),
        Table(
            ("setting", "value"), tuple((Cell(one), Cell(value)) for one, value in setup(measured, decision))
        ),
    ]


def criteria_table(decision: Decision) -> Table:
    """Criteria by routes, each with its state in words and its figure; the routes that pass first."""
    ordered = sorted(decision.candidates, key=lambda one: (one.route != decision.chosen, not one.passes))
    names = list(dict.fromkeys(check.name for one in ordered for check in one.checks))
    limit = {check.name: text.limit(check) for one in ordered for check in one.checks}
    heads = ("route", *(f"{name}, {limit[name]}" if limit[name] else name for name in names))
    rows = []
    for one in ordered:
        by = {check.name: check for check in one.checks}
        said = "ship" if one.route == decision.chosen else "passes" if one.passes else "does not pass"
        rows.append((Cell(f"{one.title} ({one.route}): {said}"), *(_state(by[name]) for name in names)))
    return Table(heads, tuple(rows))


def costs_table(decision: Decision) -> Table:
    """Time and model use by route, the cheapest first."""
    rows = [
        (
            Cell(one.title),
            *(Cell("?" if value is None else milliseconds(value)) for value in (one.p50_ms, one.p95_ms)),
            *(Cell("?" if value is None else number(value)) for value in (one.calls, one.tokens)),
            Cell("not told" if one.cost is None else number(one.cost)),
        )
        for one in sorted(decision.candidates, key=lambda one: one.expense)
    ]
    heads = ("route", "p50", "p95", "model calls a question", "tokens a question", "price of 1,000 questions")
    return Table(heads, tuple(rows))


def _state(check: Check) -> Cell:
    return Cell(f"{check.state}: {check.told}", KINDS[check.state])


def _against(against: Against | None) -> list[Block]:
    if against is None:
        return []
    return [Heading(f"Against the release of {against.name}"), Text(against.told), Items(against.notes)]


def _worse(measured: Measured, decision: Decision) -> list[Block]:
    """Kinds of question and single questions at which the route does worse than whom it is held against."""
    route = decision.chosen or decision.nearest or decision.baseline
    other = opponent(decision, route)
    title, metric = measured.title(route), decision.criteria.metric
    if other is None:
        return []
    blocks: list[Block] = [Heading(f"What {title} does worse than {measured.title(other)}")]
    below = [one for one in decision.losses if one.route == route and one.delta < 0]
    if below:
        blocks.append(Table(
            ("kind of question", "questions", f"difference in {named(metric)}", "shown", "corrected p"),
            tuple(
                (Cell(one.mode), Cell(str(one.n)), Cell(f"{one.delta:+.3f}"), Cell(one.verdict),
                 Cell(f"{one.p_holm:.3f}"))
                for one in sorted(below, key=lambda one: one.delta)
            ),
        ))  # fmt: skip
    elif other == decision.baseline and decision.losses:
        blocks.append(Text("In no kind of question is its mean below the baseline's."))
    lost = worse_at(measured, route, other, metric)
    if lost is None:
        return [*blocks, Text("Which questions those are cannot be told from metrics.json alone.")]
    blocks.append(Text(f"At {counted(len(lost), 'question')} it scores less" + (
        f"; the {min(TOP, len(lost))} with the largest difference:" if lost else ".")))  # fmt: skip
    if lost:
        rows = tuple(
            (Cell(one.text), Cell(one.mode or "none"), Cell(f"{one.value:.3f}"), Cell(f"{one.other:.3f}"))
            for one in lost[:TOP]
        )
        blocks.append(Table(("question", "kind", title, measured.title(other)), rows))
    return blocks


def _sure(decision: Decision) -> list[Block]:
    found = decision.sureness
    if found is None:
        return []
    titles = {one.route: one.title for one in decision.candidates}
    ranked = sorted(found.chosen, key=lambda route: (-found.chosen[route], -found.passes[route], route))
    rows = tuple(
        (Cell(titles[route]), Cell(share(found.chosen[route])), Cell(share(found.passes[route])))
        for route in ranked
    )
    return [
        Heading("How sure that is"),
        Text(f"{HOW[0].upper()}{HOW[1:]}. In {share(found.none)} of the draws no route passes."),
        Table(("route", "chosen in", "passes in"), rows),
    ]


def _ladder(measured: Measured, decision: Decision) -> list[Block]:
    """From plain search upwards, as far as the criteria ask."""
    said = in_words(climb(measured, decision), measured)
    return [Heading("The ladder: from plain search upwards"), Items(tuple(said))]
