"""Tiny models of the real architectures, randomly initialised: for tests of the code that loads real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_WORDS = "a key is stored for hours send it back within days return the box parcel customs express"
WORDS = _WORDS.split()
VOCABULARY = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ","]
VOCABULARY += [*WORDS, "##s", "##ed"]


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
            vocab_size=len(VOCABULARY),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=64,
            initializer_range=0.5,
            **more,
        )
    ).eval()


def colbert(folder: Path) -> None:
    """A ColBERT model as Stanford publishes it: 8 dimensions, questions of 16 tokens, passages of 48."""
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import BertModel

    bert(BertModel).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    weights = {f"bert.{key}": value for key, value in load_file(folder / "model.safetensors").items()}
    weights["linear.weight"] = torch.randn(8, 32, generator=torch.Generator().manual_seed(3))
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["HF_ColBERT"]}))
    facts = {
        "query_token_id": "[unused0]",
        "doc_token_id": "[unused1]",
        "query_maxlen": 16,
        "doc_maxlen": 48,
        "mask_punctuation": True,
        "attend_to_mask_tokens": False,
    }
    (folder / "artifact.metadata").write_text(json.dumps(facts))


def splade(folder: Path) -> None:
    """A SPLADE model as it is published: a masked language model."""
    from transformers import BertForMaskedLM

    bert(BertForMaskedLM).save_pretrained(folder)
    tokenizer().save_pretrained(folder)


def t5(folder: Path) -> None:
    """A T5 of two layers that writes something: untrained, with a tokenizer of the words above."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    vocabulary = ["<pad>", "</s>", "<unk>", "question", "title", "context", ":", *WORDS]
    words = Tokenizer(models.WordLevel({word: at for at, word in enumerate(vocabulary)}, unk_token="<unk>"))
    words.normalizer = normalizers.Lowercase()
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)
    torch.manual_seed(11)
    model = T5ForConditionalGeneration(
        T5Config(
            vocab_size=len(vocabulary),
            d_model=32,
            d_kv=8,
            d_ff=64,
            num_layers=2,
            num_heads=4,
            initializer_factor=4.0,
            pad_token_id=0,
            eos_token_id=1,
            decoder_start_token_id=0,
        )
    )
    model.save_pretrained(folder)


def onnx_table(file: Path, table: Any, *, pooled: bool = False, typed: bool = True) -> None:
    """An ONNX model that looks tokens up in `table` and, `typed`, adds the number of their text; pooled: the
    sum.
    """
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper, save

    ints, floats = TensorProto.INT64, TensorProto.FLOAT
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["looked_up"]),
        helper.make_node("Cast", ["token_type_ids" if typed else "none"], ["kinds"], to=floats),
        helper.make_node("Cast", ["attention_mask"], ["kept"], to=floats),
        helper.make_node("Unsqueeze", ["kinds", "last"], ["kind"]),
        helper.make_node("Unsqueeze", ["kept", "last"], ["keep"]),
        helper.make_node("Add", ["looked_up", "kind"], ["added"]),
        helper.make_node("Mul", ["added", "keep"], ["hidden"]),
    ]
    constants = {"table": table, "last": np.array([2]), "none": np.zeros((1, 1), np.int64)}
    shape = ["n", "tokens", table.shape[1]]
    if pooled:
        nodes.append(helper.make_node("ReduceSum", ["hidden", "axes"], ["logits"], keepdims=0))
        nodes.append(helper.make_node("Unsqueeze", ["logits", "one"], ["out"]))
        constants |= {"axes": np.array([1, 2]), "one": np.array([1])}
        shape = ["n", 1]
    else:
        nodes.append(helper.make_node("Identity", ["hidden"], ["out"]))
    names = ("input_ids", "attention_mask", "token_type_ids")[: 3 if typed else 2]
    given = [helper.make_tensor_value_info(name, ints, ["n", "tokens"]) for name in names]
    made = [helper.make_tensor_value_info("out", floats, shape)]
    known = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny", given, made, known)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(file))
