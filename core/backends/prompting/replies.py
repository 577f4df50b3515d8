"""Replies of several lines or in JSON, read as what they are. Pure."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

Form = TypeVar("Form", bound=BaseModel)

_BULLET = re.compile(r"^\s*(?:[-*•]+|[(#]?\d{1,2}[.):])\s+")


def reply_lines(reply: str) -> tuple[str, ...]:
    """Return the non-empty lines without bullets, numbers and quotes, except headings ("Queries:")."""
    cleaned = (_BULLET.sub("", line).strip().strip('"') for line in reply.splitlines())
    return tuple(line for line in cleaned if line and not line.endswith(":"))


def first_line(reply: str) -> str:
    """Return the first non-empty line without quotes, or ""."""
    return next((line.strip().strip('"') for line in reply.splitlines() if line.strip()), "")


def strict_schema(form: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a form for strict structured outputs, by the helper of the openai package."""
    from openai.lib._pydantic import to_strict_json_schema

    return to_strict_json_schema(form)


def read_form(form: type[Form], reply: str) -> Form | str:
    """Parse a reply in JSON into `form`, or describe the first fault in a sentence for the model."""
    try:
        return form.model_validate_json(reply)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        return f"the JSON is wrong{f' at {where}' if where else ''}: {first['msg']}"
