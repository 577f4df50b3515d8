"""Stored JSON against the types it is to be of: one clear line where it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

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
