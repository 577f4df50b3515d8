"""Learned sparse retrieval: the index against dense products, and a tiny real SPLADE model."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.learned_sparse import LearnedSparseIndex, SpladeEncoder, write_index
from core.domain.errors import Cancelled, ModelFailed, Unavailable
from tests.tiny import VOCABULARY, bert, splade, tokenizer

TERMS = ["alpha", "beta", "gamma", "delta", "##s"]


class TableEncoder:
    """Passages and questions are rows of a table of weights, written as numbers."""

    name, terms = "table", TERMS

    def encode(self, texts: list[str]) -> Any:
        from scipy.sparse import csr_matrix

        rows = [[float(number) for number in text.split()] for text in texts]
        return csr_matrix(np.array(rows, np.float32).reshape(-1, len(TERMS)))

    def encode_query(self, text: str) -> Any:
        return self.encode([text])

    def expansion(self, text: str) -> list[tuple[str, float]]:
        raise NotImplementedError


def written(rows: list[list[float]]) -> list[str]:
    return [" ".join(map(str, row)) for row in rows]


weights = st.lists(st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.25]), min_size=len(TERMS), max_size=len(TERMS))


@given(st.lists(weights, max_size=40), weights, st.integers(0, 45))
def test_search_is_the_dense_product_best_first(
    tmp_path_factory: pytest.TempPathFactory, passages: list[list[float]], question: list[float], k: int
) -> None:
    folder = tmp_path_factory.mktemp("index") / "splade"
    encoder = TableEncoder()
    write_index(written(passages), encoder, folder)
    index, query = LearnedSparseIndex(folder), encoder.encode_query(written([question])[0])
    dense = np.array(passages, np.float32).reshape(-1, len(TERMS)) @ np.array(question, np.float32)
    np.testing.assert_array_equal(index.scores(query), dense)
    order = sorted((row for row in range(len(passages)) if dense[row] > 0), key=lambda r: (-dense[r], r))
    assert index.search(query, k) == [(row, dense[row]) for row in order[:k]]
    for row in range(len(passages)):
        shares = {
            term: w * question[at] for at, (term, w) in enumerate(zip(TERMS, passages[row], strict=True))
        }
        found = index.matched(query, row)
        assert dict(found) == {term: share for term, share in shares.items() if share}
        assert [share for _, share in found] == sorted((share for _, share in found), reverse=True)


def test_a_build_can_be_stopped_and_leaves_nothing(tmp_path: Path) -> None:
    seen: list[int] = []

    def check(row: int) -> None:
        seen.append(row)
        if row:
            raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        write_index(written([[1.0] * len(TERMS)] * 100), TableEncoder(), tmp_path / "index", check)
    assert seen[0] == 0
    assert not (tmp_path / "index").exists()


TEXTS = ["a key is stored for hours.", "send it back", "", "the box, the parcel " * 40, "東京 \ud800"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A SPLADE checkpoint as it is published (a masked language model), the same saved by the library, and an
    encoder without the head.
    """
    from sentence_transformers import SparseEncoder
    from transformers import BertModel

    made = {name: tmp_path_factory.mktemp(name) for name in ("splade", "saved", "encoder")}
    bert(BertModel).save_pretrained(made["encoder"])
    tokenizer().save_pretrained(made["encoder"])
    splade(made["splade"])
    SparseEncoder(str(made["splade"]), device="cpu").save_pretrained(str(made["saved"]))
    return made


@pytest.mark.model
@pytest.mark.parametrize("name", ["splade", "saved"])
def test_weights_are_splades_formula_on_the_models_logits(folders: dict[str, Path], name: str) -> None:
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    ours = SpladeEncoder(str(folders[name]))
    assert list(ours.terms) == VOCABULARY
    model = AutoModelForMaskedLM.from_pretrained(folders["splade"]).eval()
    cut = AutoTokenizer.from_pretrained(folders["splade"])
    expected = []
    for text in TEXTS:
        with torch.no_grad():
            logits = model(**cut(text.replace("\ud800", "?"), truncation=True, return_tensors="pt")).logits[0]
        expected.append(torch.log1p(torch.relu(logits)).max(0).values.numpy())
    got = ours.encode(TEXTS)
    np.testing.assert_allclose(got.toarray(), np.stack(expected), atol=1e-5)
    np.testing.assert_allclose(ours.encode_query(TEXTS[0]).toarray()[0], expected[0], atol=1e-5)
    assert ours.encode([]).shape == (0, len(VOCABULARY))
    terms = ours.expansion(TEXTS[0])
    assert terms == sorted(terms, key=lambda term: (-term[1], term[0]))
    np.testing.assert_allclose([dict(terms).get(term, 0.0) for term in VOCABULARY], expected[0], atol=1e-5)
    assert len(terms) > len(TEXTS[0].split())  # it searches with words the question does not have


@pytest.mark.model
def test_threads_get_the_weights_they_asked_for(folders: dict[str, Path]) -> None:
    ours = SpladeEncoder(str(folders["splade"]))
    expected = [ours.encode_query(text).toarray() for text in TEXTS]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: ours.encode_query(text).toarray(), TEXTS * 4))
    np.testing.assert_allclose(found, expected * 4, atol=1e-5)


@pytest.mark.model
def test_what_is_no_trained_sparse_model_or_gives_no_numbers_is_not_used(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    with pytest.raises(Unavailable, match="BertModel, not a trained learned sparse model"):
        SpladeEncoder(str(folders["encoder"]))
    with pytest.raises(Unavailable, match="naver/splade-v3") as caught:
        SpladeEncoder("nobody/no-such-model")
    assert "\n" not in str(caught.value)
    ours = SpladeEncoder(str(folders["splade"]))
    broken = torch.full((1, len(VOCABULARY)), torch.nan).to_sparse()
    monkeypatch.setattr(ours._model, "encode_query", lambda *_, **__: broken)
    with pytest.raises(ModelFailed, match="not finite"):
        ours.encode_query("a key")
