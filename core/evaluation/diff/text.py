"""A diff in words."""

from __future__ import annotations

from collections.abc import Callable

from core.analysis.metrics import titled
from core.evaluation.diff.evaluations import EvaluationsDiff, RouteDiff
from core.evaluation.diff.questions import PassageChange, QuestionDiff, QuestionsDiff
from core.evaluation.finding import compared, sentence
from core.evaluation.templating import say, sentences


def rule(depth: int) -> str:
    """Explain the words broken, fixed and unchanged."""
    return say("diff.rule", depth)


def route_name(one: RouteDiff) -> str:
    """Return the route, or both if they differ."""
    return one.before if one.before == one.after else f"{one.before} then, {one.after} now"


def summary(
    found: EvaluationsDiff, one: RouteDiff, title: Callable[[str], str] = lambda route: route
) -> list[str]:
    """Return lines on one route: the counts with McNemar's p, then the difference of the means."""
    now, then = f"{title(one.after)} in {found.after}", f"{title(one.before)} in {found.before}"
    difference = sentence(compared(one.difference, now, then, titled(found.metric)))
    return sentences("diff.summary", one, difference)


def passage_change(one: PassageChange) -> str:
    """Return the passage, its ranks, and the step that lost it if it was not found."""
    return say("diff.passage", one)


def moved(one: PassageChange) -> str:
    """Return its rank before and after."""
    return say("diff.moved", one)


def cause(one: PassageChange) -> str:
    """Return the cause of the loss and the step; "not recorded" if that is not known."""
    return say("diff.cause", one)


def broken(found: QuestionsDiff) -> list[str]:
    """Return a sentence for each broken question, at most twenty, and how many more there are."""
    return sentences("diff.broken", found)


def decisive(question: QuestionDiff) -> str:
    """Return the passage that broke or fixed a question, or "" if it is unchanged."""
    return "" if question.decisive is None else passage_change(question.decisive)


def displaced(question: QuestionDiff) -> list[str]:
    """Return a sentence for each passage that new or changed documents displaced."""
    return [say("diff.displaced", question.id, one) for one in question.displaced]
