"""Grades over a labelled set, as questions that thresholds can be tried on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.analysis.run_view import Recorded, gradings, recorded
from core.analysis.what_if.grading import GradingCase, finite
from core.domain.outputs import Decision, Grading, WebGrades
from core.domain.types import RouteResult
from core.evaluation.dataset import LabelledSet
from core.steps.evaluate import Act, act

SPENT = ("replace it by the web", "knowledge gap")  # actions that go on without the passages graded


@dataclass(frozen=True, slots=True)
class Graded:
    """The questions that count, and how many were left out: `unlabelled` ones say neither that a passage is
    relevant nor that none is; for the `ungraded` ones there are no grades.
    """

    cases: tuple[GradingCase, ...]
    unlabelled: int
    ungraded: int


def graded(labelled: LabelledSet, results: Mapping[str, RouteResult], step: str) -> Graded:
    """Return what the step named `step` graded for each question of `labelled`; `results` by question id."""
    cases, unlabelled, ungraded = [], 0, 0
    for question in labelled.questions:
        if not labelled.labelled(question.id) and question.answerable is not False:
            unlabelled += 1
            continue
        result = results.get(question.id)
        found = [] if result is None else [one for one in gradings(result) if one.span.name == step]
        if not found:
            ungraded += 1
            continue
        grades = labelled.qrels.get(question.id, {})
        relevant = {id for id, grade in grades.items() if grade >= labelled.relevant_from}
        judged = found[0].output.grades
        present = any(one.id in relevant for one in judged)
        cases.append(GradingCase(question.id, finite(judged), present, question.split))
    return Graded(tuple(cases), unlabelled, ungraded)


def follows(result: RouteResult, grading: Recorded[Grading], verdict: Grading) -> Act | None:
    """Return the route's action on `verdict` if it acted on this grading, or None if it did not.

    A route that trusted its search never asked beyond: what that would bring is not known, and taken to be
    there and to be trusted.
    """
    for span in result.spans:
        acted = any(link.arg == "verdict" and link.span == grading.span.id for link in span.links)
        if acted and isinstance(span.output, Decision):
            given = {link.span for link in span.links if link.arg == "web"}  # the web results it acted on
            web = [one.output.grades for one in recorded(result.spans, WebGrades) if one.span.id in given]
            return act(verdict, str(span.args.get("lack", "")), web[0] if web else None)
    return None
