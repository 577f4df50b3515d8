"""The language model of a run that is to ask none."""

from __future__ import annotations

from typing import Any, NoReturn

from core.domain.errors import Unavailable

WHY = "this run does not call a model"


class NoLLM:
    """Refuses every call, as a model does that is not there: what a route only makes use of is left out."""

    model, endpoint, local = "none", "none", False

    def status(self) -> str | None:
        """Why no call can be made."""
        return WHY

    def complete(self, *_: Any, **__: Any) -> NoReturn:
        """Raise Unavailable."""
        raise Unavailable(WHY)
