"""Keys that are known are taken out of what comes from elsewhere, before anything is made of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

MARK = "[key]"
PART = 8  # characters of a key that are taken out wherever they stand together
# What programs that need no key tell to write in its place: these are words, and no secrets.
DUMMIES = frozenset(
    {"no-key-required", "sk-no-key-required", "not-needed", "not-required", "lm-studio", "placeholder"}
)
# A character in URL encoding (once or more often), as JSON may write it, or escaped.
_CODED = re.compile(r"%(?:25)*([0-9A-Fa-f]{2})|\\u([0-9A-Fa-f]{4})|\\(.)", re.DOTALL)


def redacted(text: str, secrets: Sequence[str]) -> str:
    """`text` without any part of a secret of `PART` characters or more, in URL or JSON encoding too."""
    kept, at = [], 0
    for start, end in spans(text, secrets):
        kept += [text[at:start], MARK]
        at = end
    return "".join([*kept, text[at:]])


def spans(text: str, secrets: Sequence[str]) -> list[tuple[int, int]]:
    """Where parts of secrets stand: (start, end), in order, none touching the next."""
    parts = {part for secret in secrets if secret.lower() not in DUMMIES for part in _parts(secret)}
    if not parts:
        return []
    marked = _places(text, parts) if any(part in text for part in parts) else []
    if _CODED.search(text):
        plain, starts = _decoded(text)
        marked += [(starts[start], starts[end]) for start, end in _places(plain, parts)]
    found: list[tuple[int, int]] = []
    for start, end in sorted(marked):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


@lru_cache(64)
def _parts(secret: str) -> frozenset[str]:
    return frozenset(secret[at : at + PART] for at in range(len(secret) - PART + 1))


def _places(text: str, parts: set[str]) -> list[tuple[int, int]]:
    return [(at, at + PART) for at in range(len(text) - PART + 1) if text[at : at + PART] in parts]


def _decoded(text: str) -> tuple[str, list[int]]:
    """`text` with coded characters as themselves, and where each of it begins in `text`, its end included."""
    plain: list[str] = []
    starts: list[int] = []
    at = 0
    for match in _CODED.finditer(text):
        plain += text[at : match.start()]
        starts += range(at, match.start())
        percent, unicode, escaped = match.groups()
        plain.append(escaped or chr(int(percent or unicode, 16)))
        starts.append(match.start())
        at = match.end()
    plain += text[at:]
    return "".join(plain), [*starts, *range(at, len(text) + 1)]
