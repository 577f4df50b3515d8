"""Fusion-in-Decoder: a T5 whose encoder reads each passage on its own and whose decoder reads all of them.

Source: Izacard & Grave 2021, "Leveraging Passage Retrieval with Generative Models for Open Domain Question
Answering", arXiv:2007.01282, section 3.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from core.backends.admission import ModelQueue
from core.backends.weights import ask_hub, clean
from core.domain import full_set
from core.domain.errors import Cancelled, ModelFailed, ModelTimedOut, Unavailable, describe
from core.domain.once import Once

if TYPE_CHECKING:
    from core.domain.settings import Settings
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


class FusionReader(Protocol):
    """Answers from several passages at once; their order means nothing to it."""

    @property
    def name(self) -> str: ...

    def read(
        self,
        text: str,
        passages: Sequence[Passage],
        *,
        max_tokens: int,
        timeout: float,
        cancel: threading.Event,
    ) -> FusedReading:
        """Answer `text` from `passages`. Raises ModelFailed, ModelTimedOut (after `timeout` seconds in all)
        or Cancelled.
        """


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
        """Decode greedily, at most `max_tokens`."""
        import torch
        from transformers import StoppingCriteriaList
        from transformers.modeling_outputs import BaseModelOutput

        if not passages:
            raise ModelFailed(f"{self.name} received no passage to read")
        given = [clean(f"question: {text} title: {p.title} context: {p.text}") for p in passages]
        with self._turns.slot(cancel=cancel), torch.no_grad():
            check = _clock(self.name, timeout, cancel)
            tokens, cut = self._tokens(given)
            states = self._encode(tokens.input_ids, tokens.attention_mask, check)
            mask = tokens.attention_mask.reshape(1, -1)
            stop = _Stop(check)
            out = self._model.generate(
                encoder_outputs=BaseModelOutput(last_hidden_state=states.reshape(1, -1, states.shape[-1])),
                attention_mask=mask,
                max_new_tokens=max_tokens,
                do_sample=False,
                num_beams=1,
                return_dict_in_generate=True,
                output_attentions=True,
                stopping_criteria=StoppingCriteriaList([stop]),
            )
            if stop.error is not None:
                raise stop.error
            written = out.sequences[0][1:]  # the first one only starts the decoder
            said = self._tokenizer.decode(written, skip_special_tokens=True).strip()
        shares = _shares(out.cross_attentions, len(passages))
        return FusedReading(said, shares, int(mask.sum()), len(written), cut)

    def _tokens(self, given: list[str]) -> tuple[Any, tuple[int, ...]]:
        tokens = self._tokenizer(
            given, truncation=True, max_length=MAX_PASSAGE_TOKENS, padding="longest", return_tensors="pt"
        )
        full = [at for at, mask in enumerate(tokens.attention_mask) if int(mask.sum()) == MAX_PASSAGE_TOKENS]
        return tokens, tuple(
            at for at in full if len(self._tokenizer(given[at]).input_ids) > MAX_PASSAGE_TOKENS
        )

    def _encode(self, ids: Any, mask: Any, check: Callable[[], None]) -> Any:
        """Each row by itself, shape (passages, tokens, width): no passage sees another here."""
        import torch

        states = []
        for start in range(0, len(ids), BATCH):
            check()
            rows = slice(start, start + BATCH)
            states.append(
                self._model.get_encoder()(input_ids=ids[rows], attention_mask=mask[rows]).last_hidden_state
            )
        return torch.cat(states)


class FusionReaders:
    """The reader the settings name, loaded when it is first asked for. Safe to call from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._name = settings.fid_model
        self._readers: Once[str, FusionReader] = Once()

    def get(self) -> FusionReader:
        """Return the configured reader. Raises Unavailable with instructions."""
        if not self._name:
            raise Unavailable(f"no Fusion-in-Decoder model is set: {HOW}")
        return self._readers.get(self._name, lambda: FusionInDecoder(self._name))


class _Stop:
    """Ends writing that is no longer wanted; raising inside the library would leave its state half done."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self.error: Exception | None = None

    def __call__(self, input_ids: Any, *_: Any, **__: Any) -> Any:
        import torch

        try:
            self._check()
        except (Cancelled, ModelTimedOut) as error:
            self.error = error
        return torch.full((len(input_ids),), self.error is not None, dtype=torch.bool)


def _clock(name: str, timeout: float, cancel: threading.Event) -> Callable[[], None]:
    deadline = time.monotonic() + timeout

    def check() -> None:
        if cancel.is_set():
            raise Cancelled(f"stopped while {name} was reading")
        if time.monotonic() > deadline:
            raise ModelTimedOut(f"{name} did not answer within {timeout:.3g} s; give fewer passages")

    return check


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
    full_set.require()
    folder = Path(name).expanduser()
    place = str(folder) if folder.is_dir() else name
    try:
        try:
            model, told, tokenizer = _open(place, local=True)
        except (OSError, ValueError):  # what transformers raises for a file that is not on this machine
            if folder.is_dir():
                raise
            ask_hub(name)
            model, told, tokenizer = _open(place, local=False)
    except Exception as error:  # the library and the hub's client raise whatever they like
        raise Unavailable(
            f"Fusion-in-Decoder model {name!r} cannot be loaded; {HOW} ({describe(error)[:300]})"
        ) from error
    if model.config.model_type != "t5" or told["missing_keys"] or told["mismatched_keys"]:
        lacks = sorted(map(str, told["missing_keys"]))
        why = f"lacks {len(lacks)} of T5's weights, such as {lacks[0]}" if lacks else "is not a T5"
        raise Unavailable(f"{name!r} {why}; {HOW}")
    return model.eval(), tokenizer


def _open(place: str, *, local: bool) -> tuple[Any, Any, Any]:
    import torch
    from transformers import AutoConfig, AutoTokenizer, T5ForConditionalGeneration

    config = AutoConfig.from_pretrained(place, local_files_only=local)
    if config.model_type != "t5":
        raise ValueError(f"it is a {config.model_type} model, not a T5")
    loaded: Any = T5ForConditionalGeneration.from_pretrained(
        place,
        config=config,
        local_files_only=local,
        key_mapping=WRAPPED,
        output_loading_info=True,
        dtype=torch.float32,
        attn_implementation="eager",  # others do not give the attention
    )
    model, told = loaded
    return model, told, AutoTokenizer.from_pretrained(place, local_files_only=local)
