"""Retrieval metrics for each question, by ir_measures; a question that failed or has no label gets none."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from core.evaluate.trec import strict
from core.types import Scored

METRICS = ("ndcg@10", "recall@10", "recall@100", "mrr@10", "map", "precision@5", "unjudged@10")
COMPARED = METRICS[:5]  # the ones routes are compared by
Values = dict[str, float]  # metric -> value for one question


@cache
def measures(relevant_from: int = 1) -> dict[str, Any]:
    """Each metric's ir_measures measure; nDCG gains are the grades, the rest count from `relevant_from`."""
    from ir_measures import AP, RR, Judged, P, R, nDCG

    rel = relevant_from
    return {
        "ndcg@10": nDCG @ 10,
        "recall@10": R(rel=rel) @ 10,
        "recall@100": R(rel=rel) @ 100,
        "mrr@10": RR(rel=rel) @ 10,
        "map": AP(rel=rel),
        "precision@5": P(rel=rel) @ 5,
        "unjudged@10": Judged @ 10,
    }


def by_question(
    qrels: Mapping[str, Mapping[str, int]], rankings: Mapping[str, Scored], *, relevant_from: int = 1
) -> dict[str, Values]:
    """The metrics of each ranking whose question is judged; a ranking without hits found nothing: all 0."""
    import ir_measures

    judged = {question: hits for question, hits in rankings.items() if qrels.get(question)}
    values: dict[str, Values] = {question: dict.fromkeys(METRICS, 0.0) for question in judged}
    run = {
        question: dict(zip((p for p, _ in hits), strict([score for _, score in hits]), strict=True))
        for question, hits in judged.items()
        if hits  # the judged share of nothing is undefined to ir_measures
    }
    used = measures(relevant_from)
    names = {measure: name for name, measure in used.items()}
    for metric in ir_measures.iter_calc(list(used.values()), {q: dict(qrels[q]) for q in run}, run):
        name = names[metric.measure]
        values[metric.query_id][name] = 1.0 - metric.value if name == "unjudged@10" else metric.value
    return values
