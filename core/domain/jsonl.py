"""Reads JSON lines; what is broken is named by file and line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from core.domain.encoding import decoded
from core.domain.errors import BadInput
from core.domain.text import composed, composed_values


def lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) for each line of a JSONL file."""
    if not path.is_file():
        raise BadInput(f"no questions: {path} does not exist")
    for number, line in enumerate(utf8_text(path).split("\n"), 1):
        if line.strip():
            item = parse(line, f"{path} line {number}")
            if not isinstance(item, dict):
                raise BadInput(f"{path} line {number}: expected a JSON object, not {type(item).__name__}")
            yield number, item


def objects(path: Path, *, needed: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSONL file. Raises BadInput if one lacks text (or, as an id, a number) under a
    key in `needed`.
    """
    for number, item in lines(path):
        for key in needed:
            if not isinstance(item.get(key), str | int):
                raise BadInput(f"{path} line {number}: no text under {key!r}; it has: {', '.join(item)}")
        yield item


def parse(text: str, where: str) -> Any:
    """Return JSON with composed texts. Raises BadInput naming where it is not JSON."""
    try:
        return composed_values(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where}: not valid JSON: {error}") from None


def any_text(path: Path) -> str:
    """Return a text file's content in whichever encoding it is. Raises BadInput if it is not text."""
    try:
        return composed(decoded(path.read_bytes())[0].removeprefix("\ufeff"))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def utf8_text(path: Path) -> str:
    """Return the content of a UTF-8 file. Raises BadInput if it is in another encoding."""
    try:
        return composed(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text (byte {error.start})") from None


def text(value: Any) -> str:
    """Write compact JSON that reads back like the output of `json.dumps`, without escaping non-ASCII
    characters.

    `value` consists of dict (with text keys), list, tuple, str, int, float, bool and None; numbers may be NaN
    or infinite.
    """
    try:
        return to_json(value, inf_nan_mode="constants").decode()
    except PydanticSerializationError:  # a lone surrogate
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def ascii_text(value: Any) -> str:
    """Write compact JSON in ASCII only, lone surrogates included, for files of lines."""
    found = text(value)
    return found if found.isascii() else json.dumps(value)


def finite(value: Any) -> Any:
    """Replace the numbers that JSON cannot represent by null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value
