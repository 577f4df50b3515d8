"""On which questions a value is chosen, and on which it is shown to hold."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from core.evaluation.dataset import LabelledSet

SEED = 13
LEAST = 20  # questions below which halves tell nothing


@dataclass(frozen=True, slots=True)
class Split:
    """`chosen_on` and `held_out` are question ids in order; `said` is how they were divided, in words, and
    `names` what the two are called.
    """

    chosen_on: tuple[str, ...]
    held_out: tuple[str, ...]
    said: str
    names: tuple[str, str] = ("dev questions", "test questions")


def split(labelled: LabelledSet, ids: Sequence[str]) -> Split:
    """The questions `ids` divided as their authors did: "dev" to choose on, "test" to show it on.

    Without both, halves drawn with a fixed seed; with fewer than 20 questions all to choose on and none held
    out.
    """
    of = {question.id: question.split for question in labelled.questions}
    dev, test = ([id for id in ids if of[id] == name] for name in ("dev", "test"))
    if dev and test:
        other = len(ids) - len(dev) - len(test)
        rest = f"; {other} of other splits are left out" if other else ""
        return Split(tuple(dev), tuple(test), f"split dev to choose on, split test held out{rest}")
    if len(ids) < LEAST:
        return Split(tuple(ids), (), f"fewer than {LEAST} questions: none are held out",
                     ("labelled questions", "held-out questions"))  # fmt: skip
    drawn = set(random.Random(SEED).sample(sorted(ids), len(ids) // 2))
    return Split(
        tuple(id for id in ids if id in drawn), tuple(id for id in ids if id not in drawn),
        "not of both splits, dev and test: halves drawn with a fixed seed", 
        ("questions of the first half", "questions of the second half"),
    )  # fmt: skip
