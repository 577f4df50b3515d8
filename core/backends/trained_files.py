"""Small trained models as JSON files: shipped with the program, or trained here."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import TypeAdapter, ValidationError

from core.domain import system
from core.domain.errors import Unavailable
from core.domain.program import PROJECT

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


@cache
def _reader(kind: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(kind)


def parse_trained(kind: type[T], text: str | bytes) -> T:
    """Parse the JSON of a dataclass, whose `__post_init__` checks it. Raises ValueError with the first
    fault.
    """
    try:
        found: T = _reader(kind).validate_json(text)
        return found
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = "".join(f"{part}: " for part in (".".join(map(str, first["loc"])),) if part)
        raise ValueError(where + first["msg"].removeprefix("Value error, ")) from None


def read_trained(path: Path, kind: type[T], what: str, remedy: str) -> T:
    """Return the model in a file, with the file as its `source`. Raises Unavailable, which names `what` and
    the `remedy`, if the file is missing or damaged.
    """
    shown = str(path.relative_to(PROJECT)) if path.is_relative_to(PROJECT) else str(path)
    try:
        return replace(parse_trained(kind, path.read_bytes()), source=shown)
    except (OSError, ValueError) as error:
        raise Unavailable(f"{what} {shown} cannot be used ({str(error)[:200]}); {remedy} makes one") from None


def write_trained(model: DataclassInstance, path: Path) -> None:
    """Store a model as JSON, without its `source`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = {key: value for key, value in asdict(model).items() if key != "source"}
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    system.replace(part, path)
