"""The chain of steps that determines how long a route takes; and a run's time by kind of step and by step,
each piece of work counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

from core.domain.types import RouteResult, Run, Span, SpanKind

Source = Literal["now", "cache", "recording"]  # where a step's result, and so its time, is from
SOURCES: tuple[Source, ...] = ("now", "cache", "recording")
ROUTES = "the routes' own time between steps"
NEAR = 1e-6  # ms: sums of floating-point times that differ by less are one moment


@dataclass(frozen=True, slots=True)
class Path:
    """The steps a route waited for, one after another, on its own clock, ms.

    `took` is what each step on the path (by id) adds to the route's time; `ms` their sum. `gap` is the rest
    of `total`: the route's own time between its steps. `slack` has every other step: so much longer, at
    least, it could have taken without making the route slower.
    """

    total: float
    spans: tuple[Span, ...]
    took: Mapping[int, float]
    slack: Mapping[int, float]

    @property
    def ms(self) -> float:
        """Return the total milliseconds of the steps on the path."""
        return sum(self.took.values())

    @property
    def gap(self) -> float:
        """Return the route's milliseconds outside the steps on the path, at least 0."""
        return max(0.0, self.total - self.ms)

    @property
    def longest(self) -> Span | None:
        """Return the step that takes most of the path, or None if there are no steps."""
        return max(self.spans, key=lambda span: self.took[span.id], default=None)

    def share(self, id: int) -> float:
        """Return the share of the route's time, 0 to 1, that a step on the path takes."""
        return self.took[id] / self.total if self.total > 0 else 0.0


def timed(spans: Sequence[Span]) -> list[Span]:
    """Return the spans with a time that can be drawn: an imported run may hold any number."""
    return [
        one for one in spans if isfinite(one.start_ms) and isfinite(one.ms) and min(one.start_ms, one.ms) >= 0
    ]


def ended(result: RouteResult) -> float:
    """When the route was over, ms on its own clock: its time, or the end of its last step if that is later
    (a route that was given up may have left one open).
    """
    last = max((span.start_ms + span.ms for span in timed(result.spans) if span.parent is None), default=0.0)
    return max(result.ms, last) if isfinite(result.ms) else last


def critical(result: RouteResult) -> Path:
    """Return the critical path of the steps that the route itself called. Walks back from the end: the step
    that ended last, then the one that ended last before it began, and so on (Zhang et al. 2022, "CRISP:
    Critical Path Analysis of Large-Scale Microservice Architectures"). Spans do not record their thread. They
    are listed in the order in which they began, branch after branch, so a step can have waited only for those
    listed before it.
    """
    steps = timed([span for span in result.spans if span.parent is None])
    return _walk(steps, ended(result))


def on_path(result: RouteResult) -> frozenset[int]:
    """Return the ids of all spans that determine the route's time: the steps on its path and, within each of
    them, the calls on the path there.
    """
    children: dict[int | None, list[Span]] = {}
    for span in timed(result.spans):
        children.setdefault(span.parent, []).append(span)
    found: set[int] = set()
    waiting = [(children.get(None, []), ended(result))]
    while waiting:
        steps, end = waiting.pop()
        for span in _walk(steps, end).spans:
            if span.id not in found:
                found.add(span.id)
                waiting.append((children.get(span.id, []), span.start_ms + span.ms))
    return frozenset(found)


def own_ms(result: RouteResult) -> dict[int, float]:
    """Return each span's own time in ms by id, without the calls below it; calls side by side count once."""
    children: dict[int | None, list[tuple[float, float]]] = {}
    spans = timed(result.spans)
    for span in spans:
        children.setdefault(span.parent, []).append((span.start_ms, span.start_ms + span.ms))
    inside = {one.id: covered(children.get(one.id, []), one.start_ms, one.start_ms + one.ms) for one in spans}
    return {span.id: max(0.0, span.ms - inside[span.id]) for span in spans}


def between_ms(result: RouteResult) -> float:
    """Return the route's time outside all of its steps, in ms."""
    steps = timed([span for span in result.spans if span.parent is None])
    end = ended(result)
    return max(0.0, end - covered([(span.start_ms, span.start_ms + span.ms) for span in steps], 0.0, end))


def _walk(steps: Sequence[Span], end: float) -> Path:
    path: list[Span] = []
    took: dict[int, float] = {}
    now, before = end, len(steps)
    while True:
        ends = [(n, steps[n].start_ms + steps[n].ms) for n in range(before)]
        over = [(n, at) for n, at in ends if at <= now + NEAR]
        if not over:
            break
        latest = max(at for _, at in over)
        before = max(n for n, at in over if at >= latest - NEAR)
        span = steps[before]
        path.append(span)
        took[span.id] = max(0.0, min(span.start_ms + span.ms, now) - span.start_ms)
        now = span.start_ms
    path.reverse()
    return Path(end, tuple(path), took, _slack(steps, took, end))


def _slack(steps: Sequence[Span], path: Mapping[int, float], end: float) -> dict[int, float]:
    """Return the backward pass of the critical path method: the latest end of each step, less its end.
    Whatever began after a step ended counts as having waited for it, so this is never too much.
    """
    latest_start: list[float] = [end] * len(steps)
    slack: dict[int, float] = {}
    for n in reversed(range(len(steps))):
        over = steps[n].start_ms + steps[n].ms
        after = (m for m in range(n + 1, len(steps)) if steps[m].start_ms >= over - NEAR)
        latest = min((latest_start[m] for m in after), default=end)
        if steps[n].id in path:
            latest_start[n] = steps[n].start_ms
        else:
            latest_start[n] = latest - steps[n].ms
            slack[steps[n].id] = max(0.0, latest - over)
    return slack


def covered(intervals: Sequence[tuple[float, float]], low: float, high: float) -> float:
    """Return the length of the union of `intervals` within [low, high]."""
    total, reached = 0.0, low
    for start, stop in sorted(intervals):
        start, stop = max(start, reached), min(stop, high)
        if stop > start:
            total, reached = total + stop - start, stop
    return total


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
