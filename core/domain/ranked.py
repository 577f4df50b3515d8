"""Rankings in little memory: an evaluation holds one for each question and route, hundreds of thousands."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

Ranked = Sequence[tuple[str, float]]  # (passage id, score), best first


class Ids:
    """The ids of passages that some rankings name, each kept once. One thread at a time may add to it."""

    def __init__(self) -> None:
        self.known: list[str] = []
        self._numbers: dict[str, int] = {}

    def ranked(self, hits: Iterable[tuple[str, float]]) -> PackedRanking:
        """`hits` as they are, in an eighth of the memory."""
        pairs = list(hits)
        for id, _ in pairs:
            if id not in self._numbers:
                self._numbers[id] = len(self.known)
                self.known.append(id)
        numbers = array("I", [self._numbers[id] for id, _ in pairs])
        scores = array("d", [score for _, score in pairs])
        return PackedRanking(self.known, numbers.tobytes(), scores.tobytes())


class PackedRanking(Sequence[tuple[str, float]]):
    """A ranking as numbers of ids; equal to a tuple of the same pairs."""

    __slots__ = ("_ids", "_numbers", "_scores")

    def __init__(self, ids: list[str], numbers: bytes, scores: bytes) -> None:
        self._ids, self._numbers, self._scores = ids, numbers, scores

    def __len__(self) -> int:
        return len(self._scores) // 8

    def __iter__(self) -> Iterator[tuple[str, float]]:
        numbers, scores = memoryview(self._numbers).cast("I"), memoryview(self._scores).cast("d")
        return zip(map(self._ids.__getitem__, numbers), scores, strict=True)

    @overload
    def __getitem__(self, at: int) -> tuple[str, float]: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[tuple[str, float], ...]: ...
    def __getitem__(self, at: int | slice) -> tuple[str, float] | tuple[tuple[str, float], ...]:
        numbers, scores = memoryview(self._numbers).cast("I"), memoryview(self._scores).cast("d")
        if isinstance(at, slice):
            pairs = zip(numbers[at], scores[at], strict=True)
            return tuple((self._ids[number], score) for number, score in pairs)
        return self._ids[numbers[at]], scores[at]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(mine == theirs for mine, theirs in zip(self, other, strict=True))
        )

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))
