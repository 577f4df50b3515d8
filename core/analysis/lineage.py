"""The lists passed to a route's steps, and the point at which a passage left them. Knows no route."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from core.domain.outputs import Fusion, Search, Selection
from core.domain.types import Link, RouteResult, Span

LISTS = ("lists", "hits", "first", "rest", "collected", "found")  # arguments that take a ranking, or several


@dataclass(frozen=True, slots=True)
class PassedList:
    """A list that was passed on: `size` passages of the hits of `span`, from `start` on (0: the first).
    `span` is None if the route assembled the list itself, so that its origin is unknown.
    """

    span: Span | None
    size: int
    start: int = 0

    @property
    def unknown(self) -> bool:
        """Return whether it has passages whose origin the trace does not record."""
        return self.span is None and self.size > 0

    @property
    def whole(self) -> bool:
        """Return whether every hit was passed on."""
        return self.span is not None and not self.start and self.size >= len(self.span.hits or ())

    @property
    def part(self) -> str:
        """Return which passages of the list were passed on, in words."""
        if self.size < 1:
            return "none"
        end = self.start + self.size
        return f"ranks {self.start + 1} to {end}" if self.start else f"the first {end}"


@dataclass(frozen=True, slots=True)
class LossPoint:
    """The place where a passage was lost: it was at `was` in `before` and is at `now` (None: absent) after
    `step`. `step` is None at the end of the route, where it returned its ranking. `cut`: the part of `before`
    that the route passed on, without the passage. `before` is None if the route assembled what it passed on
    itself, which the trace does not record.
    """

    step: Span | None
    before: Span | None = None
    was: int = 0
    now: int | None = None
    cut: PassedList | None = None


class Lineage:
    """The lists of one route and how they were made into its ranking."""

    def __init__(self, result: RouteResult) -> None:
        self.result = result
        self.lists = [span for span in result.spans if span.hits is not None]
        self._spans = {span.id: span for span in result.spans}
        self._ranks: dict[tuple[int, int, int], dict[str, int]] = {}

    @cached_property
    def final(self) -> dict[str, int]:
        """Return the rank from 1 in the route's final ranking, by passage id."""
        return _first((hit.passage.id for hit in self.result.hits), 0)

    def places(self, span: Span) -> dict[str, int]:
        """Return the rank from 1 by passage id; of repeats only the first counts."""
        return self.passed(PassedList(span, len(span.hits or ())))

    def passed(self, source: PassedList) -> dict[str, int]:
        """Return the rank in the whole list of each passage that was passed on."""
        if source.span is None:
            return {}
        start, end = max(0, source.start), max(0, source.start + source.size)
        key = source.span.id, start, end
        if key not in self._ranks:
            self._ranks[key] = _first((hit[0] for hit in (source.span.hits or ())[start:end]), start)
        return self._ranks[key]

    def sources(self, step: Span | None) -> tuple[PassedList, ...]:
        """Return the lists that a step was given, in their order, or () for a search. None: what the route
        returned.
        """
        return self._returned if step is None else self._sources.get(step.id, ())

    @cached_property
    def _returned(self) -> tuple[PassedList, ...]:
        """Return the sources of the final ranking. An imported trace may name a wrong one, which counts as
        unknown.
        """
        if (link := self.result.origin) is None:
            return ()
        source = self._source(link, None)
        return (source if list(self.passed(source)) == list(self.final) else PassedList(None, link.size),)

    @cached_property
    def _sources(self) -> dict[int, tuple[PassedList, ...]]:
        """The lists of each step; one that was given none, but what others made of lists, has theirs."""
        found: dict[int, tuple[PassedList, ...]] = {}
        for step in sorted(self._spans.values(), key=lambda span: span.id):
            found[step.id] = tuple(self._source(link, step) for link in _links(step))
            if not found[step.id] and not is_search(step):
                others = sorted(one.id for link in step.links if (one := self._earlier(link, step)))
                behind = [source for id in dict.fromkeys(others) for source in found[id]]
                found[step.id] = tuple({(one.start, one.size, id(one.span)): one for one in behind}.values())
        return found

    def _source(self, link: Link, step: Span | None) -> PassedList:
        span = self._earlier(link, step)
        if span is None or span.hits is None:
            return PassedList(None, link.size)
        return PassedList(span, link.size, link.start)

    def _earlier(self, link: Link, step: Span | None) -> Span | None:
        """Return the step that a link names; an imported one may name none, or one that was not done yet."""
        span = self._spans.get(link.span) if link.span is not None else None
        return span if span is not None and (step is None or span.id < step.id) else None

    @cached_property
    def line(self) -> list[Span]:
        """The lists that the final ranking was made from, as far as the trace says, as they were made."""
        return sorted((span for span in self.lists if span.id in self._used), key=lambda span: span.id)

    @cached_property
    def _used(self) -> set[int]:
        used: set[int] = set()
        todo = [*self.sources(None)]
        while todo:
            span = todo.pop().span
            if span is not None and span.id not in used:
                used.add(span.id)
                todo += self.sources(span)
        return used

    @cached_property
    def _unknown_until(self) -> float:
        """The last step on the line that was given a list of the route's own making; 0 for none."""
        if any(source.unknown for source in self.sources(None)):
            return float("inf")
        own = (span.id for span in self.line if any(source.unknown for source in self.sources(span)))
        return max(own, default=0)

    @property
    def unknown(self) -> bool:
        """Return whether the ranking was made from a list that the route assembled itself."""
        return self._unknown_until > 0

    def used(self, span: Span) -> bool | None:
        """Return whether the final ranking was made from a list, or None if the trace does not record it."""
        if span.id in self._used:
            return True
        return None if span.id < self._unknown_until else False

    def loss(self, id: str, depth: int) -> LossPoint | None:
        """Return the last step that took a passage out of the top `depth`; if none ever had it there, the
        last that dropped it, or None if it was not lost or never found.
        """
        rank = self.final.get(id)
        if rank is not None and rank <= depth:
            return None
        earlier: dict[
            int, LossPoint
        ] = {}  # what was made before a step: no step is given what comes after it
        for span in self.line:
            now = self.places(span).get(id)
            if (now is None or now > depth) and (loss := self._lost_by(span, id, now, depth, earlier)):
                earlier[span.id] = loss
        return self._lost_by(None, id, rank, depth, earlier)

    def _lost_by(
        self, step: Span | None, id: str, now: int | None, depth: int, earlier: Mapping[int, LossPoint]
    ) -> LossPoint | None:
        """See `loss`, of what `step` was given and put at `now`, or of how it got lost before."""
        sources = self.sources(step)
        placed = self._placed_by(step, sources, id, now)
        passed = self._ranked(step, placed, id, now)
        if passed and passed[0].was <= depth:
            return passed[0]
        cut = self._ranked(step, sources, id, now, cut=True)
        spans = {source.span.id: source.span for source in sources if source.span is not None}
        through = sorted(spans.values(), key=lambda span: self.places(span).get(id, float("inf")))
        before = [earlier[span.id] for span in through if span.id in earlier]
        for loss in (*before, *cut, *self._ranked(step, sources, id, now)):
            if loss.before is not None and loss.was <= depth:
                return loss
        if any(source.unknown for source in placed):
            return LossPoint(step, now=now)
        if unknown := next((loss for loss in before if loss.before is None), None):
            return unknown
        return next(iter([*passed, *cut, *before]), None) if now is None else None

    def _ranked(
        self,
        step: Span | None,
        given: Sequence[PassedList],
        id: str,
        now: int | None,
        cut: bool = False,
    ) -> list[LossPoint]:
        """Return the lists that passed it on to `step`, best rank first; with `cut` those with it of which
        the route passed on a part without it.
        """
        found = []
        for source in given:
            if source.span is not None and (id not in self.passed(source)) is cut:
                was = self.places(source.span).get(id) if cut else self.passed(source)[id]
                found += [LossPoint(step, source.span, was, now, source if cut else None)] if was else []
        return sorted(found, key=lambda loss: loss.was)

    def _placed_by(
        self, step: Span | None, given: Sequence[PassedList], id: str, now: int | None
    ) -> Sequence[PassedList]:
        """Return the lists that can have put it at `now`: of lists put one behind another the first with
        it.
        """
        if now is None or step is None or not (isinstance(step.output, Fusion) and step.output.in_turn):
            return given
        end = 0
        found: list[PassedList] = []
        for source in given:
            end += source.size
            if id in self.passed(source):
                return [*found, source]
            if source.unknown and now <= end:
                found.append(source)
        return found


def is_search(span: Span) -> bool:
    """Return whether a step searched for its list, rather than deriving it from other lists."""
    return isinstance(span.output, Search)


def _links(step: Span) -> list[Link]:
    """Return the links of the lists that a step made its own from; a walk has one, and finds passages beyond
    it.
    """
    if isinstance(step.output, Search) and step.output.walk is None:
        return []
    found = [link for link in step.links if link.arg.partition("[")[0] in LISTS]
    if isinstance(step.output, Selection) and step.output.method == "round":
        return [link for link in found if link.arg == f"found[{step.output.at}]"]
    return found


def _first(ids: Iterator[str], start: int) -> dict[str, int]:
    places: dict[str, int] = {}
    for rank, id in enumerate(ids, start + 1):
        places.setdefault(id, rank)
    return places
