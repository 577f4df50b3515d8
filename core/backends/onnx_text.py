"""A text model in ONNX with its tokenizer: what the embedder and the token embedder share."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.backends.onnx_session import open_session
from core.backends.weights import clean

T = TypeVar("T")
LARGE = 1024  # token ids in a batch from which its memory is given back
# Token ids in a batch of many texts. What a batch of more needs between two layers is larger than a core's
# cache: texts of 140 tokens took 1.3 times as long in batches of 8 as in batches of 2, short ones did not.
BATCH = 256
CORES = os.cpu_count() or 1
MIN_BULK_TEXTS = 128  # texts from which a second session, .1 s to open, is worth its while


class OnnxText:
    """An exported model and the tokenizer of `model_folder`; safe to call from several threads."""

    def __init__(self, model_folder: Path, onnx_file: Path, most: int | None = None) -> None:
        """Open the model, which reads at most `most` tokens of a text; None: as its own settings say."""
        import onnxruntime
        from tokenizers import Tokenizer

        self._file = onnx_file
        self._session = open_session(onnx_file, min(4, CORES))
        self._pool: ThreadPoolExecutor | None = None
        # Without it the arena keeps what the largest batch took, 240 MB more for both models after 200 long
        # passages (591 MB against 353), at the same speed.
        self._give_back = onnxruntime.RunOptions()
        self._give_back.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        self.dim = int(self._session.get_outputs()[0].shape[-1])
        self._tokenizer = Tokenizer.from_file(str(model_folder / "tokenizer.json"))
        self._tokenizer.no_padding()  # the file pads to 128: 30 ms a question instead of 4
        if most is None:
            limits = json.loads((model_folder / "sentence_bert_config.json").read_text(encoding="utf-8"))
            most = int(limits["max_seq_length"])
        self._most = most
        self._tokenizer.enable_truncation(most)
        self._segments = "token_type_ids" in {one.name for one in self._session.get_inputs()}

    @contextmanager
    def in_bulk(self) -> Iterator[Self]:
        """Return the same model for many texts: each core runs its own batches, 1.4 times as fast as all
        cores on one batch. Doubles the memory of the weights inside the block.
        """
        with ThreadPoolExecutor(CORES) as pool:
            bulk = copy.copy(self)
            bulk._session, bulk._pool = open_session(self._file, 1), pool
            yield bulk

    def encode(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> list[Any]:
        """Each text's tokens and their ids; of a pair those of both, and which of both (`type_ids`)."""
        cleaned = [clean(one) if isinstance(one, str) else (clean(one[0]), clean(one[1])) for one in texts]
        return self._tokenizer.encode_batch(cleaned)

    def windows(self, texts: Iterable[str], overlap: int) -> Iterator[list[Any]]:
        """Yield each text's encodings in windows to its end, which share `overlap` tokens; those of MINILM
        have the characters of each token.
        """
        tokenizer = copy.deepcopy(self._tokenizer)
        tokenizer.enable_truncation(self._most, stride=overlap)
        for text in texts:
            first = tokenizer.encode(clean(text))
            yield [first, *first.overflowing]

    def run(
        self, ids: Sequence[Sequence[int]], segments: Sequence[Sequence[int]] = ()
    ) -> NDArray[np.float32]:
        """Return the model's output for a batch: shape (n, dim), or (n, longest, dim) for a token model.

        `segments` assigns each token of a pair to one of its texts; without it, all belong to the first.
        """
        shape = (len(ids), max(map(len, ids)))
        given = {"input_ids": np.zeros(shape, np.int64), "attention_mask": np.zeros(shape, np.int64)}
        for row, one in enumerate(ids):
            given["input_ids"][row, : len(one)] = one
            given["attention_mask"][row, : len(one)] = 1
        if self._segments:
            given["token_type_ids"] = np.zeros(shape, np.int64)
            for row, one in enumerate(segments):
                given["token_type_ids"][row, : len(one)] = one
        options = self._give_back if given["input_ids"].size >= LARGE else None
        found: NDArray[np.float32] = self._session.run(None, given, options)[0]
        return found

    def each(self, ids: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """Yield the rows of each batch of similar length and the model's output as from `run`.

        The batches depend on `ids` alone, so that a helper's vectors equal those of one process.
        """
        batches: list[list[int]] = []
        for row in sorted(range(len(ids)), key=lambda row: -len(ids[row])):
            if not batches or (len(batches[-1]) + 1) * len(ids[batches[-1][0]]) > BATCH:
                batches.append([])
            batches[-1].append(row)
        mapped = self._pool.map if self._pool is not None else map
        outputs = mapped(lambda rows: self.run([ids[row] for row in rows]), batches)
        yield from zip(batches, outputs, strict=True)


class OnnxModel:
    """A base of models that embed texts with an OnnxText."""

    _model: OnnxText

    @contextmanager
    def in_bulk(self) -> Iterator[Self]:
        """Return the same model for many texts: see `OnnxText.in_bulk`."""
        with self._model.in_bulk() as model:
            bulk = copy.copy(self)
            bulk._model = model
            yield bulk


def in_bulk(model: T, count: int) -> AbstractContextManager[T]:
    """Return the embedder to use for `count` texts: `model`, or a faster one if there are many."""
    if isinstance(model, OnnxModel) and count >= MIN_BULK_TEXTS and CORES > 1:
        return model.in_bulk()
    return nullcontext(model)
