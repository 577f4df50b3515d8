"""The times of a run in sentences, and the latency of routes and steps over many runs: percentiles, with
times measured now kept apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from core.analysis.critical_path import Source, TimeShare, clocks, critical, ended, sources, timed
from core.analysis.run_view import worked
from core.analysis.token_usage import Totals, add, totals
from core.domain.format import STEP_KINDS, brief, milliseconds
from core.domain.types import RouteResult, Run, SpanKind
from core.store.search import Traces

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


ALONE = (
    "Time alone is what the route would take if it ran by itself, from its measured steps. A step whose"
    " result came from another route, the cache or a recording counts with the time it took originally. No"
    " time is estimated."
)
ODD = 5  # measurements before a run is compared with them


def lead(run: Run) -> list[str]:
    """Summarise a run's times; [] if no route ended well."""
    routes = sorted(worked(run), key=ended)
    if not routes:
        return []
    quick, slow = routes[0], routes[-1]
    found = [f"{slow.title} is the slowest route alone, {milliseconds(ended(slow))}. {path_in_words(slow)}"]
    if quick is not slow:
        fastest = f"{quick.title} is the fastest route alone, {milliseconds(ended(quick))}."
        found[0] = f"{fastest} {found[0]}"
    longest = (path.longest for path in map(critical, routes))
    kinds = Counter(STEP_KINDS[span.kind] for span in longest if span is not None).most_common()
    if kinds and len(routes) > 1:
        by_kind = ", ".join(f"{kind} in {n}" for kind, n in kinds)
        found.append(f"Longest step on the critical path of the {len(routes)} routes: {by_kind}.")
    return [*found, wall_in_words(run)]


def path_in_words(result: RouteResult) -> str:
    """Return a sentence on the longest critical step of a route, and on the slack of other steps."""
    path = critical(result)
    if path.longest is None:
        return f"{result.title} recorded no step."
    share = brief(path.share(path.longest.id))
    told = f"“{path.longest.name}” takes {share} of {milliseconds(path.total)}."
    if path.slack:
        told += f" Steps off the critical path: {len(path.slack)}, with up to "
        told += f"{milliseconds(max(path.slack.values()))} of slack."
    return told


def wall_in_words(run: Run) -> str:
    """Return the run's wall time, the sum of its routes alone, and how the routes ran."""
    took, ran = clocks(run), run.settings.get("routes ran")
    told = f"The run took {milliseconds(took.wall)}; the times of its routes alone add up to "
    told += f"{milliseconds(took.alone)}."
    return f"{told} The routes ran {ran}." if isinstance(ran, str) and ran else told


def spent_in_words(found: Sequence[TimeShare]) -> str:
    """Return sentences on the kinds of step that took the time; `found` has the most first."""
    total = sum(one.total for one in found)
    if not total:
        return "No step in this run took any time."
    parts = ", ".join(f"{brief(one.total / total)} {label(one)}" for one in found[:3])
    told = f"Of {milliseconds(total)} of work, counting shared steps once: {parts}."
    earlier = sum(one.ms["cache"] + one.ms["recording"] for one in found)
    return f"{told} {milliseconds(earlier)} of it came from the cache or a recording." if earlier else told


def label(one: TimeShare) -> str:
    """Return the name of a kind of step in charts."""
    return STEP_KINDS[one.kind] if one.kind else one.name


def sessions_in_words(read: Traces, found: Sequence[Latency], apart: int = 0) -> list[str]:
    """Return sentences on how many runs the percentiles rest on, and which route is slowest. `found` has the
    slowest median first. `apart` counts the rows missing from it because their times are from the cache or a
    recording.
    """
    told = [f"From the newest {read.runs} of {read.of} runs."]
    if read.elsewhere:
        told[0] += f" Leaves out {read.elsewhere} results of imported runs, timed on another machine."
    if len(found) > 1:
        slow, quick = (f"{one.name} ({milliseconds(one.at[50] or 0.0)})" for one in (found[0], found[-1]))
        told.insert(0, f"{slow} has the longest median and {quick} the shortest.")
    if reused := sum(one.source != "now" for one in found) or apart:
        hidden = ", not shown here" if apart else ""
        told.append(f"Rows from the cache or recordings, with the original times: {reused}{hidden}.")
    if few := sum(one.n < NEEDED[95] for one in found):
        told.append(
            f"{few} of {len(found)} have fewer than {NEEDED[95]} measurements, too few for p95: the table "
            "shows their largest time."
        )
    return told


def against(run: Run, found: Sequence[Latency]) -> str:
    """Return the route that is furthest from its median in this run, twofold or more, or "" if none is."""
    usual = {
        (one.key, one.answered): one for one in found if one.source == "now" and one.n >= ODD and one.at[50]
    }
    odd: list[tuple[float, RouteResult]] = []
    for result in worked(run):
        one = usual.get((result.route, bool(result.answer)))
        times = result.ms / (one.at[50] or 1.0) if one else 1.0
        if times >= 2 and not any(span.cached for span in timed(result.spans)):
            odd.append((times, result))
    if not odd:
        return ""
    times, result = max(odd, key=lambda pair: pair[0])
    usually = usual[result.route, bool(result.answer)].at[50] or 0.0
    took, median = milliseconds(result.ms), milliseconds(usually)
    return f"In this run {result.title} took {took}, {times:.1f} times its median of {median}."
