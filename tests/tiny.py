"""Tiny models of the real architectures, randomly initialised: for tests of the code that loads real ones."""

from __future__ import annotations

from typing import Any

WORDS = [
    "a", "key", "is", "stored", "for", "hours", "send", "it", "back", "within", "days", "return", "the",
    "box", "parcel", "customs", "express",
]  # fmt: skip
VOCABULARY = [
    "[PAD]",
    "[unused0]",
    "[unused1]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    ".",
    ",",
    *WORDS,
    "##s",
    "##ed",
]


def tokenizer() -> Any:
    """A WordPiece tokenizer of a few words."""
    from transformers import BertTokenizerFast

    return BertTokenizerFast(vocab={word: at for at, word in enumerate(VOCABULARY)}, model_max_length=64)


def bert(kind: Any, **more: Any) -> Any:
    """A BERT of two layers for the tokenizer above; `kind` is the class of transformers."""
    import torch
    from transformers import BertConfig

    torch.manual_seed(7)
    return kind(
        BertConfig(
            vocab_size=len(VOCABULARY), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=64, max_position_embeddings=64, initializer_range=0.5, **more,
        )
    ).eval()  # fmt: skip
