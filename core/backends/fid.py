"""Fusion-in-Decoder: a T5 whose encoder reads each passage on its own and whose decoder reads all of them.

Source: Izacard & Grave 2021, "Leveraging Passage Retrieval with Generative Models for Open Domain Question
Answering", arXiv:2007.01282, section 3.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.backends.admission import ModelQueue
from core.backends.weights import clean, from_here_or_hub
from core.domain.errors import Cancelled, ModelFailed, ModelTimedOut, Unavailable
from core.domain.types import Passage

HOW = (
    "set fid_model to a T5 of the hub that was trained as one, such as Intel/fid_flan_t5_base_nq,"
    " or to the folder of one"
)
MAX_PASSAGE_TOKENS = 250  # tokens of one question with its passage: the paper's, section 4
BATCH = 4  # passages encoded between two looks at the clock
# The authors' code wraps the encoder and its blocks before saving: the weights are T5's all the same.
WRAPPED = {r"^encoder\.encoder\.": "encoder.", r"^(encoder\.block\.\d+)\.module\.": r"\1."}


@dataclass(frozen=True, slots=True)
class FusedReading:
    """A generated text, with the share of the decoder's cross-attention on each passage."""

    text: str
    attention: tuple[float, ...]  # means over heads, layers and generated tokens, which sum to 1
    tokens_read: int
    tokens_written: int
    cut: tuple[int, ...] = ()  # positions of passages longer than the model is given


class FusionInDecoder:
    """A T5 of transformers, by name or folder, on the processor; safe to call from any thread."""

    def __init__(self, name: str) -> None:
        """Load the model; raises Unavailable when it cannot be loaded, or is no T5."""
        self.name = name
        self._model, self._tokenizer = _load(name)
        self._turns = ModelQueue()  # tokenizers of transformers are not safe to share between threads

    def read(
        self,
        text: str,
        passages: Sequence[Passage],
        *,
        max_tokens: int,
        timeout: float,
        cancel: threading.Event,
    ) -> FusedReading:
        """Answer `text` from `passages`, decoding greedily at most `max_tokens`. Raises ModelFailed,
        ModelTimedOut (after `timeout` seconds in all) or Cancelled.
        """
        import torch
        from transformers import StoppingCriteriaList
        from transformers.modeling_outputs import BaseModelOutput

        if not passages:
            raise ModelFailed(f"{self.name} received no passage to read")
        given = [clean(f"question: {text} title: {p.title} context: {p.text}") for p in passages]
        with self._turns.slot(cancel=cancel), torch.no_grad():
            stop = _Stop(self.name, timeout, cancel)
            states, mask, cut = self._encoded(given, stop.check)
            out = self._model.generate(
                encoder_outputs=BaseModelOutput(last_hidden_state=states),
                attention_mask=mask,
                max_new_tokens=max_tokens,
                do_sample=False,
                num_beams=1,
                return_dict_in_generate=True,
                output_attentions=True,
                stopping_criteria=StoppingCriteriaList([stop]),
            )
            stop.check()
            written = out.sequences[0][1:]  # the first one only starts the decoder
            said = self._tokenizer.decode(written, skip_special_tokens=True).strip()
        shares = _shares(out.cross_attentions, len(passages))
        return FusedReading(said, shares, int(mask.sum()), len(written), tuple(cut))

    def _encoded(self, given: list[str], check: Callable[[], None]) -> tuple[Any, Any, list[int]]:
        """Return the states of all passages' tokens, shape (1, passages x tokens, width), their mask, and the
        positions of truncated passages. Each passage is encoded by itself: none sees another here.
        """
        import torch

        tokens = self._tokenizer(
            given, truncation=True, max_length=MAX_PASSAGE_TOKENS, padding="longest", return_tensors="pt"
        )
        full = np.flatnonzero(tokens.attention_mask.sum(1) == MAX_PASSAGE_TOKENS).tolist()
        cut = [at for at in full if len(self._tokenizer(given[at]).input_ids) > MAX_PASSAGE_TOKENS]
        states = []
        for ids, mask in zip(tokens.input_ids.split(BATCH), tokens.attention_mask.split(BATCH), strict=True):
            check()
            states.append(self._model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state)
        return torch.cat(states).flatten(0, 1)[None], tokens.attention_mask.reshape(1, -1), cut


class _Stop:
    """Ends writing that is no longer wanted; raising inside the library would leave its state half done."""

    def __init__(self, name: str, timeout: float, cancel: threading.Event) -> None:
        self._name, self._timeout, self._cancel = name, timeout, cancel
        self._deadline = time.monotonic() + timeout

    def check(self) -> None:
        """Raise Cancelled or ModelTimedOut if it is time to end."""
        if self._cancel.is_set():
            raise Cancelled(f"stopped while {self._name} was reading")
        if time.monotonic() > self._deadline:
            why = f"did not answer within {self._timeout:.3g} s; give fewer passages"
            raise ModelTimedOut(f"{self._name} {why}")

    def __call__(self, input_ids: Any, *_: Any, **__: Any) -> Any:
        import torch

        ended = self._cancel.is_set() or time.monotonic() > self._deadline
        return torch.full((len(input_ids),), ended, dtype=torch.bool)


def _shares(attentions: Any, passages: int) -> tuple[float, ...]:
    """Return the attention on each passage; `attentions` are, by step and layer, (1, heads, 1, all tokens).

    Source: Izacard & Grave 2021, "Distilling Knowledge from Reader to Retriever", arXiv:2012.04584, section
    3.2, which uses the scores before the softmax; the result after it sums to 1 and can be read as a share.
    """
    import torch

    each = torch.stack([layer[0].mean(dim=(0, 1)) for step in attentions for layer in step])
    mass = each.reshape(len(each), passages, -1).sum(dim=2).mean(dim=0)
    if not torch.isfinite(mass).all():
        raise ModelFailed("the reader's attention is not finite")
    return tuple(float(share) for share in mass)


def _load(name: str) -> tuple[Any, Any]:
    def opened(place: str, **local: Any) -> tuple[Any, Any, Any]:
        import torch
        from transformers import AutoConfig, AutoTokenizer, T5ForConditionalGeneration

        config = AutoConfig.from_pretrained(place, **local)
        if config.model_type != "t5":
            raise Unavailable(f"{name!r} is a {config.model_type} model, not a T5; {HOW}")
        loaded: Any = T5ForConditionalGeneration.from_pretrained(
            place,
            config=config,
            key_mapping=WRAPPED,
            output_loading_info=True,
            dtype=torch.float32,
            attn_implementation="eager",  # others do not give the attention
            **local,
        )
        return *loaded, AutoTokenizer.from_pretrained(place, **local)

    model, told, tokenizer = from_here_or_hub(name, opened, "Fusion-in-Decoder model", HOW)
    if told["missing_keys"] or told["mismatched_keys"]:
        lacks = sorted(map(str, told["missing_keys"]))
        why = f"lacks {len(lacks)} of T5's weights, such as {lacks[0]}" if lacks else "is not a T5"
        raise Unavailable(f"{name!r} {why}; {HOW}")
    return model.eval(), tokenizer
