"""Redaction of known keys in text from elsewhere, before the text is used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Hashes = NDArray[np.uint64]

MARK = "[key]"
PART = 8  # characters of a key that are taken out wherever they stand together; a power of 2
# What programs that need no key tell to write in its place: these are words, and no secrets.
DUMMIES = frozenset(
    {"no-key-required", "sk-no-key-required", "not-needed", "not-required", "lm-studio", "placeholder"}
)
NESTED = 8  # times that a character may be URL-encoded again
STRIDE = 1 << 16  # characters looked through at a time, so that memory does not grow with the text
_FURTHEST = PART * (4 + 2 * NESTED)  # characters that PART coded ones take at most
_CODED = re.compile(r"[%\\]")
_BASE = 0x9E3779B97F4A7C15  # of the hash of PART characters: any odd number; here 2**64 / the golden ratio


def redacted(text: str, secrets: Sequence[str]) -> str:
    """Return `text` without the parts of secrets of `PART` characters or more, also URL- or JSON-encoded."""
    kept, at = StringIO(), 0
    for start, end in spans(text, secrets):
        kept.write(text[at:start])
        kept.write(MARK)
        at = end
    return kept.getvalue() + text[at:] if at else text


def spans(text: str, secrets: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where parts of secrets stand: (start, end), in order, none touching the next.

    A text of 16 million characters takes less than a second and less than 100 MB, whatever it contains.
    """
    parts = _parts(tuple(secrets))
    if not parts or len(text) < PART:
        return
    if len(text) < STRIDE and not _CODED.search(text) and not any(part in text for part in parts):
        return  # most texts are short, and numpy takes a millisecond
    import numpy as np

    known = _hashes(_codes("".join(parts)))[::PART]
    found: tuple[int, int] | None = None
    at = 0
    while at < len(text):
        codes = _codes(text[at : at + STRIDE + _FURTHEST])
        begun = _found(codes, known)
        ended = begun + PART
        after = at + STRIDE
        if _CODED.search(text, at, after + _FURTHEST):
            decoded, starts = _decoded(codes)
            places = _found(decoded, known)
            begun, ended = np.append(begun, starts[places]), np.append(ended, starts[places + PART])
            begun, ended = np.sort(begun), np.sort(ended)
            # The next stride begins with a character, not within a coded one.
            after = at + int(starts[np.searchsorted(starts, STRIDE)]) if after < len(text) else after
        apart = begun[1:] > ended[:-1]
        firsts, lasts = (
            begun[np.append(True, apart)[: len(begun)]],
            ended[np.append(apart, True)[: len(ended)]],
        )
        for start, end in zip((firsts + at).tolist(), (lasts + at).tolist(), strict=True):
            if found and start <= found[1]:
                found = found[0], max(end, found[1])
            else:
                if found:
                    yield found
                found = start, end
        at = after
    if found:
        yield found


@lru_cache(64)
def _parts(secrets: tuple[str, ...]) -> frozenset[str]:
    meant = (secret for secret in secrets if secret.lower() not in DUMMIES)
    return frozenset(secret[at : at + PART] for secret in meant for at in range(len(secret) - PART + 1))


def _codes(text: str) -> Ints:
    """Return the code points of `text`."""
    import numpy as np

    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)


def _hashes(codes: Ints) -> Hashes:
    """Return a hash of each PART consecutive characters: those of 1, 2, 4 ... characters are joined."""
    import numpy as np

    made, base, width = codes.view(np.uint64), _BASE, 1
    while width < PART:
        made = made[:-width] * np.uint64(base) + made[width:]
        base, width = base * base % 2**64, 2 * width
    return made


def _found(codes: Ints, known: Hashes) -> Ints:
    """Return where PART characters with one of the `known` hashes begin."""
    import numpy as np

    hashes = _hashes(codes)
    first = np.zeros(1 << 16, bool)  # most hashes are unlike any known one in their first 16 bits
    first[known >> np.uint64(48)] = True
    maybe = np.flatnonzero(first[hashes >> np.uint64(48)])
    return maybe[np.isin(hashes[maybe], known)]


def _decoded(codes: Ints) -> tuple[Ints, Ints]:
    """Return the characters of a text, coded ones as themselves, and where each begins; the end included.

    A coded character is \\uXXXX as in JSON, an escaped character, or %XX, of which the % may be coded again.
    """
    import numpy as np

    padded = np.concatenate([codes, np.zeros(4 + 2 * NESTED, np.int64)])  # so that looking ahead stays inside
    digits = np.full(128, -1 << 16)
    digits[[ord(char) for char in "0123456789ABCDEF"]] = range(16)
    digits[[ord(char) for char in "abcdef"]] = range(10, 16)

    def pair(at: Ints) -> Ints:
        """Return the numbers that two hexadecimal digits write at `at`; negative for other characters."""
        found = digits[np.minimum(padded[np.stack([at, at + 1])], 127)]
        return np.asarray(found[0] * 16 + found[1])

    slashes = np.flatnonzero(codes == ord("\\"))
    run = np.arange(len(slashes)) - np.maximum.accumulate(
        np.where(np.diff(slashes, prepend=-2) > 1, np.arange(len(slashes)), 0)
    )
    escape = slashes[(run % 2 == 0) & (slashes + 1 < len(codes))]
    four = escape[padded[escape + 1] == ord("u")]
    number = pair(four + 2) * 256 + pair(four + 4)
    four, number = four[number >= 0], number[number >= 0]
    value = codes.copy()
    value[escape] = padded[escape + 1]
    value[four] = number
    inside = np.zeros(len(padded), bool)
    inside[escape + 1] = True
    percents = np.flatnonzero(codes == ord("%"))
    percent = percents[~inside[percents]]
    for offset in range(2, 6):
        inside[four + offset] = True

    at = percent + 1
    for _ in range(NESTED):
        again = (pair(at) == ord("%")) & (pair(at + 2) >= 0)
        if not again.any():
            break
        at = np.where(again, at + 2, at)
    number = pair(at)
    percent, at, number = percent[number >= 0], at[number >= 0], number[number >= 0]
    value[percent] = number
    length = at + 2 - percent
    for offset in range(1, int(length.max(initial=1))):
        inside[percent[length > offset] + offset] = True
    begins = np.flatnonzero(~inside[: len(codes)])
    return value[begins], np.append(begins, len(codes))
