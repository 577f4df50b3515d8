"""Latency of routes and steps over many runs: percentiles, with times measured now kept apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from core.analysis.critical_path import Source, sources, timed
from core.analysis.token_usage import Totals, add, totals
from core.domain.types import RouteResult, SpanKind

# Measurements that a percentile needs: below, it would be the largest one or lie between the last two.
NEEDED: Mapping[int, int] = {50: 1, 90: 10, 95: 20, 99: 100}
FROM: Mapping[Source, str] = {"now": "", "cache": " · from the cache", "recording": " · recorded"}
Key = tuple[str, SpanKind | None, Source, bool]  # name, kind, source, whether it gave an answer


@dataclass(frozen=True, slots=True)
class Latency:
    """The milliseconds of one route, or of one step by its name, over results that are all from `source`.
    `answered`: a route's times when it also wrote an answer, which takes a language model far longer than a
    search. `at` has the percentiles of NEEDED, None if `n` measurements are too few for one.
    """

    key: str
    title: str
    kind: SpanKind | None  # None for a route
    source: Source
    n: int
    at: Mapping[int, float | None]
    largest: float
    answered: bool = False

    @property
    def name(self) -> str:
        """The route or step, what it did besides, and where its times are from if not measured now."""
        return self.title + (" · with answer" if self.answered else "") + FROM[self.source]


@dataclass(frozen=True, slots=True)
class Usage:
    """A route's mean use of language models per run over `runs`, as if it ran alone. It also wrote an answer
    in `answered` of them.
    """

    route: str
    title: str
    runs: int
    calls: float
    prompt: float
    completion: float
    sum: Totals
    answered: int


def percentiles(values: Sequence[float]) -> dict[int, float | None]:
    """Return the percentiles of NEEDED, between neighbours by proportion (Hyndman & Fan 1996, "Sample
    Quantiles in Statistical Packages", definition 7), or None if there are too few values.
    """
    import numpy as np

    return {
        p: float(np.percentile(values, p)) if len(values) >= needed else None for p, needed in NEEDED.items()
    }


def by_route(runs: Iterable[Sequence[RouteResult]]) -> list[Latency]:
    """Each route's time alone in the runs where it went well, slowest median first.

    What it took over from another route of the same run was measured in that run, so it counts as now. Runs
    in which it gave an answer are another task and are listed separately.
    """
    found: dict[Key, list[float]] = {}
    titles: dict[str, str] = {}
    for results in runs:
        for result in results:
            if result.status != "ok" or not isfinite(result.ms):
                continue
            titles.setdefault(result.route, result.title)
            key = (result.route, None, origin(result), bool(result.answer))
            found.setdefault(key, []).append(result.ms)
    return _in_words(found, titles)


def by_step(runs: Iterable[Sequence[RouteResult]]) -> list[Latency]:
    """Each step's time by its name, calls inside other steps too, slowest median first.

    A step counts where it was done: not again where its result was taken over. Those that failed or were
    cut off are left out, those that went well in a route that failed later are not.
    """
    found: dict[Key, list[float]] = {}
    for results in runs:
        for result in results:
            origins = sources(result)
            for span in timed(result.spans):
                if not span.shared_with and span.error is None:
                    found.setdefault((span.name, span.kind, origins[span.id], False), []).append(span.ms)
    return _in_words(found, {})


def origin(result: RouteResult) -> Source:
    """Return the source of a route's time: "now" only if none of it is from a recording or the cache."""
    origins = sources(result)
    return next((one for one in ("recording", "cache") if one in origins.values()), "now")


def usage(runs: Iterable[Sequence[RouteResult]]) -> list[Usage]:
    """Mean model calls and tokens a run of each route that went well, those of most tokens first."""
    by_name: dict[str, list[RouteResult]] = {}
    for results in runs:
        for result in results:
            if result.status == "ok":
                by_name.setdefault(result.route, []).append(result)
    means = []
    for route, some in by_name.items():
        whole, n, answered = add(map(totals, some)), len(some), sum(bool(one.answer) for one in some)
        each = (whole.calls / n, whole.prompt / n, whole.completion / n)
        means.append(Usage(route, some[0].title, n, *each, whole, answered))
    return sorted(means, key=lambda one: (-(one.prompt + one.completion), one.title))


def _in_words(found: Mapping[Key, Sequence[float]], titles: Mapping[str, str]) -> list[Latency]:
    found_latencies = [
        Latency(key, titles.get(key, key), kind, source, len(ms), percentiles(ms), max(ms), answered)
        for (key, kind, source, answered), ms in found.items()
    ]
    return sorted(found_latencies, key=lambda one: (-(one.at[50] or 0.0), one.name))
