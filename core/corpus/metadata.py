"""The metadata of documents, and the documents that meet a condition on them."""

from __future__ import annotations

import json
import re
from calendar import monthrange
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.backends.base import Mask
from core.domain.errors import BadInput
from core.domain.filters import Filter

Kind = Literal["text", "number", "date", "version"]
HEAD = 2_000  # characters of a document in which its header is looked for
LINES = 20  # of a header, at most
FOLDER = "folder"  # the field that holds the first part of a document's path
NESTED = ("metadata", "meta")  # of a document's keys, those whose object's keys are fields
NAMED = 12  # fields that a message names
ODD = 0.05  # share of a field's documents whose values may be of another kind than the field
REMEMBERED = 64  # conditions whose documents are not looked up again
_LINE = re.compile(r"([A-Za-z][A-Za-z _-]{0,30}):[ \t]+(\S[^\n]{0,200})")
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?:[T ].*)?")
_VERSION = re.compile(r"v?\d+(?:\.\d+){1,5}")
FORMS: dict[Kind, str] = {
    "text": "text",
    "number": "a number",
    "date": "YYYY, YYYY-MM or YYYY-MM-DD",
    "version": "a version such as 2.1.0",
}


def header(text: str) -> dict[str, str]:
    """Return the fields at the top of a document: lines `Name: value` before its first heading, and those of
    a YAML front matter. Names are in lower case, with _ for a space.
    """
    found: dict[str, str] = {}
    for at, line in enumerate(text[:HEAD].split("\n")[:LINES]):
        if at and line.startswith("#"):
            break
        if match := _LINE.fullmatch(line.strip()):
            found.setdefault(field_name(match[1]), match[2].strip().strip("\"'"))
    return found


def field_name(shown: str) -> str:
    """Return a field's name as filters write it."""
    return re.sub(r"[\s-]+", "_", shown.strip().lower())


def days(text: str) -> tuple[int, int] | None:
    """Return the first and the last day of a date as ordinals; a year or a month has several days."""
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day = (int(part) if part else None for part in match.groups())
    try:
        first = date(year or 0, month or 1, day or 1)
        if day is not None:
            return first.toordinal(), first.toordinal()
        until = month or 12
        return first.toordinal(), date(first.year, until, monthrange(first.year, until)[1]).toordinal()
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Field:
    """A field as lists show it: how many `documents` have it, and its `values`, the most frequent first."""

    name: str
    kind: Kind
    documents: int
    values: tuple[str, ...]
    counts: tuple[int, ...] = ()  # documents that have each value


class Metadata:
    """The fields of a corpus' documents by the number of the document, from 0. Safe in threads.

    A field whose values are numbers, dates or versions in all but ODD of its documents (one, if there are two
    others) compares as such, and a document with another value is found by "!=", "~" and "!~" alone. Any
    other field compares as text, without regard to case.
    """

    def __init__(self, heads: Iterable[tuple[str, Mapping[str, str], str]]) -> None:
        """Read each document's id, its metadata, and the start of its text, "" if it has no header to search.
        A name in only one document's header does not count as a field.
        """
        given: list[dict[str, str]] = []
        derived: list[dict[str, str]] = []
        for id, meta, text in heads:
            folder = id.partition("/")[0] if text and "/" in id and "://" not in id else ""
            given.append(_flat(meta))
            derived.append({**(header(text) if text else {}), **({FOLDER: folder} if folder else {})})
        often = Counter(name for one in derived for name in one)
        often[FOLDER] = len({one.get(FOLDER, "") for one in derived} - {""})
        self.size = len(given)
        values: dict[str, dict[int, str]] = {}
        for number, (own, read) in enumerate(zip(given, derived, strict=True)):
            for name, value in {**{n: v for n, v in read.items() if often[n] > 1}, **own}.items():
                if value.strip():
                    values.setdefault(name, {})[number] = value.strip()
        common = sorted(values.items(), key=lambda one: (-len(one[1]), one[0]))
        self._columns = {name: _Column(found, self.size) for name, found in common}
        self._meeting = lru_cache(REMEMBERED)(self._looked_up)

    @property
    def fields(self) -> tuple[Field, ...]:
        """All of them, those of most documents first, then by name."""
        return tuple(
            Field(name, one.kind, one.documents, one.values, one.counts)
            for name, one in self._columns.items()
        )

    def meeting(self, where: Sequence[Filter]) -> Mask:
        """Return the mask of documents that meet every condition, shape (documents,). Raises BadInput for an
        unknown field, or a value of another kind.
        """
        every = np.ones(self.size, np.bool_)
        found: Mask = np.logical_and.reduce([every, *map(self._meeting, where)])
        return found

    def value(self, document: int, name: str) -> str | None:
        """Return the value of a document's field, or None."""
        column = self._columns.get(self._called(name))
        return column.value(document) if column is not None else None

    def days(self, name: str) -> NDArray[np.float64]:
        """Return the day of each document in a date field as an ordinal, shape (documents,); NaN without
        one.
        """
        column = self._columns.get(self._called(name))
        if column is None or column.kind != "date":
            dated = [one.name for one in self.fields if one.kind == "date"]
            known = f"fields of dates: {', '.join(dated)}" if dated else "no field of this corpus holds dates"
            raise BadInput(f"{name!r} is no field of dates; {known}")
        return column.days()

    def _called(self, name: str) -> str:
        """Find a field by its exact name, else ignoring case, spaces and hyphens."""
        alike = (known for known in self._columns if field_name(known) == field_name(name))
        return name if name in self._columns else next(alike, name)

    def _looked_up(self, one: Filter) -> Mask:
        column = self._columns.get(self._called(one.field))
        if column is None:
            known = ", ".join(list(self._columns)[:NAMED]) or "none"
            more = f" and {len(self._columns) - NAMED} more" if len(self._columns) > NAMED else ""
            raise BadInput(f"this corpus has no metadata {one.field!r}; known: {known}{more}")
        return column.meeting(one)


class _Column:
    """A field: its distinct values, and which of them each document has (-1: none)."""

    def __init__(self, found: Mapping[int, str], size: int) -> None:
        counted = Counter(found.values())
        self.values = tuple(sorted(counted, key=lambda value: (-counted[value], value)))
        self.counts = tuple(counted[value] for value in self.values)
        at = {value: place for place, value in enumerate(self.values)}
        self._codes = np.full(size, -1, np.int32)
        self._codes[list(found)] = [at[value] for value in found.values()]
        self.documents = len(found)
        self.kind = _kind(counted)

    def value(self, document: int) -> str | None:
        code = int(self._codes[document])
        return self.values[code] if code >= 0 else None

    def days(self) -> NDArray[np.float64]:
        known = [found[0] if (found := days(value)) else np.nan for value in self.values]
        return np.array([*known, np.nan])[self._codes]

    def meeting(self, one: Filter) -> Mask:
        """By document; one without the field meets only what says "not"."""
        holds = _test(one, self.kind)
        return np.array([*map(holds, self.values), one.operator in ("!=", "!~")])[self._codes]


def _flat(meta: Mapping[str, str]) -> dict[str, str]:
    """Return `meta` with the fields of an object called "metadata" or "meta" on the top level, as in BEIR."""
    found = dict(meta)
    for name in NESTED:
        inner = None
        if (text := found.get(name, "")).startswith("{"):
            with suppress(json.JSONDecodeError):
                inner = json.loads(text)
        if isinstance(inner, dict):
            del found[name]
            found = {**{key: v if isinstance(v, str) else json.dumps(v) for key, v in inner.items()}, **found}
    return found


def _kind(counted: Mapping[str, int]) -> Kind:
    """Return the kind that the fewest documents are at odds with, text if those are too many."""
    tests: dict[Kind, Callable[[str], Any]] = {"number": _number, "date": days, "version": _VERSION.fullmatch}
    documents = sum(counted.values())
    odd = {kind: sum(n for value, n in counted.items() if is_(value) is None) for kind, is_ in tests.items()}
    best = min(odd, key=odd.__getitem__)
    return best if odd[best] <= max(ODD * documents, documents > 2) else "text"


def _test(one: Filter, kind: Kind) -> Callable[[str], bool]:
    """Return a function that tests whether a field's value meets the condition."""
    if one.operator in ("~", "!~"):
        sought, within = _plain(one.values[0]), one.operator == "~"
        return lambda value: (sought in _plain(value)) == within
    if kind == "text":
        if one.operator in ("<", ">", "<=", ">="):
            raise BadInput(f"filter {one}: {one.field} holds text, which compares by = != ~ !~ or in")
        wanted = set(map(_plain, one.values))
        return lambda value: (_plain(value) in wanted) == (one.operator != "!=")
    asked = [_range(value, kind) for value in one.values]
    if (wrong := next((v for v, a in zip(one.values, asked, strict=True) if a is None), None)) is not None:
        raise BadInput(f"filter {one}: {wrong!r} cannot be compared; {one.field} takes {FORMS[kind]}")
    ranges = [found for found in asked if found is not None]
    first, last = ranges[0]

    def holds(value: str) -> bool:
        own = _range(value, kind)
        if own is None:
            return one.operator == "!="
        begin, end = own
        within = any(a <= begin and end <= b for a, b in ranges)
        order = {"<": end < first, "<=": end <= last, ">": begin > last, ">=": begin >= first}
        return bool(order.get(one.operator, within == (one.operator != "!=")))

    return holds


def _range(value: str, kind: Kind) -> tuple[Any, Any] | None:
    """Return the minimum and maximum of a value; only dates have a range."""
    if kind == "date":
        return days(value)
    if kind == "number":
        number = _number(value)
        return None if number is None else (number, number)
    if not re.fullmatch(r"v?\d+(?:\.\d+){0,5}", value.strip()):
        return None
    parts = tuple(int(part) for part in value.strip().removeprefix("v").split("."))
    padded = (*parts, *[0] * (6 - len(parts)))
    return padded, padded


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _plain(value: str) -> str:
    return " ".join(value.casefold().split())
