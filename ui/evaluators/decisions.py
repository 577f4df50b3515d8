"""The way each route took, with every decision in order and the ways not taken, and the drafts it judged."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from core.analysis.answers import decisions, forced, warned, writing
from core.analysis.run_view import Recorded
from core.analysis.what_if.grading import gates
from core.domain.outputs import Decided, Decision, Selection
from core.domain.types import RouteResult, Run
from ui.app.markup import fragment, tag
from ui.components.rewrites import word_diff

FEATURES = 8  # that are shown, those that count most
WORDS = {"kept": "unchanged", "changed": "verdict changed", "added": "new"}
NO_DECISION = "No route of this run made a decision: none branches or loops."


def path(run: Run) -> Markup:
    """Return the decisions of every route in order, or a note if no route decided anything.

    Routes with a single decision come last, folded.
    """
    told = [(result, warned(result), _steps(result)) for result in run.results]
    told = [one for one in told if one[1] or one[2]]
    if not told:
        return tag("div", NO_DECISION, css="rs dim")
    alone = [one for one in told if len(one[2]) == 1 and not one[1]]
    several = [one for one in told if len(one[2]) != 1 or one[1]]
    return fragment("evaluators.path", several, alone)


def _steps(result: RouteResult) -> list[tuple[Any, ...]]:
    """Return each decision: its step, output, what an audit forced, its score, and what it weighed."""
    scored = {gate.span.id: gate for gate in gates(result)}
    return [
        (one.span, one.output, forced(one.span), scored.get(one.span.id), *_weighed(one))
        for one in decisions(result)
    ]


def _weighed(one: Recorded[Decided | Selection]) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Return the class probabilities and the features that separated the two most likely classes."""
    decided = one.output
    if not isinstance(decided, Decision) or not decided.weighed:
        return [], []
    shares = sorted(decided.scores.items(), key=lambda item: -item[1])
    most = max(abs(each.part) for each in decided.weighed) or 1.0
    counted = [each for each in decided.weighed if each.part][:FEATURES]
    return [(name, "", share, f"{share:.2f}") for name, share in shares], [
        (each.feature, f"{each.value:.3g}", each.part / most, f"{each.part:+.2f}") for each in counted
    ]


def drafts(run: Run) -> Markup:
    """Return every draft of routes that judged their drafts, or a note if none did."""
    routes = []
    for result in run.results:
        if found := writing(result):
            written = [one.output.draft for one in found.drafts]
            changes = [written[0], *map(word_diff, written, written[1:])]
            routes.append((result, found, list(zip(found.drafts, changes, strict=True))))
    if not routes:
        return tag("div", "No route of this run revised an answer or judged a draft.", css="rs dim")
    return fragment("evaluators.drafts", routes, WORDS)
