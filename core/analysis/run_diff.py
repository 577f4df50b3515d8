"""Differences between two runs: setting by setting, and route by route with their traces. Times are ignored:
they vary on every run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from core.analysis.trace_diff import (
    ChangedValue,
    RankingDiff,
    StepDiff,
    changes,
    equal,
    ranking_diff,
    steps_diff,
)
from core.domain.types import RouteResult, Run

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
