"""A model that assigns nuggets to answers, which counts only if it agrees with what people assign."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from core.backends.prompting.prompts import ASSIGN_NUGGETS
from core.domain.errors import BadInput, RouteScopeError, describe
from core.domain.relevance import SUPPORT
from core.evaluation.answers import Given, nugget_support
from core.evaluation.dataset import LabelledSet
from core.evaluation.judge.correction import LEAST, READABLE
from core.evaluation.judge.measure import Judging, check_model
from core.evaluation.judge.record import ENOUGH
from core.evaluation.labels.nuggets import answered, assigned
from core.evaluation.labels.suggest import annotator
from core.evaluation.outcome import Outcomes
from core.evaluation.statistics import kappa

if TYPE_CHECKING:
    from core.corpus.corpus import Corpus
    from core.engine.engine import Engine
    from core.evaluation.runner import Ended, Progress

LEVELS = tuple(SUPPORT)


def check_nuggets(engine: Engine, labelled: LabelledSet) -> None:
    """Raise BadInput if no question has a nugget that a person checked, Unavailable if there is no model."""
    check_model(engine)
    if not any(question.checked_nuggets for question in labelled.questions):
        raise BadInput(f"no question of {labelled.name} has a checked nugget; see Label, tab Nuggets")


def judged(
    engine: Engine, corpus: Corpus, labelled: LabelledSet, outcomes: Outcomes, ended: Ended, told: Progress
) -> tuple[LabelledSet, dict[str, Any]]:
    """Return the questions with the model's assignments of their nuggets to all answers, and the part
    "nuggets" of metrics.json. If its agreement with people is not shown, they stay as they are: Cohen's kappa
    over the three levels, on the pairs that people assigned, must be above `ENOUGH` at the lower end of its
    interval. The part is {} if `ended` before the last answer.
    """
    asked = [one for one in labelled.questions if one.id in outcomes and one.checked_nuggets]
    wanted = [(question, text) for question in asked for text in answered(outcomes[question.id])]
    judging, by = Judging(engine, corpus, threading.Event()), annotator(engine)
    found = {one.id: one for one in labelled.questions}
    pairs: list[tuple[str, int, int]] = []
    for done, (question, text) in enumerate(wanted):
        if ended():
            return labelled, {}
        told(done * len(asked) // len(wanted), len(asked))
        facts = tuple(one.text for one in question.checked_nuggets)
        try:
            levels = judging.ask(lambda do: (do.assign_nuggets(question.query.text, text, facts), ""))  # noqa: B023
        except RouteScopeError as error:
            judging.unscored, judging.why = len(wanted), describe(error)
            break
        for fact, level in zip(question.checked_nuggets, levels or (), strict=False):
            found[question.id] = assigned(found[question.id], fact.text, text, by, level)
            if (person := nugget_support(fact, Given(text), people=True)) is not None:
                pairs.append((question.id, LEVELS.index(person), LEVELS.index(level)))
    agreed = kappa(pairs, range(len(LEVELS))) if pairs else None
    ends = agreed.ci95 if agreed else None
    refused = ""
    if judging.unscored > (1 - READABLE) * len(wanted):
        refused = f"{judging.unscored} of {len(wanted)} replies could not be read: {judging.why}"
    elif len(pairs) < LEAST:
        refused = f"people assigned {len(pairs)} of its pairs, and it takes {LEAST} (page Label, tab Nuggets)"
    elif ends is None or ends[0] <= ENOUGH:  # so if it says the same of every nugget
        refused = f"the lower end of the interval of kappa must be above {ENOUGH:g}"
    about = {
        "by": by,
        "prompt": ASSIGN_NUGGETS.name,
        "questions": len(asked),
        "without": len(outcomes.keys() & found.keys()) - len(asked),
        "answers": len(wanted),
        "unread": judging.unscored,
        "pairs": len(pairs),
        "kappa": agreed.value if agreed else None,
        "kappa_ci95": ends,
        "refused": refused,
    }
    return labelled if refused else replace(labelled, questions=tuple(found.values())), about
