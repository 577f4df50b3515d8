"""Rerankers: they read the question and each passage together, and give each passage a score."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from core.backends.rerankers.cross import CrossEncoderReranker
from core.backends.rerankers.http import HttpReranker
from core.types import Passage


class Reranker(Protocol):
    """Scores passages for a question; higher is better, and scores of different rerankers do not compare."""

    @property
    def name(self) -> str:
        """The model, as shown."""

    @property
    def needs_llm(self) -> bool:
        """Whether it spends calls of the language model."""

    def rerank(
        self,
        text: str,
        passages: Sequence[Passage],
        *,
        timeout: float = 60.0,
        cancel: threading.Event | None = None,
    ) -> list[float]:
        """One finite score a passage, in the order given.

        Raises ModelFailed, ModelTimedOut (after `timeout` seconds in all) or Cancelled (`cancel` was set).
        """


__all__ = ["CrossEncoderReranker", "HttpReranker", "Reranker"]
