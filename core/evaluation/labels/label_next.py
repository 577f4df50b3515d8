"""The questions to label next to settle a comparison of two routes: those with the most disagreement. An
unjudged passage that both routes show at one rank cannot change which is better; a passage that only one
route shows at the top can. So questions are ordered by the possible effect of their unjudged passages: the
difference of their discounts, summed. Carterette, Allan & Sitaraman 2006, "Minimal test collections for
retrieval evaluation" (SIGIR), with the discount of DCG instead of average precision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log2
from typing import TYPE_CHECKING, Any, Literal

from core.analysis.rank_overlap import jaccard
from core.domain.types import Query, Run
from core.evaluation.dataset import UNDECIDED, Question
from core.evaluation.effects import SAME

if TYPE_CHECKING:
    from core.evaluation.experiment_store import Evaluation
    from core.evaluation.labels.types import Desk

DEPTH = 10  # passages of each ranking
Where = Literal["evaluation", "label set", "session"]
Places = Mapping[str, int]  # passage -> its rank from 1


@dataclass(frozen=True, slots=True)
class Next:
    """A question to label: `id` of it in the evaluation or the label set, or of the run that asked it.

    `change`: how much labels of its unjudged passages could move the difference of the two routes in DCG, for
    a relevant passage of gain 1. `passages`: those, the most decisive first. `apart`: 1 minus the Jaccard
    index of the two rankings. `labelled`: whether a passage of it is relevant by what is judged.
    """

    where: Where
    id: str
    query: Query
    change: float
    apart: float
    passages: tuple[str, ...]
    labelled: bool

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        found = asdict(self)
        found["question"] = found.pop("query")["text"]
        return {**found, "passages": list(self.passages), "change": round(self.change, 6)}


def of_evaluation(evaluation: Evaluation, one: str, other: str, depth: int = DEPTH) -> list[Next]:
    """Return the questions of an evaluation at which both routes ended well, those first that could change
    most.

    Those without a relevant passage yet are among them; those that no label can change, and those that the
    documents do not answer, are not.
    """
    found, set_ = [], evaluation.labelled
    for id, question in evaluation.questions.items():
        by = evaluation.outcomes.get(id, {})
        ended = all(route in by and by[route].status == "ok" for route in (one, other))
        if not ended or not _answerable(question):
            continue
        places = [{p: at for at, (p, _) in enumerate(by[route].hits[:depth], 1)} for route in (one, other)]
        judged = set_.qrels.get(id, {})
        found.append(_next("evaluation", id, question.query, places, judged, depth, set_.labelled(id)))
    return ordered(found)


def of_desk(desk: Desk, one: str, other: str, depth: int = DEPTH) -> list[Next]:
    """Return the questions of a label set that could decide, by the ranks at which the routes found the
    passages of its pool.
    """
    from core.evaluation.labels.final import final

    grades = {pair: given.grade for pair, given in final(desk).items() if given.grade is not None}
    found = []
    for question in desk.questions:
        pool = desk.pool.get(question.id, {})
        ranks = {id: dict(pooled.found) for id, pooled in pool.items()}
        places = [
            {id: by[route] for id, by in ranks.items() if by.get(route, depth + 1) <= depth}
            for route in (one, other)
        ]
        if not all(places) or not _answerable(question):
            continue  # not asked of both: what either would show is not known
        judged = {passage for id, passage in grades if id == question.id}
        relevant = any(grades[question.id, passage] >= desk.set.relevant_from for passage in judged)
        found.append(_next("label set", question.id, question.query, places, judged, depth, relevant))
    return ordered(found)


def of_runs(runs: Iterable[Run], one: str, other: str, depth: int = DEPTH) -> list[Next]:
    """Return the questions of stored runs in which both routes ended well; of a question asked twice only the
    first given run counts.
    """
    found: dict[Query, Next] = {}
    for run in runs:
        by = {result.route: result for result in run.results if result.status == "ok"}
        if run.query in found or one not in by or other not in by:
            continue
        places = [
            {hit.passage.id: at for at, hit in enumerate(by[route].hits[:depth], 1)} for route in (one, other)
        ]
        found[run.query] = _next("session", run.id, run.query, places, (), depth, False)
    return ordered(found.values())


def ordered(found: Iterable[Next]) -> list[Next]:
    """Those that labels could change, the largest change first, then the farthest apart."""
    return sorted((one for one in found if one.change > SAME), key=lambda one: (-one.change, -one.apart))


def _answerable(question: Question) -> bool:
    """Return whether the documents may answer the question; questions marked unanswerable need no label."""
    return question.answerable is not False and question.mode not in UNDECIDED


def _next(
    where: Where,
    id: str,
    query: Query,
    places: Sequence[Places],
    judged: Collection[str],
    depth: int,
    labelled: bool,
) -> Next:
    mine, theirs = places
    weights = {
        passage: abs(_discount(mine.get(passage)) - _discount(theirs.get(passage)))
        for passage in dict.fromkeys((*mine, *theirs))
        if passage not in judged
    }
    decisive = sorted((p for p, weight in weights.items() if weight > SAME), key=lambda p: (-weights[p], p))
    apart = 1 - jaccard(list(mine), list(theirs), depth) if mine or theirs else 0.0
    return Next(where, id, query, sum(weights.values()), apart, tuple(decisive), labelled)


def _discount(rank: int | None) -> float:
    """Return the discount of DCG (Järvelin & Kekäläinen 2002), 0 for a passage that is not shown."""
    return 0.0 if rank is None else 1 / log2(rank + 1)
