"""A language model trained as a reranker: scored by how likely it says yes (Qwen3-Reranker)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.backends.admission import ModelQueue
from core.backends.named_models import NamedModel, place
from core.backends.rerankers.batches import in_batches
from core.backends.weights import ask_hub, clean
from core.domain import full_set
from core.domain.errors import Unavailable, describe
from core.domain.text import searchable
from core.domain.types import Passage

BATCH = 4  # pairs between two looks at the clock
BEFORE = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the"
    ' Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
AFTER = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


class YesReranker:
    """Scores are log P(yes) - log P(no) of the next token, whose sigmoid is P(yes) among the two: odds keep
    apart what probabilities near 1 make equal.

    Source: Zhang et al. 2025, "Qwen3 Embedding", arXiv:2506.05176, section 2, and the model card's template.
    """

    share = 1.0

    def __init__(self, setting: str, model: NamedModel) -> None:
        """Load the model; raises Unavailable when it cannot be loaded, or has no yes and no."""
        self.name = setting
        self._task = model.query
        where = place(setting, "reranker")
        full_set.require()
        try:
            self._tokenizer, self._model = _load(where)
        except Exception as error:  # the library and the hub's client raise whatever they like
            raise Unavailable(
                f"reranker {setting!r} cannot be loaded; use {model.name}={{its folder}}"
                f" ({describe(error)[:300]})"
            ) from error
        ids = [self._tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no")]
        if None in ids or self._tokenizer.unk_token_id in ids or ids[0] == ids[1]:
            raise Unavailable(
                f"reranker {setting!r} has no tokens yes and no, so it is no model of this kind"
            )
        self._yes, self._no = ids
        self._before, self._after = (
            self._tokenizer.encode(part, add_special_tokens=False) for part in (BEFORE, AFTER)
        )
        most = getattr(self._model.config, "max_position_embeddings", model.tokens)
        self._room = min(model.tokens, most) - len(self._before) - len(self._after)
        self._turns = ModelQueue()  # tokenizers of transformers are not safe to share between threads

    def rerank(
        self,
        text: str,
        passages: Sequence[Passage],
        *,
        timeout: float = 60.0,
        cancel: threading.Event | None = None,
    ) -> list[float]:
        """One score a passage; passages of like length share a batch. A passage that is too long is cut."""
        pairs = [self._ids(text, searchable(one.title, one.text)) for one in passages]
        with self._turns.slot(cancel=cancel):
            return in_batches(
                self._scores,
                pairs,
                [one.id for one in passages],
                BATCH,
                size=len,
                name=self.name,
                timeout=timeout,
                cancel=cancel,
            )

    def _ids(self, text: str, passage: str) -> list[int]:
        asked = f"<Instruct>: {self._task}\n<Query>: {clean(text)}\n<Document>: {clean(passage)}"
        middle = self._tokenizer.encode(asked, add_special_tokens=False)[: max(1, self._room)]
        return [*self._before, *middle, *self._after]

    def _scores(self, batch: Sequence[list[int]]) -> list[float]:
        import torch

        longest = max(map(len, batch))  # filled up on the left: the last place is each one's last token
        fill = self._tokenizer.pad_token_id or 0
        ids = torch.tensor([[fill] * (longest - len(one)) + one for one in batch])
        mask = torch.tensor([[0] * (longest - len(one)) + [1] * len(one) for one in batch])
        with torch.inference_mode():
            last = self._model(input_ids=ids, attention_mask=mask, logits_to_keep=1).logits[:, -1].float()
        found: list[float] = (last[:, self._yes] - last[:, self._no]).tolist()
        return found


def _load(where: str) -> tuple[Any, Any]:
    """Tokenizer and model, from this machine if they are here, else from the hub."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    local = {"local_files_only": True}
    try:
        tokenizer = AutoTokenizer.from_pretrained(where, **local)
    except (OSError, ValueError):
        if Path(where).is_dir():
            raise
        ask_hub(where)
        local, tokenizer = {}, AutoTokenizer.from_pretrained(where)
    model: Any = AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32, **local)
    return tokenizer, model.eval()
