"""A decision in words: which route, what the verdict rests on, and which limits are missed if none passes."""

from __future__ import annotations

from core.evaluation.release.checks import Candidate, Check
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import Decision
from core.evaluation.templating import say, sentences


def headline(decision: Decision) -> str:
    """Return the first sentence: what to ship, or what is known if that is not decided."""
    return say("decision.headline", decision)


def every(decision: Decision) -> list[str]:
    """Return all sentences: what its questions are if a model wrote them, then the headline."""
    return sentences("decision.every", decision)


def why(decision: Decision) -> list[str]:
    """Return the sentences after the headline: what the verdict rests on, the cost, or what routes miss."""
    return sentences("decision.why", decision)


def equal(decision: Decision) -> list[str]:
    """Return the routes that are one, and those that alone were planned to be compared, a sentence each."""
    return sentences("decision.equal", decision)


def asked(criteria: Criteria) -> list[str]:
    """Return the criteria, one phrase each."""
    return sentences("decision.asked", criteria)


def standing(decision: Decision, one: Candidate) -> str:
    """Return the outcome for one route in a word or two."""
    return say("decision.standing", decision, one)


def lacking(one: Candidate) -> str:
    """Return every criterion that a route does not meet, with its figure; "no criterion" if it passes."""
    return say("decision.lacking", one)


def missing(check: Check) -> str:
    """Return why one criterion is not met."""
    return say("decision.missing", check)


def limit(check: Check) -> str:
    """Return the limit of a criterion: "at most 1.0 s", "at least 0.39", or "" without one."""
    return say("decision.limit", check)


def brief(check: Check) -> str:
    """Return the figure of a criterion, or what stands for it."""
    return say("decision.brief", check)
