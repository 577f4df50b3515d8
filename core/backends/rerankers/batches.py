"""Scoring in batches, between which a reranker looks at the clock and at Stop."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from core.domain.errors import Cancelled, ModelFailed, ModelTimedOut

T = TypeVar("T")


def in_batches(
    scores_of: Callable[[list[T]], list[float]],
    pairs: Sequence[T],
    ids: Sequence[str],
    batch: int,
    *,
    size: Callable[[T], int],
    name: str,
    timeout: float,
    cancel: threading.Event | None,
) -> list[float]:
    """One score a pair, in their order; pairs of like `size` share a batch. `ids` are of their passages.

    Raises Cancelled, ModelTimedOut after `timeout` seconds, and ModelFailed where a score is not finite.
    """
    order = sorted(range(len(pairs)), key=lambda at: size(pairs[at]))
    scores = [0.0] * len(pairs)
    deadline = time.monotonic() + timeout
    for start in range(0, len(order), batch):
        if cancel is not None and cancel.is_set():
            raise Cancelled(f"stopped while {name} was scoring")
        if time.monotonic() > deadline:
            raise ModelTimedOut(
                f"{name} scored {start} of {len(pairs)} passages in {timeout:.3g} s; give fewer"
            )
        some = order[start : start + batch]
        for at, score in zip(some, scores_of([pairs[at] for at in some]), strict=True):
            if not math.isfinite(score):
                raise ModelFailed(f"{name} gave passage {ids[at]!r} the score {score}")
            scores[at] = score
    return scores
