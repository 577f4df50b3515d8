"""The questions that a change broke, fixed or left alone. A relevant passage is found if it is among the
first k of the ranking. A question is broken if the second evaluation finds fewer of its relevant passages
than the first, fixed if it finds more, and unchanged if it finds as many. A route that failed found nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from core.evaluation.diff.displaced import DisplacedPassage
from core.evaluation.diff.side import Asked, PassageLoss, Side

Change = Literal["fixed", "broken", "unchanged"]
DEPTH = 10  # k of a metric that names none


@dataclass(frozen=True, slots=True)
class PassageChange:
    """A relevant passage that was found in one evaluation only: its ranks (None: not ranked) and `loss`, why
    the other did not find it.
    """

    passage: str
    grade: int
    before: int | None
    after: int | None
    loss: PassageLoss

    @property
    def found_at(self) -> int:
        """Return the better of its two ranks."""
        return min(rank for rank in (self.before, self.after) if rank is not None)


@dataclass(frozen=True, slots=True)
class QuestionDiff:
    """A question in both: `lost` passages were found before alone, `gained` ones after alone. `relabelled`:
    its labels changed, and only those that both evaluations have count. `displaced` passages fell below
    documents that are new or changed.
    """

    id: str
    text: str
    mode: str
    change: Change
    relevant: int
    lost: tuple[PassageChange, ...]
    gained: tuple[PassageChange, ...]
    status: tuple[str, str]
    relabelled: bool = False
    displaced: tuple[DisplacedPassage, ...] = ()

    @property
    def decisive(self) -> PassageChange | None:
        """Return the passage that broke or fixed the question, or None if it is unchanged."""
        kept = {"broken": self.lost, "fixed": self.gained}.get(self.change, ())
        return kept[0] if kept else None

    def document(self) -> dict[str, Any]:
        """Return it as JSON values; `passage`, `step` and `why` are of the decisive passage, null if
        unchanged.
        """
        one = self.decisive
        return {
            "question": self.id,
            "text": self.text,
            "mode": self.mode,
            "change": self.change,
            "passage": one.passage if one else None,
            "rank_before": one.before if one else None,
            "rank_after": one.after if one else None,
            "step": one.loss.step if one else None,
            "why": one.loss.kind if one else None,
            "told": one.loss.words if one else None,
            "relevant": self.relevant,
            "lost": [asdict(passage) for passage in self.lost],
            "gained": [asdict(passage) for passage in self.gained],
            "status_before": self.status[0],
            "status_after": self.status[1],
            "labels_changed": self.relabelled,
            "displaced_by": [one.document() for one in self.displaced],
        }


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The numbers of questions that are not compared, by reason; no question is counted twice."""

    only_before: int = 0
    only_after: int = 0
    text_changed: int = 0
    no_label_in_common: int = 0  # labelled in both, but no relevant passage is the same
    unlabelled: int = 0  # no relevant passage in at least one

    @property
    def total(self) -> int:
        """Return the total."""
        return sum(asdict(self).values())


@dataclass(frozen=True, slots=True)
class QuestionsDiff:
    """All questions that both have, in the second's order, and how many are left out."""

    questions: tuple[QuestionDiff, ...]
    left_out: LeftOut

    def of(self, change: Change) -> tuple[QuestionDiff, ...]:
        """Return the questions of one kind."""
        return tuple(one for one in self.questions if one.change == change)

    @property
    def exchanged(self) -> int:
        """Return the unchanged questions that lost as many relevant passages as they gained."""
        return sum(bool(one.lost) for one in self.of("unchanged"))

    @property
    def relabelled(self) -> int:
        """Return the questions that are compared by the labels that both have."""
        return sum(one.relabelled for one in self.questions)


def depth_of(metric: str) -> int:
    """Return the k of a metric: 10 for ndcg@10, and for one that names none."""
    found = re.search(r"@(\d+)$", metric)
    return int(found[1]) if found else DEPTH


def common_labels(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return the judgements that both have: same passage, same grade."""
    return {id: grade for id, grade in after.items() if before.get(id) == grade}


def questions_diff(before: Side, after: Side, depth: int) -> QuestionsDiff:
    """Compare two routes question by question; with the two exchanged, fixed and broken change places.

    Compared are questions of the same id and text with a relevant passage in common.
    """
    counts = dict.fromkeys(LeftOut.__dataclass_fields__, 0)
    counts["only_before"] = len(before.questions.keys() - after.questions.keys())
    found = []
    for id, now in after.questions.items():
        then = before.questions.get(id)
        if then is None:
            counts["only_after"] += 1
            continue
        if reason := _left_out(then, now, before.relevant_from, after.relevant_from):
            counts[reason] += 1
            continue
        found.append(_one(id, before, after, depth))
    return QuestionsDiff(tuple(found), LeftOut(**counts))


def _left_out(then: Asked, now: Asked, from_then: int, from_now: int) -> str:
    if then.text != now.text:
        return "text_changed"
    if not (_relevant(then.labels, from_then) and _relevant(now.labels, from_now)):
        return "unlabelled"
    return "" if relevant_in_both(then, now, max(from_then, from_now)) else "no_label_in_common"


def relevant_in_both(then: Asked, now: Asked, least: int) -> dict[str, int]:
    """Return the passages that both judged the same, with a grade of `least` or more."""
    return _relevant(common_labels(then.labels, now.labels), least)


def _relevant(labels: Mapping[str, int], least: int) -> dict[str, int]:
    return {id: grade for id, grade in labels.items() if grade >= least}


def _one(id: str, before: Side, after: Side, depth: int) -> QuestionDiff:
    then, now = before.questions[id], after.questions[id]
    relevant = relevant_in_both(then, now, max(before.relevant_from, after.relevant_from))
    was, is_ = (
        {passage for passage, rank in asked.ranks.items() if passage in relevant and rank <= depth}
        for asked in (then, now)
    )

    def changes(passages: Iterable[str], missing_in: Side) -> tuple[PassageChange, ...]:
        found = [
            PassageChange(
                one, relevant[one], then.ranks.get(one), now.ranks.get(one), missing_in.loss(id, one, depth)
            )
            for one in passages
        ]
        return tuple(sorted(found, key=lambda one: (-one.grade, one.found_at, one.passage)))

    change: Change = "unchanged"
    if len(was) != len(is_):
        change = "fixed" if len(is_) > len(was) else "broken"
    return QuestionDiff(
        id,
        now.text,
        now.mode,
        change,
        len(relevant),
        changes(was - is_, after),
        changes(is_ - was, before),
        (then.status, now.status),
        _relevant(then.labels, before.relevant_from) != _relevant(now.labels, after.relevant_from),
    )
