"""A cross-encoder of sentence-transformers, by name or folder."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence

from core.backends.admission import Turns
from core.backends.named_models import place
from core.backends.weights import clean, load
from core.domain.errors import Cancelled, ModelFailed, ModelTimedOut, Unavailable
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
        from torch.nn import Identity

        pairs = [(clean(text), clean(searchable(passage.title, passage.text))) for passage in passages]
        order = sorted(range(len(pairs)), key=lambda at: len(pairs[at][1]))
        scores = [0.0] * len(pairs)
        with self._turns.slot(cancel=cancel):
            deadline = time.monotonic() + timeout
            for start in range(0, len(order), BATCH):
                if cancel is not None and cancel.is_set():
                    raise Cancelled(f"stopped while {self.name} was scoring")
                if time.monotonic() > deadline:
                    raise ModelTimedOut(
                        f"{self.name} scored {start} of {len(pairs)} passages in {timeout:.3g} s; give fewer"
                    )
                some = order[start : start + BATCH]
                found = self._model.predict(
                    [pairs[at] for at in some], batch_size=BATCH, show_progress_bar=False,
                    activation_fn=Identity(),
                ).tolist()  # fmt: skip
                for at, score in zip(some, found, strict=True):
                    if not math.isfinite(score):
                        raise ModelFailed(f"{self.name} gave passage {passages[at].id!r} the score {score}")
                    scores[at] = score
        return scores
