"""Retrieval metrics for each question, by ir_measures; a question that failed or has no label gets none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from core.domain.ranked import Ranked
from core.domain.trec import strict

QUALITY = ("ndcg@10", "recall@10", "recall@100", "mrr@10", "map", "precision@5", "precision@10", "hit@10")
COMPARED = QUALITY[:5]  # the ones routes are compared by
# The share of passages without a judgement, as deep as each metric looks. Average precision reads the whole
# list: its share is that of the first 100, beyond which most routes give nothing.
UNJUDGED = {
    name: {"precision@5": "unjudged@5", "recall@100": "unjudged@100", "map": "unjudged@100"}.get(
        name, "unjudged@10"
    )
    for name in QUALITY
}
METRICS = (*QUALITY, "unjudged@5", "unjudged@10", "unjudged@100")
TITLES = {"ndcg@10": "nDCG@10", "mrr@10": "MRR@10", "map": "MAP"}
Values = dict[str, float]  # metric -> value for one question


def title(metric: str) -> str:
    """What people call a metric."""
    return TITLES.get(metric, metric)


@cache
def measures(relevant_from: int = 1) -> dict[str, Any]:
    """Each metric's ir_measures measure; nDCG gains are the grades, the rest count from `relevant_from`."""
    from ir_measures import AP, RR, Judged, P, R, Success, nDCG

    rel = relevant_from
    return {
        "ndcg@10": nDCG @ 10,
        "recall@10": R(rel=rel) @ 10,
        "recall@100": R(rel=rel) @ 100,
        "mrr@10": RR(rel=rel) @ 10,
        "map": AP(rel=rel),
        "precision@5": P(rel=rel) @ 5,
        "precision@10": P(rel=rel) @ 10,
        "hit@10": Success(rel=rel) @ 10,
        "unjudged@5": Judged @ 5,
        "unjudged@10": Judged @ 10,
        "unjudged@100": Judged @ 100,
    }


def by_question(
    qrels: Mapping[str, Mapping[str, int]],
    rankings: Mapping[str, Ranked],
    *,
    relevant_from: int = 1,
    metrics: Sequence[str] = METRICS,
) -> dict[str, Values]:
    """The metrics of each ranking whose question is judged. One without hits found nothing: all 0, and as
    none of its passages is judged, `unjudged` is 1, as Judged@k of ir_measures is 0.
    """
    import ir_measures

    judged = {question: hits for question, hits in rankings.items() if qrels.get(question)}
    nothing = {name: 1.0 if name.startswith("unjudged") else 0.0 for name in metrics}
    values: dict[str, Values] = {question: dict(nothing) for question in judged}
    run = {
        question: dict(zip((p for p, _ in hits), strict([score for _, score in hits]), strict=True))
        for question, hits in judged.items()
        if hits  # the judged share of nothing is undefined to ir_measures
    }
    known = measures(relevant_from)
    used = {name: known[name] for name in metrics}
    names = {measure: name for name, measure in used.items()}
    for metric in ir_measures.iter_calc(list(used.values()), {q: dict(qrels[q]) for q in run}, run):
        name = names[metric.measure]
        values[metric.query_id][name] = 1.0 - metric.value if name.startswith("unjudged") else metric.value
    return values
