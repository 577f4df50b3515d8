"""An embedding on its way from one step to the next; apart from the nouns, which load without numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.domain.types import Origin


class TracedVector(np.ndarray[Any, np.dtype[Any]]):
    """A vector that knows the span it is from; what is computed of it does not."""

    origin: Origin | None

    def __array_finalize__(self, made_from: Any) -> None:
        self.origin = None
