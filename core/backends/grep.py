"""Search in the source text itself: patterns of a question, their matches, and a ranking of the passages."""

from __future__ import annotations

import heapq
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.backends.base import Mask
from core.backends.languages import HAN, HANGUL, KANA, THAI
from core.backends.terms import Analyzer
from core.domain.errors import Unavailable

Positions = NDArray[np.int64]
Kind = Literal["word", "beginning", "identifier", "exact", "letters"]

MAX_TEXT_BYTES = 1 << 30  # of a corpus; the arrays made from it take about as much again
MAX_PATTERNS = 32  # of one question
WINDOW_BYTES = 200  # within which matches count as close together
LENGTH_WEIGHT = 0.3  # how much a passage's length takes off, from 0 to 1
SHORTEST_BEGINNING = 4  # letters of a word from which its beginning is searched

_IDENTIFIER = re.compile(r"(?<!\w)(?=[\w./:#+-]*[\d_A-Z./:#+-])(?:\w[\w./:#+-]*\w[#+]*|\w[#+]+)(?!\w)")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")  # of an identifier
_UNSPACED = re.compile(f"[{HAN}{KANA}{HANGUL}{THAI}]+")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text to find, in folded case.

    A word must match from border to border, a beginning from a word's start, an identifier or exact term as
    written, and letters (of scripts without spaces) anywhere. A passage with an exact term ranks above all
    without one.
    """

    text: str
    kind: Kind

    def __str__(self) -> str:
        return f"{self.text}*" if self.kind == "beginning" else self.text


@dataclass(frozen=True, slots=True)
class Grepped:
    """A passage's match: its row, its score, and the share of each pattern and of closeness."""

    row: int
    score: float
    parts: tuple[tuple[str, float], ...]


def patterns(question: str, analyzer: Analyzer, exact: Sequence[str] = ()) -> tuple[Pattern, ...]:
    """Return the patterns of a question, at most MAX_PATTERNS.

    The parts of it in `exact` (quoted phrases, codes, names of functions ...) and other identifiers (with
    digits, inner capitals, underscores, dots ...) are taken whole. Other words, stop words left out, are
    taken whole up to three letters, else by the beginning that they share with their stem.
    """
    found: dict[Pattern, None] = {}
    rest = question
    for term in exact:
        if text := fold(term).strip(" .,;:!?()[]{}\"'`"):
            found[Pattern(text, "exact")] = None
        if term[0] in _QUOTES:
            rest = rest.replace(term, " ")
    whole = {one.text for one in found}
    for match in _IDENTIFIER.finditer(rest):
        # It has a digit, an inner mark, or a capital after its first letter.
        if not match[0].isalpha() or match[0][1:] != match[0][1:].lower():
            if fold(match[0]) not in whole:
                found[Pattern(fold(match[0]), "identifier")] = None
            for part in _PART.findall(match[0]):
                if len(part) > 1 and part != match[0]:
                    found[Pattern(fold(part), "beginning" if part.isalpha() else "word")] = None
    known = {one.text for one in found}
    for _, _, word, terms in analyzer.questions.places(rest):
        folded = fold(word)
        if _UNSPACED.fullmatch(word):
            if len(word) > 1:
                found[Pattern(folded, "letters")] = None
        elif folded not in known and len(folded) < SHORTEST_BEGINNING:
            found[Pattern(folded, "word")] = None
        elif folded not in known:
            stem = fold(terms[0]) if terms else folded
            pairs = enumerate(zip(folded, stem, strict=False))
            shared = next((n for n, (a, b) in pairs if a != b), min(len(folded), len(stem)))
            found[Pattern(folded[: max(shared, SHORTEST_BEGINNING - 1)], "beginning")] = None
    return tuple(found)[:MAX_PATTERNS]


def fold(text: str) -> str:
    """Fold case, and turn every space, and every mark that is not ASCII, into one space."""
    return _plain(text).lower()


def _plain(text: str) -> str:
    """Return `text` with letters beyond ASCII folded, and with spaces as `fold` leaves them."""
    return text.translate({ord(char): _plain_letter(char) for char in set(text) - _KEPT})


@lru_cache(100_000)
def _plain_letter(char: str) -> str:
    kind = unicodedata.category(char)[0]
    return " " if kind in "ZC" or (kind in "PS" and not char.isascii()) else char.casefold()


class SourceText:
    """The text of all passages, folded, with the places where words begin; row n is the n-th text given."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Read `texts` once. Raises Unavailable if they have more than MAX_TEXT_BYTES."""
        parts, ends, size = list[bytes](), list[int](), 0
        for text in texts:
            parts.append(_plain(text).encode("utf-8", "replace"))
            size += len(parts[-1]) + 1
            ends.append(size)
            if size > MAX_TEXT_BYTES:
                raise Unavailable(
                    f"the text of the corpus has more than {MAX_TEXT_BYTES >> 20} MB, which grep would read "
                    "for every question: search it by an index, as bm25 does"
                )
        joined = b"\0".join([*parts, b"\0" * 8])
        written = np.frombuffer(joined, np.uint8)
        self._bytes = joined.lower()
        self._text = np.frombuffer(self._bytes, np.uint8)
        self._ends = np.array(ends, np.int64)
        self._lengths = np.diff(self._ends, prepend=0)
        inside = _WORD_BYTES[self._text]
        self._inside = inside | (self._text == ord("_"))
        kinds = _BYTE_KINDS[written]  # a part of an identifier begins where small letters or digits end
        before = np.roll(kinds, 1)
        parted = ((kinds == _CAPITAL) & (before == _SMALL)) | ((kinds == _DIGIT) != (before == _DIGIT))
        self._starts: Positions = np.flatnonzero(inside & (parted | ~np.roll(inside, 1)))
        self._begins = np.zeros(len(self._text), np.bool_)
        self._begins[self._starts] = True
        self._codes = np.zeros(len(self._starts), np.uint32)
        for offset in range(4):  # the first four bytes of each word as one number
            self._codes = (self._codes << np.uint32(8)) | self._text[self._starts + offset]

    @property
    def size(self) -> int:
        """Return the number of passages."""
        return len(self._ends)

    def find(self, pattern: Pattern) -> Positions:
        """Return where `pattern` matches, as byte offsets in ascending order."""
        wanted = pattern.text.encode()
        first, last = _WORD_BYTES[wanted[0]], _WORD_BYTES[wanted[-1]]
        if pattern.kind == "letters" or not first:
            places, at = list[int](), self._bytes.find(wanted)
            while at >= 0:
                places.append(at)
                at = self._bytes.find(wanted, at + 1)
            found: Positions = np.array(places, np.int64)
        else:
            head = wanted[:4]
            mask = np.uint32(0xFFFFFFFF << (8 * (4 - len(head))) & 0xFFFFFFFF)
            code = np.uint32(int.from_bytes(head.ljust(4, b"\0"), "big"))
            found = self._starts[(self._codes & mask) == code]
            for offset in range(4, len(wanted)):
                found = found[self._text[np.minimum(found + offset, len(self._text) - 1)] == wanted[offset]]
        if pattern.kind in ("letters", "beginning"):
            return found
        after = np.minimum(found + len(wanted), len(self._text) - 1)
        bordered = ~self._inside[after] if last else np.ones(len(found), np.bool_)
        if pattern.kind == "word":
            bordered |= self._begins[after]
        elif first:
            bordered &= ~self._inside[found - 1] | (found == 0)
        value: Positions = found[bordered]
        return value

    def rows(self, places: Positions) -> Positions:
        """Return the row of the passage at each of `places`."""
        return np.searchsorted(self._ends, places, "right")

    def count(self, pattern: Pattern, allowed: Mask | None = None) -> int:
        """Return in how many passages `pattern` occurs, of those `allowed`."""
        rows = np.unique(self.rows(self.find(pattern)))
        return len(rows) if allowed is None else int(np.count_nonzero(allowed[rows]))

    def rank(
        self, wanted: Sequence[Pattern], k: int, allowed: Mask | None = None
    ) -> tuple[list[Grepped], dict[Pattern, int]]:
        """Return the `k` best rows, best first, and in how many passages each pattern occurs.

        A pattern adds its IDF, up to twice for repeats (2 - 1/n for n matches). The greatest sum of IDFs of
        different patterns within WINDOW_BYTES is added once more if there are two. A longer passage counts
        mildly less (LENGTH_WEIGHT). Each exact term that a passage has adds more than all else together can.
        Equal scores come in the order of rows.
        """
        size, counts, idfs = self.size, dict[Pattern, int](), list[float]()
        at, which = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        own = np.zeros(size)
        once = np.zeros(size)
        repeats = np.zeros((len(wanted), size), np.int32)
        for number, pattern in enumerate(wanted):
            places = self.find(pattern)
            repeats[number] = np.bincount(self.rows(places), minlength=size)[:size]
            counts[pattern] = holding = int(np.count_nonzero(repeats[number]))
            idfs.append(math.log1p((size - holding + 0.5) / (holding + 0.5)))
            has = repeats[number] > 0
            own[has] += idfs[-1] * (2 - 1 / repeats[number][has])
            once[has] += idfs[-1]
            at.append(places)
            which.append(np.full(len(places), number, np.int64))
        places, numbers = np.concatenate(at), np.concatenate(which)
        order = np.argsort(places, kind="stable")
        places, numbers = places[order], numbers[order]
        mean = max(float(self._lengths.mean()), 1.0) if size else 1.0
        norm = 1 - LENGTH_WEIGHT + LENGTH_WEIGHT * self._lengths / mean
        exact = np.array([pattern.kind == "exact" for pattern in wanted], np.bool_)
        held = np.count_nonzero(repeats[exact], axis=0) * (3 * sum(idfs) / (1 - LENGTH_WEIGHT))
        most = np.where(own > 0, (own + once) / norm + held, 0)  # no window adds more than each pattern once
        if allowed is not None:
            most = np.where(allowed, most, 0)
        best: list[tuple[float, int, float]] = []  # a heap: score, minus its row, what closeness adds
        for row in np.argsort(-most, kind="stable"):
            if most[row] <= 0 or (len(best) == k and most[row] < best[0][0]):
                break
            start, stop = np.searchsorted(places, (self._ends[row] - self._lengths[row], self._ends[row]))
            near = _closest(places[start:stop].tolist(), numbers[start:stop].tolist(), idfs)
            entry = (float((own[row] + near) / norm[row] + held[row]), -int(row), near)
            heapq.heappush(best, entry) if len(best) < k else heapq.heappushpop(best, entry)
        found = []
        for score, minus, near in sorted(best, reverse=True):
            shares = [
                (str(pattern), float(idf * (2 - 1 / n) / norm[-minus]))
                for pattern, idf, n in zip(wanted, idfs, repeats[:, -minus], strict=True)
                if n
            ]
            more = (("exact terms", float(held[-minus])), ("close together", float(near / norm[-minus])))
            shares = sorted(shares, key=lambda one: -one[1]) + [part for part in more if part[1]]
            found.append(Grepped(-minus, score, tuple(shares)))
        return found, counts


def matching_lines(texts: Sequence[str], wanted: Sequence[Pattern]) -> list[tuple[int, ...]]:
    """Return for each of `texts` the numbers, from 1, of its lines in which a pattern matches."""
    split = [text.splitlines() for text in texts]
    lines = [(at, number, line) for at, own in enumerate(split) for number, line in enumerate(own, 1)]
    source = SourceText(line for _, _, line in lines)
    matched = sorted({int(row) for one in wanted for row in source.rows(source.find(one))})
    found = list[list[int]]([] for _ in texts)
    for row in matched:
        at, number, _ = lines[row]
        found[at].append(number)
    return list(map(tuple, found))


def _closest(places: Sequence[int], numbers: Sequence[int], idfs: Sequence[float]) -> float:
    """Return the greatest sum of IDFs of different patterns within WINDOW_BYTES; 0 if there are no two."""
    best, first = 0.0, 0
    inside: dict[int, int] = {}
    for place, number in zip(places, numbers, strict=True):
        inside[number] = inside.get(number, 0) + 1
        while place - places[first] > WINDOW_BYTES:
            inside[numbers[first]] -= 1
            if not inside[numbers[first]]:
                del inside[numbers[first]]
            first += 1
        if len(inside) > 1:
            best = max(best, sum(idfs[one] for one in inside))
    return best


_QUOTES = frozenset("\"'`“„«")
_WORD_BYTES = np.array([byte >= 0x80 or chr(byte).isalnum() for byte in range(256)])
_CAPITAL, _SMALL, _DIGIT = 1, 2, 3
_BYTE_KINDS = np.zeros(256, np.uint8)
_BYTE_KINDS[ord("A") : ord("Z") + 1] = _CAPITAL
_BYTE_KINDS[ord("a") : ord("z") + 1] = _SMALL
_BYTE_KINDS[ord("0") : ord("9") + 1] = _DIGIT
_KEPT = frozenset(map(chr, range(0x21, 0x7F))) | {" "}
