"""The effect of graders, floors and decisions on the labelled passages of a run, in sentences; knows no
route.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from core.analysis.answers import decisions, forced
from core.analysis.run_view import Recorded, gradings, strippings
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
    """Return one sentence on how many passages were graded, and with how many labelled ones they are
    compared.
    """
    steps = [(result, one) for result in run.results for one in gradings(result)]
    if not steps:
        return "No route in this run graded passages."
    routes = {result.route for result, _ in steps}
    passages = {grade.id for _, one in steps for grade in one.output.grades}
    return (
        f"{_count(len(routes), 'route')} graded {_count(len(passages), 'passage')} in"
        f" {_count(len(steps), 'step')}."
    )


def _lost(run: Run, result: RouteResult, wanted: frozenset[str]) -> list[str]:
    lines = [_graded_out(run, result, one, wanted) for one in gradings(result)]
    for near in nears(result):
        passed = reaching(near.output, near.output.floor)
        gone = [(id, score) for id, score in near.output.cosines.items() if id in wanted and id not in passed]
        if gone:
            lines.append(
                f"{result.title}: “{near.span.name}” dropped {_labelled(len(gone))}:"
                f" {_named(run, gone)}, below {near.output.floor:.3g}."
            )
    for one in strippings(result):
        pieces = one.output.by_passage
        if none := [id for id in pieces if id in wanted and not any(s.kept for s in pieces[id])]:
            removed = f"removed every sentence of {_labelled(len(none))}"
            lines.append(f"{result.title}: “{one.span.name}” {removed}.")
    return [one for one in lines if one]


def _graded_out(run: Run, result: RouteResult, step: Recorded[Grading], wanted: frozenset[str]) -> str:
    """Return the cost of a grader: relevant passages it graded that are not in the result, else those it
    doubted.
    """
    places, one = ranks(result.hits), step.output
    given = [(grade.id, grade.grade) for grade in one.grades if grade.id in wanted]
    gone = [(id, value) for id, value in given if id not in places]
    if gone and result.status == "ok":
        return (
            f"{result.title}: “{step.span.name}” graded {_labelled(len(gone))} that"
            f" {'is' if len(gone) == 1 else 'are'} not in the final ranking: {_named(run, gone)}."
            f" Decision: {one.decision or 'none'}."
        )
    if wanted and not given:
        return f"{result.title}: “{step.span.name}” graded 0 of {_count(len(wanted), 'relevant passage')}."
    below = {grade.id for grade in bands(one.grades, one.low, one.high).below}
    doubted = [(id, value) for id, value in given if id in below]
    if doubted:
        return (
            f"{result.title}: “{step.span.name}” graded {_labelled(len(doubted))} below {one.low:.3g}:"
            f" {_named(run, doubted)}."
        )
    return ""


def _wrong(run: Run, result: RouteResult, gold: Mapping[str, int]) -> list[str]:
    """Return sentences on trusted passages that are labelled 0 or not labelled; [] without labels."""
    lines = []
    for step in gradings(result) if gold else ():
        one = step.output
        trusted = bands(one.grades, one.low, one.high).above
        wrong = [(grade.id, grade.grade) for grade in trusted if gold.get(grade.id, 0) == 0]
        if not wrong:
            continue
        judged = sum(id in gold for id, _ in wrong)
        kinds = [f"{judged} labelled grade 0"] * bool(judged)
        kinds += [f"{len(wrong) - judged} without a label"] * (judged < len(wrong))
        lines.append(
            f"{result.title}: “{step.span.name}” trusted {_count(len(wrong), 'wrong passage')}"
            f" ({', '.join(kinds)}): {_named(run, wrong)}, grade {one.high:.3g} or higher."
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


def _labelled(count: int) -> str:
    return _count(count, "labelled passage")


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
