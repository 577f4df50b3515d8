"""The metrics of one route over the questions of a set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from core.analysis.metrics import METRICS, Values, by_question
from core.evaluation.dataset import LabelledSet
from core.evaluation.outcome import Outcome, Outcomes


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
    ended = {id: one for id in asked if labelled.labelled(id) and (one := _well(outcomes, id, route))}
    return by_question(
        {id: labelled.judged(id, (more or {}).get(id)) for id in ended},
        {id: labelled.ranking(id, one) for id, one in ended.items()},
        relevant_from=labelled.relevant_from,
        metrics=metrics,
    )


def _well(outcomes: Outcomes, question: str, route: str) -> Outcome | None:
    one = outcomes.get(question, {}).get(route)
    return one if one is not None and one.status == "ok" else None
