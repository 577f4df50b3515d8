"""Late interaction: MaxSim against a loop, the embedded token vectors, and tiny real ColBERT models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.late import (
    ColbertTokens,
    MiniLMTokens,
    TokenEmbedder,
    TokenVectors,
    match_matrix,
    maxsim,
    maxsim_joined,
    token_embedder,
)
from core.domain.errors import ModelFailed, Unavailable
from core.domain.settings import Settings
from tests.tiny import bert, colbert, tokenizer

TEXTS = [
    "a key is stored for hours.",
    "send it back, within days",
    "",
    "the box the parcel " * 80,
    "\ud800 東京",
]


def by_loop(query: np.ndarray, passage: np.ndarray) -> float:
    total = 0.0
    for q in query:
        best = max((float(sum(a * b for a, b in zip(q, p, strict=True))) for p in passage), default=None)
        total += best or 0.0
    return total


def random_units(draw: np.random.Generator, n: int, dim: int = 5) -> np.ndarray:
    rows = draw.normal(size=(n, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) if n else rows


def many(query, passages):
    """Scores of all passages at once."""
    vectors = np.concatenate([np.empty((0, query.shape[1]), np.float32), *passages])
    return maxsim_joined(query, vectors, [len(passage) for passage in passages])


@given(st.integers(0, 2**32 - 1), st.integers(0, 6), st.lists(st.integers(0, 7), max_size=6))
def test_maxsim_is_the_loop(seed: int, q: int, sizes: list[int]) -> None:
    draw = np.random.default_rng(seed)
    query, passages = random_units(draw, q), [random_units(draw, n) for n in sizes]
    expected = [by_loop(query, passage) for passage in passages]
    np.testing.assert_allclose([maxsim(query, passage) for passage in passages], expected, atol=1e-5)
    np.testing.assert_allclose(many(query, passages), expected, atol=1e-5)


def test_maxsim_by_hand() -> None:
    query = np.array([[1, 0], [0, 1]], np.float32)
    passage = np.array([[0.6, 0.8], [-1, 0], [0.8, 0.6]], np.float32)
    assert maxsim(query, passage) == pytest.approx(0.8 + 0.8)
    shown = match_matrix(TokenVectors(("one", "two"), query), TokenVectors(("a", "b", "c"), passage))
    assert (shown.query, shown.passage) == (("one", "two"), ("a", "b", "c"))
    np.testing.assert_allclose(shown.similarities, [[0.6, -1, 0.8], [0.8, 0, 0.6]], atol=1e-6)
    assert shown.similarities.max(axis=1).sum() == pytest.approx(maxsim(query, passage))


@pytest.mark.model
def test_minilm_tokens_are_the_models_last_hidden_state(tmp_path) -> None:
    from sentence_transformers import SentenceTransformer

    from core.backends.minilm import weights

    ours = token_embedder("all-MiniLM-L6-v2", settings=Settings())
    assert isinstance(ours, MiniLMTokens)
    assert (ours.name, ours.dim) == ("MiniLM tokens (MaxSim)", 384)
    theirs = SentenceTransformer(str(weights(tmp_path).parent), device="cpu")
    found = ours.embed_passages(TEXTS)
    for text, one in zip(TEXTS, found, strict=True):
        expected = theirs.encode(text.replace("\ud800", "?"), output_value="token_embeddings").numpy()[1:-1]
        expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
        assert one.vectors.shape == expected.shape == (len(one.tokens), 384)
        assert ((one.vectors * expected).sum(1) > 0.9999).all()
        alone = ours.embed_query(text)
        assert alone.tokens == one.tokens
        assert ((alone.vectors * one.vectors).sum(1) > 0.9999).all()
    assert found[0].tokens == ("a", "key", "is", "stored", "for", "hours", ".")
    assert found[2].tokens == ()
    assert len(found[3].tokens) == 254  # cut at 256 with the two that do not count
    assert ours.embed_passages([]) == []


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """ColBERT as Stanford publishes it, the same saved by the library, and what is no ColBERT."""
    from sentence_transformers import MultiVectorEncoder
    from transformers import BertModel

    made = {name: tmp_path_factory.mktemp(name) for name in ("stanford", "saved", "encoder")}
    bert(BertModel).save_pretrained(made["encoder"])
    tokenizer().save_pretrained(made["encoder"])
    colbert(made["stanford"])
    MultiVectorEncoder(str(made["stanford"]), device="cpu").save_pretrained(str(made["saved"]))
    return made


def by_hand(folder: Path, text: str, *, question: bool) -> tuple[list[str], np.ndarray]:
    """ColBERT's encoding written out: marker after [CLS]; questions filled with [MASK] to their length, which
    the model does not attend to; punctuation of passages left out; a projection; unit length.
    """
    import torch
    from safetensors.torch import load_file
    from transformers import BertModel

    weights = load_file(folder / "model.safetensors")
    model = bert(BertModel)
    model.load_state_dict({key[5:]: value for key, value in weights.items() if key.startswith("bert.")})
    cut = tokenizer()
    words = cut.tokenize(text)[: (16 if question else 48) - 3]
    tokens = ["[CLS]", "[unused0]" if question else "[unused1]", *words, "[SEP]"]
    seen = [1] * len(tokens)
    if question:
        seen += [0] * (16 - len(tokens))
        tokens += ["[MASK]"] * (16 - len(tokens))
    ids = torch.tensor([cut.convert_tokens_to_ids(tokens)])
    with torch.no_grad():
        states = model(input_ids=ids, attention_mask=torch.tensor([seen])).last_hidden_state[0]
        vectors = torch.nn.functional.normalize(states @ weights["linear.weight"].T, dim=-1).numpy()
    kept = [at for at, token in enumerate(tokens) if question or token not in ".,"]
    return [tokens[at] for at in kept], vectors[kept]


@pytest.mark.model
@pytest.mark.parametrize("name", ["stanford", "saved"])
def test_colbert_encodes_as_published(folders: dict[str, Path], name: str) -> None:
    ours: TokenEmbedder = ColbertTokens(str(folders[name]))
    assert ours.dim == 8
    for text in ("a key is stored", "send it back, within days."):
        for found, question in ((ours.embed_query(text), True), (ours.embed_passages([text])[0], False)):
            tokens, vectors = by_hand(folders["stanford"], text, question=question)
            assert list(found.tokens) == tokens
            np.testing.assert_allclose(found.vectors, vectors, atol=1e-5)
    batch = ours.embed_passages(TEXTS)
    for text, one in zip(TEXTS, batch, strict=True):
        np.testing.assert_allclose(one.vectors, ours.embed_passages([text])[0].vectors, atol=1e-5)
    assert len(batch[3].tokens) == 48
    assert ours.embed_passages([]) == []


@pytest.mark.model
def test_what_is_no_trained_colbert_is_not_used_as_one(folders: dict[str, Path]) -> None:
    with pytest.raises(Unavailable, match="BertModel, not a trained ColBERT model"):
        ColbertTokens(str(folders["encoder"]))
    with pytest.raises(Unavailable, match="colbert-ir/colbertv2") as caught:
        token_embedder("nobody/no-such-model", settings=Settings())
    assert "\n" not in str(caught.value)


@pytest.mark.model
def test_vectors_that_are_no_numbers_are_a_failure(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    ours = ColbertTokens(str(folders["saved"]))
    broken: dict[str, Any] = {
        "attention_mask": torch.ones(2),
        "input_ids": torch.tensor([5, 6]),
        "token_embeddings": torch.full((2, 8), torch.nan),
    }
    monkeypatch.setattr(ours._model, "encode_query", lambda *_, **__: [broken])
    with pytest.raises(ModelFailed, match="not finite"):
        ours.embed_query("a key")
