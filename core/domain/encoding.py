"""The encoding of a text file, detected from its bytes if nothing declares it."""

from __future__ import annotations

import codecs
import io
import re
from contextlib import suppress
from typing import BinaryIO

from core.domain.errors import BadInput

UTF8 = "utf-8"
LOOKED_AT = 1 << 16  # bytes: of the beginning, and of what is not ASCII
CONTROLS, STRAY = 0.05, 8  # of the bytes looked at, and at least: text has tabs, line ends and few others
ZEROS, FEW = 0.1, 3  # of every other byte in UTF-16, and at least: spaces, digits and line ends have them
BROKEN = 0.1  # of what is not ASCII: with fewer that are no UTF-8 the file is damaged UTF-8
# Bytes that are not ASCII and of no known encoding: with fewer they are damage in a text.
MAX_UNKNOWN_SHARE = 0.2
MESS = 0.3  # of charset-normalizer: the share of unlikely neighbours that makes an encoding impossible
AROUND = 40  # bytes kept on both sides of those that are not ASCII
# What browsers know, the most common first: of two that fit equally well the earlier one is taken.
_KNOWN = """
cp1252 cp1250 cp1251 cp1254 cp1253 cp1255 cp1256 cp1257 cp874 iso8859_2 iso8859_5 koi8_r cp932 euc_jp gb18030
big5 cp949
"""
CANDIDATES = tuple(_KNOWN.split())
_SHOWN = {"utf-8-sig": UTF8, "cp932": "Shift-JIS", "cp949": "EUC-KR", "cp874": "Windows-874"}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SIGNATURES = {
    b"PK\x03\x04": "a ZIP archive",
    b"%PDF-": "a PDF",
    b"\x89PNG": "a PNG picture",
    b"GIF8": "a GIF picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"\x7fELF": "a program",
    b"\x1f\x8b": "a gzip archive",
    b"SQLite format 3\0": "a database",
    b"\xd0\xcf\x11\xe0": "an old Office document",
}
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_BEYOND = re.compile(rb"[\x80-\xff]+")


def encoding_of(file: BinaryIO) -> str:
    """Python's name of the encoding of a text file, read from its beginning; BadInput for what is no text.

    A byte order mark says it; else it is UTF-8 where that fits, UTF-16 by its zero bytes, and otherwise what
    charset-normalizer finds likeliest. A UTF-8 file with some broken bytes stays one.
    """
    file.seek(0)
    head = file.read(LOOKED_AT)
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    for begin, what in _SIGNATURES.items():
        if head.startswith(begin):
            raise BadInput(f"it is not text but {what}, whatever its name says")
    if wide := _wide(head):
        return wide
    if len(_CONTROL.findall(head)) > max(STRAY, CONTROLS * len(head)):
        raise BadInput("it is not text: it holds binary data")
    file.seek(0)
    sample = _not_utf8(file)
    found = _likeliest(sample) if sample else UTF8
    if found is None and sum(byte > 127 for byte in head) > MAX_UNKNOWN_SHARE * len(head):
        raise BadInput("it is not text, or of an encoding that is not known; save it as UTF-8")
    return found or UTF8


def decoded(raw: bytes) -> tuple[str, str]:
    """Decode bytes; return the text and the encoding's name. Undecodable bytes become U+FFFD. Raises BadInput
    for binary data.
    """
    encoding = encoding_of(io.BytesIO(raw))
    return raw.decode(encoding, "replace"), encoding


def display_name(encoding: str) -> str:
    """Return an encoding's usual name."""
    known = _SHOWN.get(encoding)
    if known is not None:
        return known
    return re.sub(r"^cp(125\d)$", r"Windows-\1", encoding).replace("iso8859_", "ISO 8859-").replace("_", "-")


def _wide(head: bytes) -> str | None:
    """UTF-16 without a byte order mark: zero bytes in every other place, and nowhere else."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if bool(even) == bool(odd) or max(even, odd) < max(FEW, ZEROS * len(head) / 2):
        return None
    encoding = "utf-16-le" if odd else "utf-16-be"
    try:
        codecs.getincrementaldecoder(encoding)("strict").decode(head)
    except UnicodeDecodeError:
        return None
    return encoding


def _not_utf8(file: BinaryIO) -> bytes:
    """Return b"" if the file is UTF-8, or nearly; else some of the parts of it that are not ASCII."""
    parts: list[bytes] = []
    size = whole = broken = 0
    for line in file:
        if size >= LOOKED_AT:
            break
        end = 0
        for found in () if line.isascii() else _BEYOND.finditer(line):
            parts.append(line[max(end, found.start() - AROUND) : found.end() + AROUND])
            end = found.end() + AROUND
            size += len(parts[-1])
            broken += found[0].decode(UTF8, "replace").count("\N{REPLACEMENT CHARACTER}")
            whole += len(found[0].decode(UTF8, "ignore"))
            if size >= LOOKED_AT:
                break
    return b"" if broken <= BROKEN * whole else b"".join(parts)


def _likeliest(sample: bytes) -> str | None:
    from charset_normalizer import from_bytes

    found = from_bytes(sample, cp_isolation=list(CANDIDATES), threshold=MESS)
    best = found.best()
    if best is None:
        return None
    near = {one.encoding for one in found if one.chaos <= best.chaos and one.coherence >= best.coherence}
    for encoding in CANDIDATES:
        with suppress(UnicodeDecodeError):
            if encoding in near or sample.decode(encoding) == str(best):
                return encoding
    return best.encoding
