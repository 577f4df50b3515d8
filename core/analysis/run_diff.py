"""Differences between two runs: setting by setting, and route by route with their traces; and in words. Times
are ignored: they vary on every run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.analysis.trace_diff import (
    MISSING,
    ChangedValue,
    RankingDiff,
    StepDiff,
    changes,
    equal,
    ranking_diff,
    steps_diff,
)
from core.domain.types import RouteResult, Run

LONG = 60  # characters of a value
ASKED = {
    "question": "the question differs",
    "history": "the conversation before it differs",
    "corpus": "the corpus differs",
    "fingerprint": "the corpus was reindexed",
}
TOLD_ELSEWHERE = ("routes",)  # settings that the comparison of routes says in full


@dataclass(frozen=True, slots=True)
class RunRouteDiff:
    """One route in both runs; `result` are the fields of its outcome that differ, but for the ranking."""

    before: RouteResult
    after: RouteResult
    parameters: tuple[ChangedValue, ...]
    result: tuple[ChangedValue, ...]
    ranking: RankingDiff
    steps: tuple[StepDiff, ...]

    @property
    def same_result(self) -> bool:
        """Return whether status, answer and ranking are equal."""
        return not self.result and self.ranking.same

    @property
    def same(self) -> bool:
        """Return whether there is no difference at all."""
        return self.same_result and not self.parameters and all(step.same for step in self.steps)


@dataclass(frozen=True, slots=True)
class RunDiff:
    """Two runs. `asked`: question, history, corpus and its fingerprint, where they differ; `equal` settings
    do not; routes that only one of them has are not among `routes`.
    """

    asked: tuple[ChangedValue, ...]
    settings: tuple[ChangedValue, ...]
    equal: int
    routes: tuple[RunRouteDiff, ...]
    only_before: tuple[RouteResult, ...]
    only_after: tuple[RouteResult, ...]

    @property
    def differing(self) -> tuple[RunRouteDiff, ...]:
        """Return the routes in which anything differs."""
        return tuple(route for route in self.routes if not route.same)

    @property
    def same(self) -> bool:
        """Return whether the two runs are equal except for their times."""
        apart = self.asked or self.settings or self.only_before or self.only_after
        return not apart and not self.differing


def run_diff(before: Run, after: Run) -> RunDiff:
    """Compare two runs; with the two exchanged everything is mirrored."""
    asked = {
        "question": (before.query.text, after.query.text),
        "history": (
            [[t.role, t.text] for t in before.query.history],
            [[t.role, t.text] for t in after.query.history],
        ),
        "corpus": (before.corpus, after.corpus),
        "fingerprint": (before.fingerprint, after.fingerprint),
    }
    settings = changes(before.settings, after.settings, leave_out=TOLD_ELSEWHERE)
    names = {*before.settings, *after.settings} - set(TOLD_ELSEWHERE)
    old, new = _keyed(before.results), _keyed(after.results)
    return RunDiff(
        tuple(ChangedValue(name, *pair) for name, pair in asked.items() if not equal(*pair)),
        settings,
        len(names) - len(settings),
        tuple(route_diff(old[key], new[key]) for key in old if key in new),
        tuple(result for key, result in old.items() if key not in new),
        tuple(result for key, result in new.items() if key not in old),
    )


def route_diff(before: RouteResult, after: RouteResult) -> RunRouteDiff:
    """Compare what one route did in two runs."""
    fields = ("status", "error", "answer", "citations", "abstained")
    outcome = [(name, getattr(before, name), getattr(after, name)) for name in fields]
    return RunRouteDiff(
        before,
        after,
        changes(before.parameters, after.parameters),
        tuple(ChangedValue(*one) for one in outcome if not equal(*one[1:])),
        ranking_diff(before.hits, after.hits),
        steps_diff(before.spans, after.spans),
    )


def _keyed(results: Sequence[RouteResult]) -> dict[tuple[str, int], RouteResult]:
    """Key results by (route, occurrence): imported runs may contain a route twice."""
    seen: Counter[str] = Counter()
    keyed = {}
    for result in results:
        keyed[result.route, seen[result.route]] = result
        seen[result.route] += 1
    return keyed


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
    settings = diff.settings
    told = f"{_count(len(settings), 'setting')} changed: {'; '.join(map(was, settings))}"
    parts.append(f"with {told if settings else 'the same settings'}")
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
