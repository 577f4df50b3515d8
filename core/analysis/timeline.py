"""A run's times in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from core.analysis.critical_path import TimeShare, clocks, critical, ended, timed
from core.analysis.latency_percentiles import NEEDED, Latency
from core.analysis.run_view import worked
from core.domain.format import STEP_KINDS, brief, milliseconds
from core.domain.types import RouteResult, Run
from core.store.traces import Traces

ALONE = (
    "Time alone is what the route would take if it ran by itself, from its measured steps. A step whose"
    " result came from another route, the cache or a recording counts with the time it took originally. No"
    " time is estimated."
)
ODD = 5  # measurements before a run is compared with them


def lead(run: Run) -> list[str]:
    """Summarise a run's times; "" if no route ended well."""
    routes = sorted(worked(run), key=ended)
    if not routes:
        return []
    quick, slow = routes[0], routes[-1]
    sentences = [
        f"{slow.title} is the slowest route alone, {milliseconds(ended(slow))}. {path_in_words(slow)}"
    ]
    if quick is not slow:
        fastest = f"{quick.title} is the fastest route alone, {milliseconds(ended(quick))}."
        sentences[0] = f"{fastest} {sentences[0]}"
    sentences += [f"{_deciding(routes)}"] if len(routes) > 1 else []
    return [*sentences, wall_in_words(run)]


def path_in_words(result: RouteResult) -> str:
    """Return sentences on the share of the route's time that its longest critical step takes, and on what ran
    in parallel.
    """
    path = critical(result)
    if path.longest is None:
        return f"{result.title} recorded no step."
    share, took = percent(path.share(path.longest.id)), milliseconds(path.total)
    sentences = f"{share[0].upper()}{share[1:]} of {of(result.title)} {took} is “{path.longest.name}”."
    if path.slack:
        steps = "1 step" if len(path.slack) == 1 else f"{len(path.slack)} steps"
        most = milliseconds(max(path.slack.values()))
        sentences += f" {steps} off the critical path had up to {most} of slack."
    return sentences


def wall_in_words(run: Run) -> str:
    """Return the run's wall time against the sum of its routes alone, and how the routes ran."""
    took = clocks(run)
    sentences = (
        f"The run took {milliseconds(took.wall)}. The times of its routes alone add up to"
        f" {milliseconds(took.alone)}."
    )
    if took.alone > took.wall:
        parallel = run.settings.get("routes ran") == "side by side"
        sentences += " The difference comes from shared steps, cached or recorded results"
        sentences += ", and routes that ran in parallel." if parallel else "."
    ran = run.settings.get("routes ran")
    return f"{sentences} The routes ran {ran}." if isinstance(ran, str) and ran else sentences


def spent_in_words(found: Sequence[TimeShare]) -> str:
    """Return sentences on the kinds of step that took the time; `found` has the most first."""
    total = sum(one.total for one in found)
    if not total:
        return "No step in this run took any time."
    parts = [f"{percent(one.total / total)} {label(one)}" for one in found[:3] if one.total / total >= 0.005]
    sentences = f"Of {milliseconds(total)} of work, counting shared steps once: {', '.join(parts)}."
    earlier = sum(one.ms["cache"] + one.ms["recording"] for one in found)
    if earlier:
        sentences += f" {milliseconds(earlier)} of it came from the cache or a recording."
    return sentences


def label(one: TimeShare) -> str:
    """Return the name of a kind of step in charts."""
    return STEP_KINDS[one.kind] if one.kind else one.name


def sessions_in_words(read: Traces, found: Sequence[Latency], apart: int = 0) -> list[str]:
    """Return sentences on how many runs the percentiles rest on, and which route is slowest. `found` has the
    slowest median first. `apart` counts the rows missing from it because their times are from the cache or a
    recording.
    """
    runs = f"{read.runs} runs" if read.runs == read.of else f"the newest {read.runs} of {read.of} runs"
    sentences = [f"From {runs}."]
    if read.elsewhere:
        sentences[0] += f" Leaves out {read.elsewhere} results of imported runs, timed on another machine."
    if len(found) > 1:
        slow, quick = _median(found[0]), _median(found[-1])
        sentences.append(f"{slow} has the longest median and {quick} the shortest.")
    reused = sum(one.source != "now" for one in found) or apart
    if reused:
        rows = "1 row is" if reused == 1 else f"{reused} rows are"
        hidden = " and not shown here" if apart else ""
        sentences.append(
            f"{rows} from the cache or recordings, with the original times: counted separately{hidden}."
        )
    few = sum(one.n < NEEDED[95] for one in found)
    if few:
        sentences.append(
            f"{few} of {len(found)} have fewer than {NEEDED[95]} measurements, too few for p95. The table"
            " shows their largest time instead."
        )
    return sentences


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


def percent(share: float) -> str:
    """Return a share in a sentence: never 100% or 0% of what is not all or nothing."""
    return brief(share).replace(">", "over ").replace("<", "under ")


def of(title: str) -> str:
    """Return the genitive of a title."""
    return f"{title}'" if title.endswith("s") else f"{title}'s"


def _deciding(routes: Sequence[RouteResult]) -> str:
    """Return a sentence on the kind of step that determines how long routes take, or ""."""
    longest = [path.longest for path in map(critical, routes) if path.longest is not None]
    kinds = Counter(STEP_KINDS[span.kind] for span in longest).most_common()
    if not kinds:
        return ""
    (first, count), rest = kinds[0], kinds[1:]
    more = "".join(f", {kind} in {n}" for kind, n in rest)
    sentence = f"The longest step on the critical path is {first} in {count} of {len(routes)} routes{more}."
    if any(critical(route).slack for route in routes):
        return sentence
    return f"{sentence} No route ran steps in parallel."


def _median(one: Latency) -> str:
    return f"{one.name} ({milliseconds(one.at[50] or 0.0)})"
