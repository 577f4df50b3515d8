"""A cross-encoder of sentence-transformers, by name or folder."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from core.backends.admission import Turns
from core.backends.named_models import place
from core.backends.rerankers.batches import in_batches
from core.backends.weights import clean, load
from core.domain.errors import Unavailable
from core.domain.text import searchable
from core.domain.types import Passage

BATCH = 8  # pairs between two looks at the clock; a processor gains little from more


class CrossEncoderReranker:
    """Scores are the model's logits: what an activation after them would add can make distinct ones equal."""

    needs_llm = False

    def __init__(self, name: str) -> None:
        """Load the model; raises Unavailable when it cannot be loaded, or is no reranker."""
        self.name = name
        self._model = load("CrossEncoder", place(name, "reranker"))
        if (labels := self._model.num_labels) != 1:
            raise Unavailable(
                f"cross-encoder {name!r} sorts pairs into {labels} classes; a reranker gives one score"
            )
        self._turns = Turns()  # tokenizers of transformers are not safe to share between threads

    def rerank(
        self,
        text: str,
        passages: Sequence[Passage],
        *,
        timeout: float = 60.0,
        cancel: threading.Event | None = None,
    ) -> list[float]:
        """One score a passage; passages of like length share a batch."""
        pairs = [(clean(text), clean(searchable(passage.title, passage.text))) for passage in passages]
        with self._turns.slot(cancel=cancel):
            return in_batches(
                self._scores, pairs, [one.id for one in passages], BATCH,
                size=lambda pair: len(pair[1]), name=self.name, timeout=timeout, cancel=cancel,
            )  # fmt: skip

    def _scores(self, batch: Sequence[tuple[str, str]]) -> list[float]:
        from torch.nn import Identity

        found: list[float] = self._model.predict(
            batch, batch_size=BATCH, show_progress_bar=False, activation_fn=Identity()
        ).tolist()
        return found
