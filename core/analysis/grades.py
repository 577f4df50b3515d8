"""The effect of graders, floors and decisions on the labelled passages of a run, in sentences; knows no
route.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from core.analysis.answers import decisions, forced
from core.analysis.run_view import gradings, strippings
from core.analysis.what_if.grading import bands, known, nears, reaching
from core.domain.needs import Family
from core.domain.outputs import Grading
from core.domain.rank_changes import ranks
from core.domain.relevance import relevant
from core.domain.types import RouteResult, Run

JUDGING: tuple[Family, ...] = ("corrective", "agentic")  # families of routes that judge what they do
NAMED = 2  # passages that a sentence names
LONG = 60  # characters of a title
WAYS = 4  # decisions of a route that its sentence names


def findings(run: Run, gold: Mapping[str, int]) -> list[str]:
    """Summarise: labelled passages that were dropped or never graded, then wrong ones that were trusted."""
    wanted = frozenset(relevant(gold))
    lost = [one for result in run.results for one in _lost(run, result, wanted)]
    wrong = [one for result in run.results for one in _wrong(run, result, gold)]
    lines = Counter(lost + wrong)
    return [line if count == 1 else f"{line} The same in {count} steps." for line, count in lines.items()]


def decided(run: Run) -> list[tuple[RouteResult, str]]:
    """Return the decisions in order of each route that decided something, repeats counted."""
    found = []
    for result in run.results:
        words: list[tuple[str, int]] = []
        for one in decisions(result):
            word = f"{one.output.decision} (forced)" if forced(one.span) else one.output.decision
            if words and words[-1][0] == word:
                words[-1] = (word, words[-1][1] + 1)
            else:
                words.append((word, 1))
        if words:
            steps = [word if count == 1 else f"{word} ({count} times)" for word, count in words]
            more = f" → {len(steps) - WAYS} more" if len(steps) > WAYS else ""
            found.append((result, " → ".join(steps[:WAYS]) + more))
    return found


def held(run: Run) -> str:
    """Return one sentence on how many passages were graded, in how many steps and routes."""
    steps = [(result.route, one) for result in run.results for one in gradings(result)]
    if not steps:
        return "No route in this run graded passages."
    passages = {grade.id for _, one in steps for grade in one.output.grades}
    routes = {route for route, _ in steps}
    return f"Graded passages: {len(passages)}, in {len(steps)} steps of {len(routes)} routes."


def _lost(run: Run, result: RouteResult, wanted: frozenset[str]) -> list[str]:
    """Return sentences on the labelled passages that a route's graders and floors dropped or doubted."""
    lines = [
        f"{result.title}: “{step.span.name}” graded {told}."
        for step in gradings(result)
        if (told := _graded_out(run, result, step.output, wanted))
    ]
    for near in nears(result):
        passed = reaching(near.output, near.output.floor)
        gone = [(id, score) for id, score in near.output.cosines.items() if id in wanted and id not in passed]
        if gone:
            told = f"dropped {_labelled(run, gone)}, below {near.output.floor:.3g}"
            lines.append(f"{result.title}: “{near.span.name}” {told}.")
    for one in strippings(result):
        pieces = one.output.by_passage
        if none := sum(id in wanted and not any(s.kept for s in some) for id, some in pieces.items()):
            told = f"removed every sentence of {none} labelled passages"
            lines.append(f"{result.title}: “{one.span.name}” {told}.")
    return lines


def _graded_out(run: Run, result: RouteResult, one: Grading, wanted: frozenset[str]) -> str:
    """Return the cost of a grader: relevant passages it graded that are not in the result, else those it
    doubted.
    """
    places = ranks(result.hits)
    given = [(grade.id, grade.grade) for grade in one.grades if grade.id in wanted]
    gone = [(id, value) for id, value in given if id not in places]
    if gone and result.status == "ok":
        decision = f"decision: {one.decision or 'none'}"
        return f"{_labelled(run, gone)}, which the final ranking lacks; {decision}"
    if wanted and not given:
        return f"none of {len(wanted)} relevant passages"
    below = {grade.id for grade in bands(one.grades, one.low, one.high).below}
    doubted = [(id, value) for id, value in given if id in below]
    return f"{_labelled(run, doubted)} below {one.low:.3g}" if doubted else ""


def _wrong(run: Run, result: RouteResult, gold: Mapping[str, int]) -> list[str]:
    """Return sentences on trusted passages that are labelled 0 or not labelled; [] without labels."""
    lines = []
    for step in gradings(result) if gold else ():
        one = step.output
        trusted = bands(one.grades, one.low, one.high).above
        wrong = [(grade.id, grade.grade) for grade in trusted if gold.get(grade.id, 0) == 0]
        if wrong:
            without = sum(id not in gold for id, _ in wrong)
            lines.append(
                f"{result.title}: “{step.span.name}” trusted wrong passages: {_named(run, wrong)}, grade "
                f"{one.high:.3g} or higher; {without} of {len(wrong)} have no label."
            )
    return lines


def errors(one: Grading) -> list[tuple[str, str]]:
    """Return the id of each passage without a grade, and the reason."""
    return [
        (grade.id, grade.why or grade.state or "not scored") for grade in one.grades if known(grade) is None
    ]


def _named(run: Run, some: Sequence[tuple[str, float | None]]) -> str:
    named = []
    for id, value in some[:NAMED]:
        passage = run.passages.get(id)
        title = " ".join((passage.title or passage.doc_id).split()) if passage else id
        title = title if len(title) <= LONG else title[: LONG - 1].rstrip() + "…"
        named.append(f"“{title}” ({'no grade' if value is None else f'{value:.3f}'})")
    more = f" and {len(some) - NAMED} more" if len(some) > NAMED else ""
    return ", ".join(named) + more


def _labelled(run: Run, some: Sequence[tuple[str, float | None]]) -> str:
    return f"{len(some)} labelled passages ({_named(run, some)})"
