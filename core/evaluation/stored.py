"""An evaluation's files: written whole, and read against the types they are to be of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from core.domain import system
from core.domain.errors import BadInput

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


def checked(adapter: TypeAdapter[T], document: Any) -> T:
    """`document` as what `adapter` makes of it; ValueError with the first thing that is wrong, and where."""
    from pydantic import ValidationError

    try:
        return adapter.validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))[:200]
        raise ValueError(f"{place}: {first['msg']}" if place else first["msg"]) from None


def whole_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a whole file or none: a reader never sees half of one."""
    draft = path.with_name(f"{path.name}.tmp")
    with draft.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    system.replace(draft, path)


def figures_in(path: Path, needed: Set[str]) -> dict[str, Any] | None:
    """Return the object in a JSON file, or None if it does not exist. Raises BadInput if it is damaged or
    lacks one of the keys `needed`.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if missing := needed - found.keys():
            raise ValueError(f"{min(missing)} is missing")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError) as error:
        raise BadInput(f"{path} is damaged: {error}") from None
    return dict(found)
