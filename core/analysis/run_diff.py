"""Differences between two traces and between two rankings. Times are ignored: they vary on every run."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import Enum
from functools import partial
from typing import Any

from core.analysis.rank_overlap import jaccard
from core.analysis.run_view import describe
from core.domain.outputs import Reply, Waited
from core.domain.rank_changes import Kind, moves, ranks
from core.domain.types import Hit, Link, Passage, Ranking, RouteResult, Run, Scored, Span

DEPTH = 10  # ranks that moves and overlap are counted in


class Missing(Enum):
    """A placeholder for a value that only one of the two has."""

    MISSING = "not there"


MISSING = Missing.MISSING


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """A value that differs; MISSING where one of the two has none."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class RankingDiff:
    """Two rankings: moves in the top 10 (better, worse, same, new), how many fell out of it, the first rank
    (from 1) at which they differ, Jaccard@10, and how many of the passages in both have another score.
    """

    counts: Mapping[Kind, int]
    lost: int
    first: int | None
    overlap: float
    scores: int

    @property
    def same(self) -> bool:
        """Return whether both are one ranking with the same scores."""
        return self.first is None and self.scores == 0


@dataclass(frozen=True, slots=True)
class StepDiff:
    """A step of both traces, or of only one (the other is None), and the differences between the two.
    `elsewhere`: the other trace lacks it because another route did its work there.
    """

    before: Span | None
    after: Span | None
    inputs: tuple[ChangedValue, ...] = ()
    output: ChangedValue | None = None
    hits: RankingDiff | None = None
    error: ChangedValue | None = None
    elsewhere: bool = False

    @property
    def same(self) -> bool:
        """Return whether both traces have the step with the same recorded inputs and result."""
        if self.elsewhere:
            return True
        both = self.before is not None and self.after is not None
        hits_same = self.hits is None or self.hits.same
        return both and not self.inputs and self.output is None and self.error is None and hits_same


def ranking_diff(before: Ranking, after: Ranking) -> RankingDiff:
    """Compare two rankings."""
    found = moves(before, after, DEPTH)
    old, new = list(ranks(before)), list(ranks(after))
    shared = min(len(old), len(new))
    first = next((n + 1 for n in range(shared) if old[n] != new[n]), None)
    if first is None and len(old) != len(new):
        first = shared + 1
    was, now = ({hit.passage.id: hit.score for hit in reversed(one)} for one in (before, after))
    # equal except for the last digits, in which machines differ
    close = partial(math.isclose, rel_tol=1e-6, abs_tol=1e-9)
    pairs = [(was[id], now[id]) for id in was if id in now]
    return RankingDiff(
        found.counts,
        len(found.lost),
        first,
        jaccard(old, new, DEPTH) if old or new else 1.0,
        sum(not (close(a, b) or (math.isnan(a) and math.isnan(b))) for a, b in pairs),
    )


def steps_diff(before: Sequence[Span], after: Sequence[Span]) -> tuple[StepDiff, ...]:
    """Pair the steps of two traces. Equal calls are partners at any position, because branches run in
    parallel and end in any order. The other steps are paired by name and kind: first aligned in order
    (Ratcliff & Metzener 1988, as in difflib), then the rest. A step with no partner stays alone. Waits for a
    model are times and are ignored.
    """
    before, after = (
        [span for span in trace if not isinstance(span.output, Waited)] for trace in (before, after)
    )
    partner = _partners(before, after)
    number = {after[right].id: before[left].id for left, right in partner.items()}
    anchor, places = -1, {right: left for left, right in partner.items()}
    rows: list[tuple[tuple[int, int], StepDiff]] = []
    for right, span in enumerate(after):
        if right in places:
            anchor = places[right]
        else:  # where it stood: behind the partner of the step before it
            away = _elsewhere(span, after, {at: before[left] for at, left in places.items()})
            rows.append(((anchor, right + 1), StepDiff(None, span, elsewhere=away)))
    for left, span in enumerate(before):
        if left in partner:
            rows.append(((left, 0), _step((span, after[partner[left]]), (before, after), number)))
        else:
            away = _elsewhere(span, before, {at: after[right] for at, right in partner.items()})
            rows.append(((left, 0), StepDiff(span, None, elsewhere=away)))
    return tuple(step for _, step in sorted(rows, key=lambda row: row[0]))


def changes(
    before: Mapping[str, Any], after: Mapping[str, Any], *, leave_out: Sequence[str] = ()
) -> tuple[ChangedValue, ...]:
    """Return the values that differ between two mappings, in alphabetical order of their names."""
    pairs = ((n, before.get(n, MISSING), after.get(n, MISSING)) for n in sorted({*before, *after}))
    return tuple(
        ChangedValue(name, old, new)
        for name, old, new in pairs
        if name not in leave_out and not equal(old, new)
    )


def _step(
    step: tuple[Span, Span], traces: tuple[Sequence[Span], Sequence[Span]], same_place: Mapping[int, int]
) -> StepDiff:
    before, after = step
    inputs = (*changes(before.args, after.args), *_links(step, traces, same_place))
    hits = None
    if before.hits is not None or after.hits is not None:
        hits = ranking_diff(_ranking(before.hits), _ranking(after.hits))
    # without the time at which a reply was made, which decides nothing
    was, now = (
        replace(span.output, made="") if isinstance(span.output, Reply) else span.output for span in step
    )
    output = None if equal(was, now) else ChangedValue("output", was, now)
    error = None if before.error == after.error else ChangedValue("error", before.error, after.error)
    return StepDiff(before, after, inputs, output, hits, error)


def _links(
    step: tuple[Span, Span], traces: tuple[Sequence[Span], Sequence[Span]], same_place: Mapping[int, int]
) -> list[ChangedValue]:
    """Describe the arguments that come from another step, or from another part of its output, in one of the
    two traces.
    """
    was, now = ({link.arg: link for link in span.links} for span in step)
    old, new = ({span.id for span in trace} for trace in traces)

    def same(before: Link, after: Link) -> bool:
        if (before.start, before.size) != (after.start, after.size):
            return False
        if before.span in old and after.span is not None and after.span in new:
            return same_place.get(after.span) == before.span
        return before.span == after.span and before.span not in old and after.span not in new

    names = sorted({**was, **now})
    apart = [name for name in names if not (name in was and name in now and same(was[name], now[name]))]
    before, after = (
        {name: describe(link, trace)[1] for name, link in links.items()}
        for links, trace in zip((was, now), traces, strict=True)
    )
    return [ChangedValue(name, before.get(name, MISSING), after.get(name, MISSING)) for name in apart]


def _elsewhere(span: Span, trace: Sequence[Span], partners: Mapping[int, Span]) -> bool:
    """Return whether the other trace reused a step above this one from another route."""
    at = {one.id: n for n, one in enumerate(trace)}
    above, seen = span.parent, set[int]()
    while (
        above is not None and above in at and above not in seen
    ):  # an imported trace may go round in a circle
        seen.add(above)
        if at[above] in partners and partners[at[above]].shared_with:
            return True
        above = trace[at[above]].parent
    return False


def _partners(before: Sequence[Span], after: Sequence[Span]) -> dict[int, int]:
    """Positions in `before` with those of their partners in `after`. difflib prefers one side where several
    alignments are as good: the two are put in an order of their own, so that exchanging them changes nothing.
    """
    # calls without the numbers of steps, which differ from trace to trace
    old, new = ([(span.name, span.kind, _text(span.args)) for span in spans] for spans in (before, after))
    found = _in_order(old, new, {})
    rest = [n for n in range(len(before)) if n not in found]
    others = [n for n in range(len(after)) if n not in found.values()]
    left_over = ([(s[n].name, s[n].kind) for n in ns] for s, ns in ((before, rest), (after, others)))
    one, other = left_over
    swapped = (len(other), other) < (len(one), one)
    first, second = (other, one) if swapped else (one, other)
    for block in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks():
        for n in range(block.size):
            left, right = (block.b, block.a) if swapped else (block.a, block.b)
            found[rest[left + n]] = others[right + n]
    return _in_order([(s.name, s.kind) for s in before], [(s.name, s.kind) for s in after], found)


def _in_order(before: Sequence[Any], after: Sequence[Any], taken: Mapping[int, int]) -> dict[int, int]:
    """`taken`, and of what is left each with the first equal one."""
    found, gone = dict(taken), set(taken.values())
    waiting: dict[Any, list[int]] = {}
    for right, key in enumerate(after):
        if right not in gone:
            waiting.setdefault(key, []).append(right)
    for left, key in enumerate(before):
        if left not in found and waiting.get(key):
            found[left] = waiting[key].pop(0)
    return found


def _ranking(hits: Scored | None) -> Ranking:
    return tuple(Hit(Passage(id, "", "", ""), score) for id, score in hits or ())


def equal(one: Any, other: Any) -> bool:
    """As values of JSON: a tuple is a list, NaN is NaN."""
    if one is MISSING or other is MISSING:
        return one is other
    return bool(one == other) or _text(one) == _text(other)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


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
    """Return what differs: what was asked, the settings, and the routes."""
    if diff.same:
        return "The two runs differ only in their times."
    asked = [was(one) if one.name == "corpus" else ASKED[one.name] for one in diff.asked]
    told = [f"Asked: {'; '.join(asked) or 'the same question'}."]
    told.append(f"Settings: {'; '.join(map(was, diff.settings)) or 'the same'}.")
    results = [route.before.title for route in diff.differing if not route.same_result]
    told.append(f"Of {len(diff.routes)} routes in both runs {len(results)} gave a different result")
    told[-1] += f": {_list(results)}." if results else "."
    if others := len(diff.differing) - len(results):
        told.append(f"{others} differ only in parameters or steps.")
    for alone_in, which in ((diff.only_before, "first"), (diff.only_after, "second")):
        if alone_in:
            told.append(f"Only in the {which} run: {', '.join(result.title for result in alone_in)}.")
    return " ".join(told)


def why(diff: RunDiff, route: RunRouteDiff) -> str:
    """Return why a route differs: its parameters, its inputs, or the first step with another result."""
    known = list(map(was, route.parameters)) or [ASKED[one.name] for one in diff.asked]
    if known:
        return f"because {'; '.join(known)}"
    for number, step in enumerate(route.steps, 1):
        if not step.same:
            span, only = step.before or step.after, "first" if step.after is None else "second"
            named = f"from step {number}, “{span.name if span else ''}”"
            if step.before is None or step.after is None:
                return f"{named}, only in the {only} run"
            if step.inputs:
                return f"{named}, different input: {'; '.join(change.name for change in step.inputs)}"
            return f"{named}, same input, different {'result' if step.error is None else 'error'}"
    return "though no step differs"


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
        return f"same order, different scores for {diff.scores} passages"
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
