"""A text model in ONNX with its tokenizer: what the embedder and the token embedder share."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.backends.weights import clean

LARGE = 1024  # token ids in a batch from which its memory is given back


class OnnxText:
    """An exported model and the tokenizer of `model_folder`; safe to call from several threads."""

    def __init__(self, model_folder: Path, onnx_file: Path) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = min(4, os.cpu_count() or 1)
        # Spinning threads would take the cores from a language model that runs beside.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(onnx_file, options, providers=["CPUExecutionProvider"])
        # Without it the arena keeps what the largest batch took, 240 MB more for both models after 200 long
        # passages (591 MB against 353), at the same speed.
        self._give_back = onnxruntime.RunOptions()
        self._give_back.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        self.dim = int(self._session.get_outputs()[0].shape[-1])
        self._tokenizer = Tokenizer.from_file(str(model_folder / "tokenizer.json"))
        self._tokenizer.no_padding()  # the file pads to 128: 30 ms a question instead of 4
        limits = json.loads((model_folder / "sentence_bert_config.json").read_text())
        self._tokenizer.enable_truncation(limits["max_seq_length"])

    def encode(self, texts: Sequence[str]) -> list[Any]:
        """Each text's tokens and their ids."""
        encoded: list[Any] = self._tokenizer.encode_batch([clean(text) for text in texts])
        return encoded

    def run(self, ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """The model's output for a batch: shape (n, dim), or (n, longest, dim) of a model of tokens."""
        shape = (len(ids), max(map(len, ids)))
        tokens, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, one in enumerate(ids):
            tokens[row, : len(one)] = one
            mask[row, : len(one)] = 1
        options = self._give_back if tokens.size >= LARGE else None
        out: NDArray[np.float32] = self._session.run(
            None, {"input_ids": tokens, "attention_mask": mask}, options
        )[0]
        return out
