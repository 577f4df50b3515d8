"""Which lists of a route's trace its ranking was made from, read from the spans alone. Knows no route."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from core.types import RouteResult, Span

SEARCHES = ("RETRIEVER", "TOOL")
_HITS = re.compile(r"(\d+) hits")
Role = Literal["list", "first", "rest"]
# Arguments of steps that put one list before another: the first keeps its places.
_ROLES: dict[str, Role] = {"first": "first", "collected": "first", "rest": "rest", "found": "rest"}


@dataclass(frozen=True, slots=True)
class Source:
    """A list that a step was given: the first `size` of what `span` found."""

    span: Span
    size: int
    role: Role = "list"


@dataclass(frozen=True, slots=True)
class Loss:
    """Where a passage got lost: at `was` in `before`, at `now` (None: not there) after `step`.

    `step` None is the end of the route: what it returned of its last list.
    """

    step: Span | None
    before: Span
    was: int
    now: int | None


class Flow:
    """The lists of one route and how they were made into its ranking.

    A step names its lists by span where it fuses, and else by their length ("50 hits"). A step taken over
    from another route has lengths alone. Then it is the latest earlier list of that length (or longer, of
    which a part was taken) that shares passages with what the step made.
    """

    def __init__(self, result: RouteResult) -> None:
        self.result = result
        self.lists = [span for span in result.spans if is_list(span)]
        self.known = {span.id: span for span in self.lists}
        self._places: dict[int, dict[str, int]] = {}
        self._sources: dict[int, tuple[Source, ...]] = {}

    @cached_property
    def final(self) -> dict[str, int]:
        """Rank from 1 in what the route returned, by passage id."""
        return _first(hit.passage.id for hit in self.result.hits)

    @cached_property
    def last(self) -> Span | None:
        """The list that was returned, or of which the first part was; None for a route without any."""
        ids = list(self.final)
        if not ids:
            return None
        for span in reversed(self.lists):
            if list(self.places(span))[: len(ids)] == ids:
                return span
        shared = [
            (len(self.final.keys() & self.places(span).keys()), at) for at, span in enumerate(self.lists)
        ]
        most = max(shared, default=(0, 0))
        return self.lists[most[1]] if most[0] else None

    def places(self, span: Span) -> dict[str, int]:
        """Rank from 1 by passage id; of a repeat the first counts."""
        if span.id not in self._places:
            self._places[span.id] = _first(hit[0] for hit in span.hits or ())
        return self._places[span.id]

    def sources(self, span: Span) -> tuple[Source, ...]:
        """The lists a step was given, in its order; () for a search."""
        if span.id not in self._sources:
            self._sources[span.id] = tuple(self._given(span))
        return self._sources[span.id]

    def line(self) -> list[Span]:
        """The lists that the final ranking was made from, as the trace has them."""
        used: set[int] = set()
        todo = [self.last] if self.last is not None else []
        while todo:
            span = todo.pop()
            if span.id not in used:
                used.add(span.id)
                todo += [source.span for source in self.sources(span)]
        return [span for span in self.lists if span.id in used]

    def loss(self, id: str, depth: int) -> Loss | None:
        """The last step that took a passage out of the top `depth`; where none ever had it there, the last
        that dropped it; None where it was not lost or never found.
        """
        rank = self.final.get(id)
        if rank is not None and rank <= depth:
            return None
        return self._lost_by(None, id, rank, depth)

    def _lost_by(self, step: Span | None, id: str, now: int | None, depth: int) -> Loss | None:
        """See `loss`, of what `step` was given and put at `now`."""
        given = self._given_to(step, now)
        held = [(rank, span) for span in given if (rank := self.places(span).get(id)) is not None]
        if not held:
            earlier = (self._lost_by(span, id, None, depth) for span in given) if now is None else ()
            return min((one for one in earlier if one), key=lambda one: one.was, default=None)
        was, before = min(held, key=lambda one: one[0])
        if was <= depth:
            return Loss(step, before, was, now)
        return self._lost_by(before, id, was, depth) or (
            Loss(step, before, was, None) if now is None else None
        )

    def _given_to(self, step: Span | None, now: int | None) -> list[Span]:
        if step is None:
            return [self.last] if self.last is not None else []
        return [source.span for source in self._feeding(step, now)]

    def _feeding(self, step: Span, now: int | None) -> list[Source]:
        """The lists that can have put a passage at `now`: of two put one after the other only one can."""
        given = list(self.sources(step))
        first = sum(source.size for source in given if source.role == "first") or _size(step, "first")
        if now is None or not first:
            return given
        left_out: Role = "rest" if now <= first else "first"
        return [source for source in given if source.role != left_out]

    def _given(self, span: Span) -> Iterator[Source]:
        if span.kind in SEARCHES and "lists" not in span.inputs:
            return
        earlier = self.lists[: self.lists.index(span)]
        if isinstance(rounds := span.inputs.get("found"), list) and rounds:
            yield from self._round(span, earlier)
            return
        slots = list(_slots(span))
        made: list[Source] = []
        taken: set[int] = set()
        for role, size, named in reversed(slots):  # the last one given was most often made last
            if named is not None:
                one = next((other for other in earlier if other.id == named), None)
            else:
                one = self._like(span, role, size, [other for other in earlier if other.id not in taken])
            if one is not None:
                taken.add(one.id)
                made.append(Source(one, len(one.hits or ()) if named is not None else size, role))
        yield from reversed(made)
        if not made and (one := self._whole(span, earlier)):
            yield Source(one, len(one.hits or ()))

    def _like(self, span: Span, role: Role, size: int, earlier: list[Span]) -> Span | None:
        """The latest list that can be the one of `size` passages which a step was given."""
        into = list(self.places(span))
        target = set(into[:size] if role == "first" else into)
        best: tuple[int, Span] | None = None
        for other in reversed(earlier):
            length = len(other.hits or ())
            if length < size or not size:
                continue
            part = set(list(self.places(other))[:size])
            if not (
                part <= target or target <= part or 2 * len(part & target) >= min(len(part), len(target))
            ):
                continue
            worth = 2 * (length == size) + (part <= target or target <= part)
            if best is None or worth > best[0]:
                best = worth, other
        return best[1] if best else None

    def _whole(self, span: Span, earlier: list[Span]) -> Span | None:
        """For a step that tells nothing of what it was given: the latest list with all that it made."""
        into = self.places(span).keys()
        return next((one for one in reversed(earlier) if into and into <= self.places(one).keys()), None)

    def _round(self, span: Span, earlier: list[Span]) -> Iterator[Source]:
        """Of several searches one was kept: the list with the same passages."""
        into = self.places(span).keys()
        for one in reversed(earlier):
            if self.places(one).keys() == into:
                yield Source(one, len(into))
                return


def is_list(span: Span) -> bool:
    """Whether a step made a list of passages; an empty output of another kind is none."""
    if span.hits is None:
        return False
    return bool(span.hits) or (span.output is None and (span.kind in SEARCHES or "cosines" in span.inputs))


def _slots(span: Span) -> Iterator[tuple[Role, int, int | None]]:
    """(role, size, span id if it is named) of each list among a step's arguments."""
    for key, value in span.inputs.items():
        role = _ROLES.get(key, "list")
        for item in value if isinstance(value, list) else [value]:
            if key == "lists" and isinstance(item, int) and not isinstance(item, bool):
                yield role, 0, item
            elif isinstance(item, str) and (match := _HITS.fullmatch(item)):
                yield role, int(match[1]), None


def _size(span: Span, key: str) -> int:
    value = span.inputs.get(key)
    match = _HITS.fullmatch(value) if isinstance(value, str) else None
    return int(match[1]) if match else 0


def _first(ids: Iterator[str] | list[str]) -> dict[str, int]:
    places: dict[str, int] = {}
    for rank, id in enumerate(ids, 1):
        places.setdefault(str(id), rank)
    return places
