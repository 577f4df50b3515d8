"""On which questions a threshold, weights or a value is chosen, and on which it is shown to hold."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from core.domain.errors import BadInput
from core.evaluation.dataset import LabelledSet

SEED = 13
LEAST = 20  # questions below which halves tell nothing
DEV, TEST, ALL = "dev", "test", "all"


@dataclass(frozen=True, slots=True)
class Split:
    """`chosen_on` and `held_out` are question ids in order; `said` is how they were divided, in words, and
    `names` what the two are called. `made`: halves drawn with a seed, for lack of splits.
    """

    chosen_on: tuple[str, ...]
    held_out: tuple[str, ...]
    said: str
    names: tuple[str, str] = ("dev questions", "test questions")
    made: bool = False


def names(labelled: LabelledSet, ids: Sequence[str]) -> list[str]:
    """The splits of the questions `ids`, "all" last."""
    return [*sorted({q.split or ALL for q in labelled.questions if q.id in set(ids)} - {ALL}), ALL]


def split(labelled: LabelledSet, ids: Sequence[str] | None = None, on: str | None = None) -> Split:
    """The questions `ids` (all without) divided as their authors did: "dev" to choose on, "test" to show it
    on. Without both, halves drawn with a fixed seed; with fewer than 20 questions all to choose on and none
    held out.

    `on` names the split to choose on in place of that: all others are held out, none of "all". BadInput for
    one that no question is of.
    """
    of = {question.id: question.split for question in labelled.questions}
    ids = list(of) if ids is None else ids
    if on is not None:
        return _on(labelled, ids, on)
    dev, test = ([id for id in ids if of[id] == name] for name in (DEV, TEST))
    if dev and test:
        other = len(ids) - len(dev) - len(test)
        rest = f"; {other} of other splits are excluded" if other else ""
        return Split(tuple(dev), tuple(test), f"split dev to choose on, split test held out{rest}")
    if len(ids) < LEAST:
        return Split(tuple(ids), (), f"fewer than {LEAST} questions: none are held out",
                     ("labelled questions", "held-out questions"))  # fmt: skip
    drawn = set(random.Random(SEED).sample(sorted(ids), len(ids) // 2))
    return Split(
        tuple(id for id in ids if id in drawn), tuple(id for id in ids if id not in drawn),
        "dev or test is missing: two halves, split with a fixed seed",
        ("questions of the first half", "questions of the second half"), True,
    )  # fmt: skip


def _on(labelled: LabelledSet, ids: Sequence[str], on: str) -> Split:
    known = names(labelled, ids)
    if on not in known:
        raise BadInput(f"no labelled question is of split {on!r}; there are: {', '.join(known)}")
    of = {question.id: question.split for question in labelled.questions}
    own = tuple(id for id in ids if on in (ALL, of[id]))
    rest = tuple(id for id in ids if on not in (ALL, of[id]))
    said = "all questions to choose on, none held out" if on == ALL else f"split {on} to choose on"
    return Split(own, rest, said, (f"{on} questions", "held-out questions"))
