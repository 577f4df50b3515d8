"""A label set of questions that were asked elsewhere: sampled from imported runs, their passages pooled."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

from core.domain.errors import BadInput
from core.domain.types import Query, Run
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels.pool import from_runs
from core.store import Store

SAMPLE = 100  # questions: what two people label in a day


def check_name(store: Store, name: str) -> None:
    """Raise BadInput if there is a label set of that name, before anything is imported for it."""
    if name in {one.name for one in desks.sets(store)}:
        raise BadInput(f"there is a label set {name!r} already; choose another name")


def from_requests(
    store: Store, name: str, runs: Sequence[Run], *, sample: int = SAMPLE, seed: int = 13
) -> int:
    """Make a label set of up to `sample` different questions of `runs`, drawn with `seed`, in the order in
    which they were asked; give their number. What the runs found for them is in its pool.
    """
    if sample < 1:
        raise BadInput(f"a sample of {sample} questions; give 1 or more")
    asked = list(dict.fromkeys(run.query for run in runs if len(run.query.text) <= desks.MAX_QUESTION))
    if not asked:
        raise BadInput("no question to make a label set of was imported")
    chosen = set(random.Random(seed).sample(range(len(asked)), min(sample, len(asked))))
    questions = [Question(question_id(query), query) for at, query in enumerate(asked) if at in chosen]
    desks.create(store, name, runs[0].corpus, questions)
    wanted = {question.query for question in questions}
    from_runs(store, name, [run for run in runs if run.query in wanted])
    return len(questions)


def question_id(query: Query) -> str:
    """Return an id that is the same whenever this question is asked after the same turns."""
    told = "\0".join((query.text, *(turn.text for turn in query.history)))
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:12]
