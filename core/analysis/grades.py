"""The effect of graders, floors and decisions on the labelled passages of a run, in sentences; knows no
route.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from core.analysis.answers import decisions, forced
from core.analysis.passage_trace import PassageTrace
from core.analysis.run_view import gradings, title_of
from core.analysis.what_if.grading import bands, known
from core.domain.errors import shortened
from core.domain.needs import Family
from core.domain.outputs import Grading
from core.domain.relevance import relevant
from core.domain.types import RouteResult, Run

JUDGING: tuple[Family, ...] = ("corrective", "agentic")  # families of routes that judge what they do
DEPTH = 10  # of a ranking, that counts as shown
DROPPED = ("dropped by grade", "compressed out")  # kinds of loss
NAMED = 2  # passages that a sentence names
LONG = 60  # characters of a title
WAYS = 4  # decisions of a route that its sentence names


def findings(run: Run, gold: Mapping[str, int]) -> list[str]:
    """Summarise: labelled passages that a grader, floor or filter dropped, then wrong ones that were
    trusted.
    """
    wanted = relevant(gold)
    lines: Counter[str] = Counter()
    for trace in map(PassageTrace, run.results):
        fates = ((id, trace.fate(id, DEPTH)) for id in wanted)
        name = trace.result.title
        lines.update(f"{name}, “{_title(run, id)}”: {one.words}" for id, one in fates if one.kind in DROPPED)
    lines.update(one for result in run.results for one in _wrong(run, result, gold))
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
    named = [f"“{_title(run, id)}” ({'no grade' if value is None else f'{value:.3f}'})" for id, value in some]
    more = f" and {len(some) - NAMED} more" if len(some) > NAMED else ""
    return ", ".join(named[:NAMED]) + more


def _title(run: Run, id: str) -> str:
    return shortened(" ".join(title_of(run, id).split()), LONG)
