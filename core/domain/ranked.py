"""Rankings in little memory: an evaluation holds one for each question and route, hundreds of thousands."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import overload
from urllib.parse import quote

import numpy as np

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


_SEPARATING = re.compile(r"[\s%]")


def strict(scores: Sequence[float]) -> list[float]:
    """`scores` made strictly decreasing, each moved as little as a 4-byte float allows.

    trec_eval keeps scores in 4 bytes and breaks ties by passage id, backwards; without this a tie would be
    judged in another order than the one shown.
    """
    largest = np.finfo(np.float32).max / 2  # not an edge of the type, which would leave no room below it
    last, moved = np.float32(largest), np.nan_to_num(np.asarray(scores)).clip(-largest, largest)
    moved = moved.astype(np.float32)
    if not (np.diff(moved, prepend=last) < 0).all():
        for at, score in enumerate(moved):
            moved[at] = last = score if score < last else np.nextafter(last, np.float32(-np.inf))
    return list(map(float, map(str, moved)))


def run_lines(name: str, rankings: Mapping[str, Ranked]) -> Iterator[str]:
    """Lines of a run file: question Q0 passage rank score name; ranks from 1."""
    tag, words = _word(name), dict[str, str]()
    for question, hits in rankings.items():
        asked, scores = _word(question), strict([score for _, score in hits])
        for rank, ((passage, _), score) in enumerate(zip(hits, scores, strict=True), 1):
            word = words.get(passage) or words.setdefault(passage, _word(passage))
            yield f"{asked} Q0 {word} {rank} {score!r} {tag}\n"


def qrels_lines(qrels: Mapping[str, Mapping[str, int]], questions: Iterable[str]) -> Iterator[str]:
    """Lines of a qrels file for `questions`: question 0 passage grade."""
    for question in questions:
        for passage, grade in qrels.get(question, {}).items():
            yield f"{_word(question)} 0 {_word(passage)} {grade}\n"


def _word(text: str) -> str:
    """`text` with white space, which separates columns here, percent-encoded, and so the percent sign."""
    return _SEPARATING.sub(lambda found: quote(found.group()), text)
