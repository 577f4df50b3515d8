"""A decision in words: which route, what the verdict rests on, and which limits are missed if none passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from core.analysis.metrics import titled
from core.domain.format import milliseconds, number
from core.evaluation import equal_routes, verdict_text
from core.evaluation.finding import count, listed
from core.evaluation.release.checks import NO_LOSS, Check, quantity, share
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import Candidate, Decision
from core.evaluation.release.rule import SHOWN
from core.routes.registry import routes

MOST: Mapping[str, Callable[[float], str]] = {  # criteria whose limit is an upper one, and their figures
    "p95": milliseconds,
    "cost of 1,000 questions": quantity,
    "tokens a question": quantity,
    "model calls a question": quantity,
    "failed": share,
    "unjudged of the first ten": share,
}


def headline(decision: Decision) -> str:
    """Return the first sentence: what to ship, or what is known if that is not decided."""
    return verdict_text.headline(
        decision.verdict, decision.titled, titled(decision.criteria.metric), of(decision)
    )


def of(decision: Decision) -> str:
    """Return the set and the corpus that a decision is about."""
    if decision.corpus in ("", decision.dataset):
        return decision.dataset
    return f"{decision.dataset} on {decision.corpus}"


def every(decision: Decision) -> list[str]:
    """Return all sentences: what its questions are if a model wrote them, then the headline."""
    sentences = [
        decision.generated,
        headline(decision),
        *regressed(decision),
        *why(decision),
        *equal(decision),
    ]
    return [one for one in sentences if one]


def standing(decision: Decision, one: Candidate) -> str:
    """Return the outcome for one route in a word or two."""
    verdict = decision.verdict
    if one.route == verdict.chosen:
        return "ship"
    if one.route in verdict.equivalent:
        return "equivalent"
    if not one.passes:
        return "does not pass" if one.fails else SHOWN["cannot be told"]
    if verdict.best_so_far and one.route == verdict.best_so_far.route and verdict.chosen is None:
        return "best so far"
    return "shown worse" if one.route in verdict.behind else "passes"


def why(decision: Decision) -> list[str]:
    """Return the sentences after the headline: what the verdict rests on, the cost, or what routes miss."""
    sentences = verdict_text.details(decision.verdict, decision.titled)
    if decision.chosen is not None:
        return [*sentences, f"It costs {expense(decision.of(decision.chosen))}."]
    nearest = decision.of(decision.nearest)
    if not nearest.passes:
        sentences.append(f"The nearest route is {nearest.title}. It misses {lacking(nearest)}.")
    others = [text for one in decision.candidates if (text := _open(one)) and one != nearest]
    return sentences + others[:3]


def lacking(one: Candidate) -> str:
    """Return every criterion that a route does not meet, with its figure; "no criterion" if it passes."""
    missed = [check for check in one.checks if check.state != "passed"]
    return "; ".join(f"{check.name}: {missing(check)}" for check in missed) or "no criterion"


def missing(check: Check) -> str:
    """Return why one criterion is not met."""
    if check.state == "cannot be told":
        return f"{SHOWN[check.state]}, {check.told}"
    if check.limit is None or check.name == NO_LOSS:
        return check.told
    return f"{check.told}, required {limit(check)}"


def limit(check: Check) -> str:
    """Return the limit of a criterion: "at most 1.0 s", "at least 0.39", or "" without one."""
    if check.limit is None or check.name == NO_LOSS:
        return ""
    return f"at {'most' if check.name in MOST else 'least'} {MOST.get(check.name, quantity)(check.limit)}"


def brief(check: Check) -> str:
    """Return the figure of a criterion, or what stands for it."""
    if check.name == NO_LOSS:
        if check.state == "failed":
            return f"{count(int(check.value or 0), 'kinds')} worse"
        return "none shown" if check.state == "passed" else "?"
    return "?" if check.value is None else MOST.get(check.name, number)(check.value)


def expense(one: Candidate) -> str:
    """Time and model use of a route."""
    p50, p95 = ("?" if value is None else milliseconds(value) for value in (one.p50_ms, one.p95_ms))
    latency = f"p50 {p50}, p95 {p95}"
    if not one.calls:
        return f"{latency}, and makes no model calls"
    tokens = "an unknown number of" if one.tokens is None else quantity(one.tokens)
    usage = f"{latency}, {quantity(one.calls)} model calls and {tokens} tokens per question"
    return usage + (
        "; no prices are set" if one.cost is None else f"; {quantity(one.cost)} for 1,000 questions"
    )


def regressed(decision: Decision) -> list[str]:
    """Return sentences on the questions that people complained about: a headline, then a sentence for each
    that is broken.
    """
    found = decision.regressions
    if found is None:
        return []
    broken = [f"Broke again: {one.in_words()}." for one in found.broken]
    untold = [f"Cannot be determined: {one.in_words()}." for one in found.of("cannot be told")]
    return [found.headline(decision.of(found.route).title), *broken, *untold]


def equal(decision: Decision) -> list[str]:
    """Return the routes that are one, and those that alone were planned to be compared, a sentence each."""
    titles = {name: known.title for name, known in routes().items()}
    titles |= {one.route: one.title for one in decision.candidates}

    def named_(route: str) -> str:
        return titles.get(route, route)

    texts = [
        f"{equal_routes.sentence(one, named_)} {named_(one.route)} is the candidate, the simplest by "
        f"{equal_routes.RULE}."
        for one in decision.equal
    ]
    if decision.planned:
        texts.append(
            f"Planned comparison: {listed([*map(named_, decision.planned)])} with "
            f"{named_(decision.baseline)}. Other measured routes are not candidates and count in no "
            f"correction."
        )
    return texts


def asked(criteria: Criteria) -> list[str]:
    """Return the criteria, one phrase each."""
    phrases = [f"best by {titled(criteria.metric)}"]
    if criteria.minimum is not None:
        phrases[0] = f"{titled(criteria.metric)} of at least {criteria.minimum:g}"
    for value, name, in_words in (
        (criteria.max_p95_ms, "p95 of at most", milliseconds),
        (criteria.max_cost, "1,000 questions cost at most", number),
        (criteria.max_tokens, "tokens per question at most", number),
        (criteria.max_calls, "model calls per question at most", number),
        (criteria.max_failed, "failed at most", share),
        (criteria.max_unjudged, "unjudged of the first ten at most", share),
    ):
        if value is not None:
            phrases.append(f"{name} {in_words(value)}")
    if criteria.no_loss:
        phrases.append("not shown to be worse than the baseline on any kind of question")
    phrases.append(f"margin {criteria.margin:g}")
    if criteria.min_questions is not None:
        phrases.append(f"scored questions at least {criteria.min_questions}")
    if criteria.unlike_machines:
        phrases.append("times of unlike machines allowed")
    return phrases


def _open(one: Candidate) -> str:
    """Describe what is undetermined for a route that fails no criterion."""
    if one.fails or one.passes:
        return ""
    return f"{one.title} fails no criterion, but {lacking(one)}."
