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
OTHER = "outside split test"
HELD_OUT = "held-out questions"


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
    """Return the splits of the questions `ids`, "all" last."""
    return [*sorted({q.split or ALL for q in labelled.questions if q.id in set(ids)} - {ALL}), ALL]


def split(labelled: LabelledSet, ids: Sequence[str] | None = None, on: str | None = None) -> Split:
    """Return the questions `ids` (default: all) divided: nothing is chosen on the split "test". If some
    questions are of "test", choose on "dev", or else on all others, and hold "test" out. Otherwise draw
    halves with a fixed seed; with fewer than 20 questions choose on all and hold none out. `on` names the
    split to choose on instead: all others are held out, none with "all"; if every question is of "test",
    halves. Raises BadInput for a split without questions, and without `on` if all are of "test".
    """
    of = {question.id: question.split for question in labelled.questions}
    ids = list(of) if ids is None else ids
    if on is not None and not (on == TEST and all(of[id] == TEST for id in ids)):
        return _on(labelled, ids, on)
    if on is None and (test := tuple(id for id in ids if of[id] == TEST)):
        name = DEV if DEV in (of[id] for id in ids) else ""
        chosen = tuple(id for id in ids if (of[id] == DEV if name else of[id] != TEST))
        if not chosen:
            raise BadInput(
                f"all {len(ids)} questions are of split test, which is kept for the final measurement; name "
                "the split test to choose on half of them all the same"
            )
        other = len(ids) - len(chosen) - len(test)
        rest = f"; {other} of other splits are excluded" if other else ""
        what = "split dev" if name else "questions outside split test"
        return Split(chosen, test, f"{what} to choose on, split test held out{rest}")
    if len(ids) < LEAST:
        said, called = f"fewer than {LEAST} questions: none are held out", ("labelled questions", HELD_OUT)
        return Split(tuple(ids), (), said, called)
    drawn = set(random.Random(SEED).sample(sorted(ids), len(ids) // 2))
    halves = tuple(id for id in ids if id in drawn), tuple(id for id in ids if id not in drawn)
    called = "questions of the first half", "questions of the second half"
    return Split(*halves, "two halves, split with a fixed seed", called, True)


def _on(labelled: LabelledSet, ids: Sequence[str], on: str) -> Split:
    known = names(labelled, ids)
    of = {question.id: question.split for question in labelled.questions}
    if on == OTHER and any(of[id] != TEST for id in ids):
        return split(labelled, ids)
    if on not in known:
        raise BadInput(f"no labelled question is of split {on!r}; there are: {', '.join(known)}")
    own = tuple(id for id in ids if on in (ALL, of[id]))
    rest = tuple(id for id in ids if on not in (ALL, of[id]))
    said = "all questions to choose on, none held out" if on == ALL else f"split {on} to choose on"
    return Split(own, rest, said, (f"{on} questions", HELD_OUT))
