"""The metrics of the rankings and answers of routes over the questions of a set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from core.analysis.metrics import ANSWERS, ANSWERS_COMPARED, METRICS, Values, by_question
from core.domain.relevance import is_unmatched
from core.evaluation.answers import Given, Measured, measure, nugget_scores
from core.evaluation.comparison import NOBODY, compared, counted
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.outcome import Outcome, Outcomes

ASSIGNED = 0.9  # share of a route's answers whose nuggets must be assigned


def route_values(
    labelled: LabelledSet,
    outcomes: Outcomes,
    route: str,
    *,
    questions: Iterable[str] | None = None,
    metrics: Sequence[str] = METRICS,
    more: Mapping[str, Mapping[str, int]] | None = None,
) -> dict[str, Values]:
    """Question -> metric -> value, of the questions with a relevant passage at which the route ended well.

    `questions` are those to score, None for all; `more` are grades of further passages by question.
    """
    asked = (q.id for q in labelled.questions) if questions is None else questions
    found = {id: outcomes[id][route] for id in asked if route in outcomes.get(id, {})}
    ended = {id: one for id, one in found.items() if one.status == "ok" and labelled.labelled(id)}
    return by_question(
        {id: labelled.judged(id, (more or {}).get(id)) for id in ended},
        {id: labelled.ranking(id, one) for id, one in ended.items()},
        relevant_from=labelled.relevant_from,
        metrics=metrics,
    )


Measures = dict[str, dict[str, Measured]]  # route -> question -> metric -> value


def measured(labelled: LabelledSet, outcomes: Outcomes, routes: Sequence[str]) -> Measures:
    """Return the measures of every answer that was given: of a route that ended well and wrote something.
    Those of nuggets only if nearly all of its answers to questions with nuggets have them: abstentions, which
    always do, would else count too much.
    """
    found: Measures = {route: {} for route in routes}
    for route in routes:
        facts: dict[str, Measured] = {}
        for question, one in _of(labelled, outcomes, route):
            if one.status == "ok" and one.answer is not None:
                given = Given(one.answer, one.citations, one.abstained, one.wrong)
                relevant = frozenset(labelled.relevant(question.id))
                found[route][question.id] = measure(given, question.answers, question.answerable, relevant)
                if question.checked_nuggets:
                    facts[question.id] = nugget_scores(given, question.checked_nuggets)
        if sum(map(bool, facts.values())) >= ASSIGNED * len(facts):
            for id, scores in facts.items():
                found[route][id] |= scores
    return found


def blocks(
    labelled: LabelledSet,
    outcomes: Outcomes,
    routes: Sequence[str],
    baseline: str,
    same: Mapping[str, str] = NOBODY,
) -> dict[str, dict[str, Any]]:
    """Return the answers of each route in figures; nothing if no route gave any.

    Each mean is over the questions its measure applies to, counted under "counts"; "n" have an answer or an
    abstention, "unwritten" ended well without either, at "failed" ones the route or its answer failed. The
    comparisons with `baseline` are a Holm family of their own, in which routes of `same` count once.
    """
    values = measured(labelled, outcomes, routes)
    if not any(values.values()):
        return {}
    table = compared(values, baseline, ANSWERS, ANSWERS_COMPARED, ANSWERS, same)
    for route, row in table.items():
        seen = [outcome for _, outcome in _of(labelled, outcomes, route)]
        abstained = sum(one.abstained for one in seen if one.status == "ok" and one.answer is not None)
        row |= {
            "answered": row["n"] - abstained,
            "abstained": abstained,
            "unwritten": sum(one.status == "ok" and one.answer is None and not one.error for one in seen),
            "failed": sum(one.status != "ok" or bool(one.error) for one in seen),
            "wrong_markers": sum(len(one.wrong) for one in seen),
            "uncited_sentences": sum(one.uncited for one in seen),
            "counts": counted(values[route], ANSWERS),
        }
    return table


def lines(labelled: LabelledSet, outcomes: Outcomes, routes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield every answer with its question, gold answers and measures."""
    values = measured(labelled, outcomes, routes)
    for question in labelled.questions:
        for route in routes:
            if question.id in values[route]:
                outcome = outcomes[question.id][route]
                yield {
                    "question": question.id,
                    "route": route,
                    "text": question.query.text,
                    "gold": list(question.answers),
                    "answerable": question.answerable,
                    "answer": outcome.answer,
                    "abstained": outcome.abstained,
                    "citations": list(outcome.citations),
                    "wrong citations": list(outcome.wrong),
                    "relevant": sorted(labelled.relevant(question.id)),
                    "measures": values[route][question.id],
                }


def _of(labelled: LabelledSet, outcomes: Outcomes, route: str) -> Iterator[tuple[Question, Outcome]]:
    for question in labelled.questions:
        outcome = outcomes.get(question.id, {}).get(route)
        if outcome is not None:
            yield question, outcome


def outside_remarks(
    outcomes: Outcomes, routes: Sequence[str], qrels: Mapping[str, Mapping[str, int]]
) -> list[str]:
    """Return a sentence for each route with such passages among its first ten: their share, and how many of
    them are labelled.
    """
    found = []
    for route in routes:
        tops = [
            (question, [id for id, _ in by[route].hits[:10]])
            for question, by in outcomes.items()
            if route in by
        ]
        total = sum(len(ids) for _, ids in tops)
        strange = [(question, id) for question, ids in tops for id in ids if is_unmatched(id)]
        if not strange:
            continue
        labelled = sum(id in qrels.get(question, {}) for question, id in strange)
        judged = f"{labelled:,} of {len(strange):,} are labelled"
        share = f"{len(strange) / total:.1%} of its first 10 passages are not in the corpus"
        found.append(f"{route}: {share}; {judged}, the others count as not relevant")
    return found
