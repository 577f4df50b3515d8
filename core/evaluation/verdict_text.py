"""A verdict in words: the same sentences on pages, in reports, in comments and in the terminal."""

from __future__ import annotations

from collections.abc import Callable

from core.domain.format import number
from core.evaluation.finding import count, listed
from core.evaluation.pairs import Pair
from core.evaluation.power import rounded
from core.evaluation.verdict import BestSoFar, Verdict

Named = Callable[[str], str]  # the title of a route
LEAST = 10  # questions from which their spread says how many more decide; fewer give a lower bound


def headline(found: Verdict, named: Named, metric: str, of: str = "") -> str:
    """Return what to ship, or what is known if that is not decided, in one sentence.

    `metric` is the metric's title, and `of` the set and corpus.
    """
    rests = f"({metric}, {count(found.questions, 'scored questions')}{f' of {of}' if of else ''})"
    margin = number(found.margin)
    if found.decision == "equivalent":
        routes = [*map(named, found.equivalent)]
        return (
            f"Ship any of {listed(routes)}: equivalent within {margin}; {routes[0]} is the cheapest {rests}."
        )
    if found.chosen is not None:
        return f"Ship {named(found.chosen)}: {_why(found)} {rests}."
    if found.decision == "none":
        return f"Nothing passes: every route misses a limit{f' ({of})' if of else ''}."
    if found.best_so_far is None:
        return f"Not enough evidence {rests}."
    return f"Not enough evidence: best so far is {_best(found.best_so_far, named)}{_more(found)} {rests}."


def details(found: Verdict, named: Named) -> list[str]:
    """Return the sentences after the headline: the reasons, the closest comparison and who is shown worse."""
    sentences = [] if found.decision in ("ship", "none") else [one.text for one in found.reasons]
    if found.pairs:
        sentences.append(compared(found.pairs[0], named))
    if found.excluded and found.decision != "none":
        sentences.append(
            f"Not candidates, as they failed or miss a limit: {listed([*map(named, found.excluded)])}."
        )
    best = found.best_so_far
    if best is not None and found.pairs:
        worse = len(found.behind)
        routes = count(worse, "routes")
        sentences.append(
            f"{routes[0].upper()}{routes[1:]} {'is' if worse == 1 else 'are'} shown to be worse than "
            f"{named(best.route)}."
            if worse
            else f"No route is shown to be worse than {named(best.route)}."
        )
    return sentences


def compared(pair: Pair, named: Named) -> str:
    """Return one comparison with the interval that the verdict rests on."""
    low, high = number(pair.low, signed=True), number(pair.high, signed=True)
    return (
        f"{named(pair.route)} minus {named(pair.other)}: {number(pair.delta, signed=True)} "
        f"(95% interval {low} to {high}, {count(pair.n)})."
    )


def _why(found: Verdict) -> str:
    reason = found.reasons[0].id if found.reasons else ""
    if reason == "only-route":
        return "the only route that meets the limits"
    if reason == "better-than-all":
        return "better than every other route"
    return f"at most {number(_shown(found))} worse than any other route"


def _shown(found: Verdict) -> float:
    return max(0.0, -min((one.low for one in found.pairs), default=0.0))


def _best(best: BestSoFar, named: Named) -> str:
    known = f"{named(best.route)} ({number(best.mean)})"
    if best.rival is None or best.shown_margin is None:
        return known
    if best.shown_margin == 0:
        return f"{known}, better than every other route"
    return f"{known}, at most {number(best.shown_margin)} worse than any other route"


def _more(found: Verdict) -> str:
    if found.more_questions is None:
        return ""
    few = found.questions < LEAST or not found.pairs or not found.pairs[0].sd
    questions = f"{'at least' if few else 'about'} {count(rounded(found.more_questions), 'more questions')}"
    return f"; {questions} would decide at {number(found.margin)}"
