"""Take API keys, whole or in parts, plain or escaped, out of text from elsewhere.

A key counts as found wherever PART of its characters stand together, also where other text goes on before or
after them, and where characters are coded: by URL-encoding, once or several times, by JSON's escapes, or with
a backslash before them. Text is read in windows, so that time grows with its length alone, and memory hardly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

MARK = "[key]"
PART = 8  # characters of a key that are taken out wherever they stand together
# What programs that need no key tell to write in its place: these are words, and no secrets.
DUMMIES = frozenset(
    {"no-key-required", "sk-no-key-required", "not-needed", "not-required", "lm-studio", "placeholder"}
)
STRIDE = 1 << 14  # characters, coded ones counted once, that are looked through at a time
# A character that is URL-encoded, up to eight times more; escaped as in JSON; or with a backslash before it.
_CODED = re.compile(r"%(?:25){0,8}([0-9A-Fa-f]{2})|\\u([0-9A-Fa-f]{4})|\\(.)", re.DOTALL)
_CHARACTER = rf"(?:{_CODED.pattern}|.)".replace("([", "(?:[").replace("(.)", ".")


def redacted(text: str, secrets: Sequence[str]) -> str:
    """Replace each run of characters of `secrets`, at least PART long, with MARK."""
    kept, at = [], 0
    for start, end in spans(text, secrets):
        kept += [text[at:start], MARK]
        at = end
    return "".join((*kept, text[at:]))


def spans(text: str, secrets: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the places (start, end) of characters of `secrets` in `text`, in order and apart."""
    parts = _parts(tuple(secrets))
    if not _CODED.search(text) and not any(part in text for part in parts):
        return
    begun, ended = 0, 0
    for window in _windows(STRIDE).finditer(text) if parts else ():
        for start, end in sorted(_found(text[window.start() : window.end(1)], parts)):
            start, end = start + window.start(), end + window.start()
            if start > ended and ended:
                yield begun, ended
            if start > ended or not ended:
                begun = start
            ended = max(ended, end)
    if ended:
        yield begun, ended


@lru_cache(64)
def _parts(secrets: tuple[str, ...]) -> frozenset[str]:
    """Return all PART characters that stand together in a secret."""
    meant = (secret for secret in secrets if secret.lower() not in DUMMIES)
    return frozenset(secret[at : at + PART] for secret in meant for at in range(len(secret) - PART + 1))


@lru_cache
def _windows(most: int) -> re.Pattern[str]:
    """Return the pattern of up to `most` characters that ends before no half of a coded one; its group ends
    PART - 1 characters later.
    """
    return re.compile(f"{_CHARACTER}{{1,{most}}}+(?=({_CHARACTER}{{0,{PART - 1}}}))", re.DOTALL)


def _found(text: str, parts: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Yield where `parts` stand in `text` as it is, and with its coded characters read."""
    yield from _runs(text, parts)
    if runs := _runs(_CODED.sub(lambda one: one[3] or chr(int(one[1] or one[2], 16)), text), parts):
        starts, at = list[int](), 0
        for coded in _CODED.finditer(text):
            starts += range(at, coded.start() + 1)
            at = coded.end()
        starts += range(at, len(text) + 1)
        yield from ((starts[start], starts[end]) for start, end in runs)


def _runs(text: str, parts: frozenset[str]) -> list[tuple[int, int]]:
    """Return the places, apart from each other, at which `parts` follow each other or overlap."""
    found: list[tuple[int, int]] = []
    if any(part in text for part in parts):
        for at in range(len(text) - PART + 1):
            if text[at : at + PART] in parts:
                start = found.pop()[0] if found and at <= found[-1][1] else at
                found.append((start, at + PART))
    return found
