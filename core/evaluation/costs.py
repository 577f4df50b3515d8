"""The costs of routes, with a tolerance (6.13 ms against 6.14 ms is no difference); the routes that are worth
it: the Pareto front of a quality and a cost; and the machines that times were measured on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isnan, log
from typing import Any

from pydantic_core import to_jsonable_python

from core.analysis.token_usage import Prices, Totals, price
from core.domain.machine import machine
from core.evaluation import statistics
from core.evaluation.finding import count
from core.evaluation.outcome import Outcome

SPENDING = 0.10  # relative difference in price, tokens or model calls below which routes cost the same
SLOWER = 0.20  # the same for times, which vary between runs of the same work
LEAST_MS = 5.0  # nobody waits noticeably longer for this much more


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a question by one route; None for an unknown figure."""

    # price of 1,000 questions, or tokens a question without prices
    spent: float | None
    # model calls a question
    calls: float | None
    # median time
    ms: float | None
    # mean number of steps; the simpler of two routes has fewer
    steps: float | None = None
    # time of each question in milliseconds, if measured
    times: Mapping[str, float] = field(default_factory=dict)


def spent(
    calls: int, prompt: int, completion: int, ended: int, prices: Prices
) -> tuple[float | None, float | None, float | None]:
    """Return the model calls and tokens for each of the questions that `ended` well, and the price of 1,000
    of them. The cost of failed questions is spread over the others. Figures are None if they are unknown: no
    question ended well, the model was asked and no tokens counted, or there are no prices.
    """
    if not ended:
        return None, None, None
    if not calls:
        return 0.0, (prompt + completion) / ended, 0.0
    if not prompt + completion:
        return calls / ended, None, None
    paid = price(Totals(prompt=prompt, completion=completion), *prices)
    return calls / ended, (prompt + completion) / ended, None if paid is None else 1000 * (paid / ended)


def cheapest_first(costs: Mapping[str, Cost]) -> list[str]:
    """Return the routes, the cheapest first; of those that cost the same within tolerance, the simplest
    first.

    Price (else tokens) decides, then model calls, then time. Each group begins with the cheapest route left
    and takes in every route that is not shown to cost more than that one.
    """
    left = sorted(costs, key=lambda route: (*_amounts(costs[route]), route))
    ordered: list[str] = []
    while left:
        group = [route for route in left if not costs_more(costs[route], costs[left[0]])]
        left = [route for route in left if route not in group]
        ordered += sorted(group, key=lambda r: (_known(costs[r].steps), *_amounts(costs[r]), r))
    return ordered


def costs_more(one: Cost, other: Cost) -> bool:
    """Return whether `one` is shown to cost more than `other`, beyond the tolerance. Of times, the interval
    of their ratio, paired by question, is to lie above it.
    """
    for mine, theirs in ((one.spent, other.spent), (one.calls, other.calls)):
        low, high = sorted((_known(mine), _known(theirs)))
        if high > low * (1 + SPENDING):
            return _known(mine) == high
    if one.ms is None or other.ms is None:
        return one.ms is None and other.ms is not None
    if one.ms - other.ms <= LEAST_MS:
        return False
    pairs = [(ms, other.times.get(question, 0.0)) for question, ms in one.times.items()]
    ends = statistics.unbounded_interval([log(a / b) for a, b in pairs if a > 0 and b > 0])
    return one.ms > other.ms * (1 + SLOWER) if ends is None else ends[0] > log(1 + SLOWER)


def _amounts(cost: Cost) -> tuple[float, float, float]:
    return _known(cost.spent), _known(cost.calls), _known(cost.ms)


def _known(value: float | None) -> float:
    return inf if value is None else value


Point = tuple[float | None, float | None]  # (quality, cost)
COSTS = ("p50_ms", "p95_ms", "calls", "tokens")


def front(points: Mapping[str, Point]) -> tuple[str, ...]:
    """Return the names that no other beats: none has at least their quality at no more than their cost, and
    more quality or less cost. Cheapest first, equal ones next to each other in the order of their names.

    A point without a quality or a cost (None or NaN) is neither on the front nor beats another.
    """
    known = [
        (cost, -quality, name)
        for name, (quality, cost) in points.items()
        if quality is not None and cost is not None and not isnan(quality) and not isnan(cost)
    ]
    # The Pareto front: no other point is as cheap and as good.
    best = [one for one in known if all(a > one[0] or b > one[1] or (a, b) == one[:2] for a, b, _ in known)]
    return tuple(name for *_, name in sorted(best))


def beaten_by(points: Mapping[str, Point], name: str) -> tuple[str, ...]:
    """Return the routes on the front that beat `name`; none if it is on the front itself or cannot be
    placed.
    """
    on = front(points)
    if name in on or name not in front({name: points[name]}):
        return ()
    return tuple(one for one in on if name not in front({one: points[one], name: points[name]}))


def points(figures: Mapping[str, Any], metric: str, cost: str) -> dict[str, Point]:
    """Each route's mean of `metric` and its cost, from the figures of an evaluation.

    `cost` is one of COSTS: milliseconds, or model calls or tokens (prompt and written) per question asked.
    """
    if cost not in COSTS:
        raise ValueError(f"cost={cost!r}; there are: {', '.join(COSTS)}")
    found = {}
    for route, row in figures["routes"].items():
        known = row.get(cost)
        if cost in ("calls", "tokens"):
            used = row["llm_calls"] if cost == "calls" else row["prompt_tokens"] + row["completion_tokens"]
            asked = sum(row["statuses"].values())
            known = used / asked if asked else None
        found[route] = (row.get(metric), known)
    return found


UNKNOWN = "a machine that was not recorded"


@dataclass(frozen=True, slots=True)
class MachineKind:
    """Machines of one `kind`, in words: how many of them, and the questions asked there."""

    kind: str
    machines: int
    questions: int

    def describe(self) -> str:
        """Return the kind of machine with its numbers of questions and machines."""
        return f"{count(self.questions)} on {count(self.machines, 'machines')} ({self.kind})"


def machine_kinds(outcomes: Iterable[Mapping[str, Outcome]]) -> tuple[MachineKind, ...]:
    """Return the kinds of machine, the one with most questions first; `outcomes` by route, of each
    question.
    """
    hosts: dict[str, set[str]] = {}
    asked: dict[str, int] = {}
    for by in outcomes:
        for kind, host in {(one.machine or UNKNOWN, one.host) for one in by.values()}:
            hosts.setdefault(kind, set()).add(host)
            asked[kind] = asked.get(kind, 0) + 1
    found = [MachineKind(kind, len(hosts[kind]), asked[kind]) for kind in hosts]
    return tuple(sorted(found, key=lambda one: (-one.questions, one.kind)))


def machine_figures(outcomes: Iterable[Mapping[str, Outcome]]) -> dict[str, Any]:
    """Return the part of metrics.json: the `machine` in words, and the `machines` by kind."""
    found = machine_kinds(outcomes)
    return {
        "machine": "; ".join(one.kind for one in found) or machine(),
        "machines": to_jsonable_python(found),
    }


def unlike(found: Sequence[MachineKind]) -> str:
    """Return why times of these machines do not compare, or "" if they do."""
    if len(found) < 2:
        return ""
    return f"its times are of unlike machines: {'; '.join(one.describe() for one in found)}"


def machine_sentences(figures: Mapping[str, Any]) -> list[str]:
    """Return the sentences for more than one machine."""
    found = tuple(MachineKind(**one) for one in figures.get("machines", ()))
    if len(found) > 1:
        each = "; ".join(one.describe() for one in found)
        return [f"Times were measured on unlike machines and do not compare: {each}."]
    alike = (one for one in found if one.machines > 1)
    return [f"Times were measured on {count(k.machines, 'machines')} of one kind: {k.kind}." for k in alike]
