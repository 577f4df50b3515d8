"""A run's time by kind of step and by step, each distinct piece of work counted once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

from core.analysis.critical_path import between_ms, own_ms
from core.domain.types import RouteResult, Run, Span, SpanKind

Source = Literal["now", "cache", "recording"]  # where a step's result, and so its time, is from
SOURCES: tuple[Source, ...] = ("now", "cache", "recording")
ROUTES = "the routes' own time between steps"


@dataclass(slots=True)
class TimeShare:
    """Milliseconds by where they are from, and how many distinct pieces of work they are."""

    kind: SpanKind | None  # None: the routes' own time between their steps
    name: str
    ms: dict[Source, float] = field(default_factory=lambda: dict.fromkeys(SOURCES, 0.0))
    count: int = 0

    @property
    def total(self) -> float:
        """Return the total."""
        return sum(self.ms.values())


@dataclass(frozen=True, slots=True)
class Clocks:
    """A run's times, ms: of its routes alone, added up; from its start to its end."""

    alone: float
    wall: float


def clocks(run: Run) -> Clocks:
    """Return the clocks, from the routes that ran at all."""
    ran = [result for result in run.results if result.status != "unavailable"]
    return Clocks(_sum(r.ms for r in ran), _sum([run.wall_ms]))


def sources(result: RouteResult) -> dict[int, Source]:
    """Return the source of each span's time, by span id. A step with anything from a recording or the cache
    does not count as measured now.
    """
    rank: dict[int, Source] = {span.id: span.cached or "now" for span in result.spans}
    for span in reversed(result.spans):  # calls stand after the step they are made in
        if span.parent in rank:
            rank[span.parent] = max(rank[span.parent], rank[span.id], key=SOURCES.index)
    return rank


def by_kind(run: Run) -> list[TimeShare]:
    """Each kind of step's own time, the most first; a step's time does not hold that of the calls below it,
    and what several routes took over from one counts once, where it was done.
    """
    found = _spent(run, lambda span: span.kind)
    between = [between_ms(result) for result in run.results if result.status != "unavailable"]
    if sum(between) > 0:
        rest = TimeShare(None, ROUTES, count=len(between))
        rest.ms["now"] = sum(between)
        found.append(rest)
    return sorted(found, key=lambda one: -one.total)


def by_step(run: Run) -> list[TimeShare]:
    """Sum the same times by the step's name."""
    return sorted(_spent(run, lambda span: (span.kind, span.name)), key=lambda one: -one.total)


def _spent(run: Run, group: Callable[[Span], Hashable]) -> list[TimeShare]:
    found: dict[Hashable, TimeShare] = {}
    done = {f"{result.route}#{span.id}" for result in run.results for span in result.spans}
    for result in run.results:
        own = own_ms(result)
        for span in result.spans:
            if span.id not in own or (span.shared_with and span.shared_with in done):
                continue
            if span.shared_with:  # the route that did it is not in the run: it counts where it comes first
                done.add(span.shared_with)
            one = found.setdefault(group(span), TimeShare(span.kind, span.name))
            one.ms[span.cached or "now"] += own[span.id]
            one.count += 1
    return list(found.values())


def _sum(given: Iterable[float]) -> float:
    return sum(ms for ms in given if isfinite(ms))
