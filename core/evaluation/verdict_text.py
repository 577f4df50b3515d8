"""A verdict in words: the same sentences on pages, in reports, in comments and in the terminal."""

from __future__ import annotations

from collections.abc import Callable

from core.evaluation.pairs import Pair
from core.evaluation.templating import say, sentences
from core.evaluation.verdict import Verdict

Named = Callable[[str], str]  # the title of a route


def headline(found: Verdict, named: Named, metric: str, of: str = "") -> str:
    """Return what to ship, or what is known if that is not decided, in one sentence.

    `metric` is the metric's title, and `of` the set and corpus.
    """
    return say("verdict.headline", found, named, metric, of)


def leader(found: Verdict, named: Named, metric: str) -> str:
    """Return a sentence naming the leader and the number of routes not shown to differ from it."""
    return say("verdict.leader", found, named, metric)


def details(found: Verdict, named: Named) -> list[str]:
    """Return the sentences after the headline: the reasons, the closest comparison and who is shown worse."""
    return sentences("verdict.details", found, named)


def compared(pair: Pair, named: Named) -> str:
    """Return one comparison with the interval that the verdict rests on."""
    return say("verdict.compared", pair, named)
