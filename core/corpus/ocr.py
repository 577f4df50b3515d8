"""Text of pages that hold only pictures, by rapidocr; optional."""

from __future__ import annotations

import logging
from functools import cache
from importlib.util import find_spec
from typing import Any

from core.domain.errors import Unavailable
from core.domain.program import INSTALLED, PROJECT

LIST = PROJECT / "requirements-ocr.txt" if INSTALLED else "requirements-ocr.txt"
DPI = 200  # of the rendered page
SURE = 0.5  # of a line: with less confidence it is left out


def lines(picture: bytes) -> list[str]:
    """Return the lines of text in a picture (PNG), from the top. Raises Unavailable without the library."""
    found = _engine()(picture)
    if not found.txts:
        return []
    read = zip(found.boxes, found.txts, found.scores, strict=True)
    sure = [
        (box[:, 1].min(), box[:, 0].min(), box[:, 1].max(), text)
        for box, text, score in read
        if score >= SURE
    ]
    rows: list[list[Any]] = []
    for top, left, bottom, text in sorted(sure):
        if rows and top < (rows[-1][0][0] + rows[-1][0][2]) / 2:
            rows[-1].append((top, left, bottom, text))
        else:
            rows.append([(top, left, bottom, text)])
    return [" ".join(text for *_, text in sorted(row, key=lambda one: one[1])) for row in rows]


@cache
def _engine() -> Any:
    """Load the models that come with the package."""
    if find_spec("rapidocr") is None:
        raise Unavailable(f"OCR needs rapidocr, which is not installed: python -m pip install -r {LIST}")
    from rapidocr import RapidOCR

    logging.getLogger("RapidOCR").setLevel(logging.ERROR)
    return RapidOCR()
