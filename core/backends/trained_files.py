"""Small trained models as JSON files: shipped with the program, or trained here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from core.domain.errors import Unavailable
from core.domain.program import PROJECT

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")


def read_trained(path: Path, parsed: Callable[[Any, str], T], what: str, remedy: str) -> T:
    """Return what `parsed` makes of a file's JSON and its shown path. Raises Unavailable, which names `what`
    and the `remedy`, if the file is missing or damaged.
    """
    shown = str(path.relative_to(PROJECT)) if path.is_relative_to(PROJECT) else str(path)
    try:
        return parsed(json.loads(path.read_text(encoding="utf-8")), shown)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"{type(error).__name__}: {str(error)[:120]}"
        raise Unavailable(f"{what} {shown} cannot be used ({why}); {remedy} makes one") from None


def write_trained(model: DataclassInstance, path: Path) -> None:
    """Store a model as JSON, without its `source`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = {key: value for key, value in asdict(model).items() if key != "source"}
    part = path.with_suffix(".part")
    part.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)
