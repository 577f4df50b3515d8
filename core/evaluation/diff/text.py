"""A diff in words."""

from __future__ import annotations

from collections.abc import Callable

from core.analysis.metrics import titled
from core.domain.format import p_value
from core.evaluation.diff.evaluations import EvaluationsDiff, RouteDiff
from core.evaluation.diff.questions import PassageChange, QuestionDiff, QuestionsDiff
from core.evaluation.finding import compared, count, sentence

RULE = (
    "A relevant passage is found if it is among the first {k} of the ranking. A question is broken if fewer "
    "of its relevant passages are found than before, fixed if more are, and unchanged if as many are."
)


def rule(depth: int) -> str:
    """Explain the words broken, fixed and unchanged."""
    return RULE.format(k=depth)


def route_name(one: RouteDiff) -> str:
    """Return the route, or both if they differ."""
    return one.before if one.before == one.after else f"{one.before} then, {one.after} now"


def summary(
    found: EvaluationsDiff, one: RouteDiff, title: Callable[[str], str] = lambda route: route
) -> list[str]:
    """Return lines on one route: the counts with McNemar's p, then the difference of the means."""
    questions = one.questions
    counts = ", ".join(f"{len(questions.of(change))} {change}" for change in ("broken", "fixed", "unchanged"))
    told = [f"{counts} of {count(len(questions.questions))} (exact McNemar test, {p_value(one.mcnemar_p)})."]
    if questions.exchanged:
        told.append(f"{questions.exchanged} of the unchanged lost as many relevant passages as they gained.")
    now, then = f"{title(one.after)} in {found.after}", f"{title(one.before)} in {found.before}"
    told.append(sentence(compared(one.difference, now, then, titled(found.metric))))
    failed = [sum(pair[side] != "ok" for pair in (q.status for q in questions.questions)) for side in (0, 1)]
    if any(failed):
        told.append(
            f"The route failed on {failed[0]} questions before and {failed[1]} after: it found nothing "
            "there, and the means leave them out."
        )
    return told


def passage_change(one: PassageChange) -> str:
    """Return the passage, its ranks, and the step that lost it if it was not found."""
    when = "" if is_lost(one) else "Before: "
    step = f" Step: {one.loss.step}." if one.loss.step else ""
    return f"{one.passage}: {moved(one)}. {when}{one.loss.words}{step}"


def is_lost(one: PassageChange) -> bool:
    """Return whether it was found before and is not now; otherwise it is the reverse."""
    return one.after is None or (one.before is not None and one.before < one.after)


def moved(one: PassageChange) -> str:
    """Return its rank before and after."""
    then, now = (f"rank {rank}" if rank is not None else "not ranked" for rank in (one.before, one.after))
    return f"{then}, now {now}"


def cause(one: PassageChange) -> str:
    """Return the cause of the loss and the step; "not recorded" if that is not known."""
    return one.loss.kind + (f" ({one.loss.step})" if one.loss.step else "")


def broken(found: QuestionsDiff, most: int = 20) -> list[str]:
    """Return a sentence for each broken question, at most `most`, and how many more there are."""
    all_ = found.of("broken")
    told = [f"Broke: {one.id} “{one.text[:120]}”: {decisive(one)}" for one in all_[:most]]
    return told + ([f"{len(all_) - most} more broke."] if len(all_) > most else [])


def decisive(question: QuestionDiff) -> str:
    """Return the passage that broke or fixed a question, or "" if it is unchanged."""
    one = question.decisive
    return "" if one is None else passage_change(one)
