"""Cross-encoders: of sentence-transformers by name or folder, or of a package in ONNX."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, cast

from core.backends.admission import ModelQueue
from core.backends.named_models import NamedModel, Packaged, packaged_folder, place
from core.backends.onnx_text import OnnxText
from core.backends.rerankers.batches import in_batches
from core.backends.weights import clean, load
from core.domain.errors import Unavailable
from core.domain.text import searchable
from core.domain.types import Passage

PACKAGED_BATCH = (
    1  # weights of 8 bits: the score of a pair depends on the others in its batch, which gain no time
)
BATCH = 8  # pairs between two looks at the clock; a processor gains little from more


class PackagedCrossEncoder:
    """A cross-encoder in ONNX out of a package. Scores are logits, as those of `CrossEncoderReranker`."""

    def __init__(self, model: NamedModel) -> None:
        """Load it; raises Unavailable if the package is not installed or its files are not the known ones."""
        packaged = cast("Packaged", model.packaged)
        folder = packaged_folder(packaged)
        self.name, self.share = model.name, model.share
        self._model = OnnxText(folder, folder / packaged.file, model.tokens)

    def rerank(
        self,
        text: str,
        passages: Sequence[Passage],
        *,
        timeout: float = 60.0,
        cancel: threading.Event | None = None,
    ) -> list[float]:
        """One score a passage; passages of like length share a batch."""
        encoded = self._model.encode([(text, searchable(one.title, one.text)) for one in passages])

        def scores(some: Sequence[Any]) -> list[float]:
            logits = self._model.run([one.ids for one in some], [one.type_ids for one in some])
            found: list[float] = logits[:, 0].tolist()
            return found

        return in_batches(
            scores,
            encoded,
            [one.id for one in passages],
            PACKAGED_BATCH,
            size=lambda pair: len(pair.ids),
            name=self.name,
            timeout=timeout,
            cancel=cancel,
        )


class CrossEncoderReranker:
    """Scores are the model's logits: what an activation after them would add can make distinct ones equal."""

    share = 1.0

    def __init__(self, name: str) -> None:
        """Load the model; raises Unavailable when it cannot be loaded, or is no reranker."""
        self.name = name
        self._model = load("CrossEncoder", place(name, "reranker"))
        if (labels := self._model.num_labels) != 1:
            raise Unavailable(
                f"cross-encoder {name!r} sorts pairs into {labels} classes; a reranker gives one score"
            )
        self._turns = ModelQueue()  # tokenizers of transformers are not safe to share between threads

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
                self._scores,
                pairs,
                [one.id for one in passages],
                BATCH,
                size=lambda pair: len(pair[1]),
                name=self.name,
                timeout=timeout,
                cancel=cancel,
            )

    def _scores(self, batch: Sequence[tuple[str, str]]) -> list[float]:
        from torch.nn import Identity

        found: list[float] = self._model.predict(
            batch, batch_size=BATCH, show_progress_bar=False, activation_fn=Identity()
        ).tolist()
        return found
