"""The difference between two runs in words: first whether it is one question, then each route and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from core.analysis.run_diff import RunDiff, RunRouteDiff
from core.analysis.trace_diff import MISSING, ChangedValue, RankingDiff, StepDiff

LONG = 60  # characters of a value
ASKED = {
    "question": "the question differs",
    "history": "the conversation before it differs",
    "corpus": "the corpus differs",
    "fingerprint": "the corpus was reindexed",
}


def headline(diff: RunDiff) -> str:
    """One or two sentences: what was asked, with which settings, and in how many routes it shows."""
    if diff.same:
        return "The two runs differ only in their times."
    changed = {change.name: change for change in diff.asked}
    parts = ["Different question" if "question" in changed else "Same question"]
    if "history" in changed:
        parts.append("after a different conversation")
    if "corpus" in changed:
        parts.append(f"in a different corpus ({was(changed['corpus'])})")
    elif "fingerprint" in changed:
        parts.append("in a corpus that was reindexed in between")
    parts.append(f"with {_settings(diff.settings)}")
    return f"{' '.join(parts)}. {_routes(diff)}"


def why(diff: RunDiff, route: RunRouteDiff) -> str:
    """Return why a route differs: its parameters, its inputs, or the first step with another result."""
    if route.parameters:
        return f"because {'; '.join(was(change) for change in route.parameters)}"
    apart = next((step for step in route.steps if not step.same), None)
    asked = [ASKED[change.name] for change in diff.asked if change.name in ASKED]
    if asked:
        return f"because {' and '.join(asked)}"
    if apart is None:
        return "though no step differs"
    return f"from {_step(route, apart)}"


def came_to(route: RunRouteDiff) -> str:
    """Describe the change of a route's result."""
    status = next((was(change) for change in route.result if change.name == "status"), None)
    if status is not None:  # all else follows from it
        error = route.after.error or route.before.error
        return f"{status}: {value(error)}" if error else status
    parts = [was(change) for change in route.result if change.name == "abstained"]
    parts += ["different answer" for change in route.result if change.name == "answer"]
    if not route.ranking.same:
        parts.append(ranking(route.ranking))
    if parts:
        return "; ".join(parts)
    return "different citations or error" if route.result else "same result"


def ranking(diff: RankingDiff) -> str:
    """Describe moves in the top 10, the first rank that differs, and the overlap."""
    if diff.first is None:
        if not diff.scores:
            return "same ranking"
        return f"same order, different scores for {diff.scores} passage{'s' * (diff.scores != 1)}"
    counts = {str(kind): count for kind, count in diff.counts.items()} | {"lost": diff.lost}
    moved = ", ".join(f"{counts[kind]} {kind}" for kind in ("better", "worse", "new", "lost") if counts[kind])
    top = f"top 10: {moved}" if moved else "same top 10"
    return f"{top}; first difference at rank {diff.first}; Jaccard@10 {diff.overlap:.2f}"


def was(change: ChangedValue) -> str:
    """`name` was this and is that; of a list, what it lost and gained."""
    old, new = change.before, change.after
    if isinstance(old, list | tuple) and isinstance(new, list | tuple) and (old or new):
        lost, gained = ([one for one in a if one not in b] for a, b in ((old, new), (new, old)))
        if lost or gained:
            parts = [f"lost {_list(lost)}"] * bool(lost) + [f"gained {_list(gained)}"] * bool(gained)
            return f"`{change.name}` {' and '.join(parts)}"
    return f"`{change.name}` was {value(change.before)} and is {value(change.after)}"


def value(given: Any) -> str:
    """Return a value in a sentence, cut if it is long."""
    if given is MISSING:
        return "not set"
    line = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=repr)
    line = " ".join(line.split()) or "empty"
    return line if len(line) <= LONG else f"{line[: LONG - 1]}…"


def _list(items: Sequence[Any]) -> str:
    return ", ".join(map(value, items[:5])) + (f" and {len(items) - 5} more" if len(items) > 5 else "")


def _settings(settings: Sequence[ChangedValue]) -> str:
    if not settings:
        return "the same settings"
    return f"{_count(len(settings), 'setting')} changed: {'; '.join(map(was, settings))}"


def _routes(diff: RunDiff) -> str:
    sentences = []
    differing, both = diff.differing, _count(len(diff.routes), "route")
    results = [route.before.title for route in differing if not route.same_result]
    others = len(differing) - len(results)
    if not diff.routes:
        sentences.append("The runs have no route in common.")
    elif not differing:
        sentences.append(f"{both} in both runs, none differs.")
    else:
        named = f": {_list(results)}" if results else ""
        sentences.append(f"{len(results)} of {both} gave a different result{named}.")
        if others:
            counted = f"{others} more" if results else _count(others, "route")
            sentences.append(f"{counted} differ{'s' * (others == 1)} only in parameters or steps.")
    for alone_in, which in ((diff.only_before, "first"), (diff.only_after, "second")):
        if alone_in:
            sentences.append(f"Only in the {which} run: {', '.join(result.title for result in alone_in)}.")
    return " ".join(sentences)


def _step(route: RunRouteDiff, apart: StepDiff) -> str:
    number = route.steps.index(apart) + 1
    span = apart.before or apart.after
    named = f"step {number}, “{span.name if span else ''}”"
    if apart.before is None or apart.after is None:
        return f"{named}, only in the {'second' if apart.before is None else 'first'} run"
    if apart.inputs:
        return f"{named}, different input: {'; '.join(change.name for change in apart.inputs)}"
    if apart.error is not None:
        return f"{named}, same input, different error"
    return f"{named}, same input, different result"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
