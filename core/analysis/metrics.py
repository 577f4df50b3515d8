"""The metrics of evaluations, and those of rankings for each question, by ir_measures."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from core.domain.ranked import Ranked, strict


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of a route: a mean over questions."""

    name: str
    title: str
    # "rows" compares the rows of SQL queries; "unjudged" is a share of passages without a label
    kind: Literal["ranking", "unjudged", "answer", "rows"]
    # head of its column in a terminal; "" for no column
    short: str = ""
    # ir_measures' measure; {rel} stands for the grade from which a passage is relevant
    measure: str = ""
    # whether routes are compared with the baseline in it; then more is better
    compared: bool = False
    # whether the leaderboard page has a column for it
    column: bool = False
    # the share of unjudged passages as deep as it looks
    unjudged: str = ""
    more_is_better: bool = True


# What a kind of metric has unless its record says otherwise.
USUAL: Mapping[str, Mapping[str, Any]] = {
    "ranking": {"column": True, "unjudged": "unjudged@10"},
    "unjudged": {"more_is_better": False},
}
_RECORDS = tomllib.loads(Path(__file__).with_name("metrics.toml").read_text("utf-8"))
KNOWN: Mapping[str, Metric] = {
    name: Metric(name, **{"kind": kind, **USUAL.get(kind, {}), **record})
    for kind, records in _RECORDS.items()
    for name, record in records.items()
}


def _names(kind: str, *, compared: bool = False) -> tuple[str, ...]:
    return tuple(one.name for one in KNOWN.values() if one.kind == kind and one.compared >= compared)


QUALITY, COMPARED = _names("ranking"), _names("ranking", compared=True)
ANSWERS, ANSWERS_COMPARED = _names("answer"), _names("answer", compared=True)
METRICS = (*QUALITY, *_names("unjudged"))
HEADLINE = QUALITY[0]  # the metric of the leader and the oracle
UNJUDGED = {name: KNOWN[name].unjudged for name in QUALITY}
Values = dict[str, float]  # metric -> value for one question


def titled(metric: str) -> str:
    """Return the title of a metric: nDCG@10, supported accuracy; a name that is not known as it is."""
    return KNOWN[metric].title if metric in KNOWN else metric


@cache
def measures(relevant_from: int = 1) -> dict[str, Any]:
    """Return ir_measures' measure of each metric of rankings; passages are relevant from that grade on."""
    from ir_measures import parse_measure

    return {name: parse_measure(KNOWN[name].measure.format(rel=relevant_from)) for name in METRICS}


def by_question(
    qrels: Mapping[str, Mapping[str, int]],
    rankings: Mapping[str, Ranked],
    *,
    relevant_from: int = 1,
    metrics: Sequence[str] = METRICS,
) -> dict[str, Values]:
    """Return the metrics of each ranking whose question is judged. One without hits found nothing: all 0, and
    as none of its passages is judged, `unjudged` is 1, as Judged@k of ir_measures is 0.
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
