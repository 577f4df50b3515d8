"""SciFact against the published figures: the whole way from a BEIR folder to nDCG@10."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from core.analysis.metrics import by_question
from core.backends.base import Matrix, Vector
from core.backends.embedder import load_embedder
from core.corpus import catalogue, index
from core.domain.settings import PROJECT, Settings
from core.domain.types import Ranking
from tests.unit.analysis.test_metrics import assert_same, directly, ranx

HERE = os.environ.get("ROUTESCOPE_BENCH_DATA")
FOUND = [Path(HERE) / "scifact"] if HERE else sorted(PROJECT.glob("../*/data/scifact"))
NOT_HERE = "SciFact is not beside the project (or below ROUTESCOPE_BENCH_DATA)"
BM25, DENSE = 0.6874, 0.6451  # MTEB's results of bm25s and of all-MiniLM-L6-v2

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(not any(path.is_dir() for path in FOUND), reason=NOT_HERE),
]
Qrels = Mapping[str, Mapping[str, int]]


class Unread:
    """The same vector for every text: embedding the abstracts takes minutes, and BM25 looks at no vector."""

    name, dim = "unread", 1

    def embed_query(self, text: str) -> Vector:
        return self.embed([text])[0]

    def embed(self, texts: Sequence[str]) -> Matrix:
        return np.ones((len(texts), 1), np.float32)


@pytest.fixture(scope="module")
def qrels() -> Qrels:
    judged: dict[str, dict[str, int]] = {}
    for line in (FOUND[0] / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        question, passage, grade = line.split("\t")
        judged.setdefault(question, {})[passage] = int(grade)
    assert len(judged) == 300
    return judged


@pytest.fixture(scope="module")
def questions(qrels: Qrels) -> dict[str, str]:
    rows = map(json.loads, (FOUND[0] / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    return {row["_id"]: row["text"] for row in rows if row["_id"] in qrels}


@pytest.fixture(scope="module")
def by_words(questions: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ranking]:
    home = Settings(home=tmp_path_factory.mktemp("home"))
    corpus = index.build("scifact", FOUND[0], settings=home, embedder=Unread())
    assert corpus.size == 5183
    return {id: corpus.search_sparse(text, 100) for id, text in questions.items()}


def ndcg(qrels: Qrels, found: Mapping[str, Ranking]) -> float:
    import ir_measures

    judged = [ir_measures.Qrel(q, d, grade) for q, by in qrels.items() for d, grade in by.items()]
    run = [ir_measures.ScoredDoc(q, hit.passage.id, hit.score) for q, hits in found.items() for hit in hits]
    return float(ir_measures.calc_aggregate([ir_measures.nDCG @ 10], judged, run)[ir_measures.nDCG @ 10])


def test_bm25(qrels: Qrels, by_words: dict[str, Ranking]) -> None:
    assert ndcg(qrels, by_words) == pytest.approx(BM25, abs=0.01)


def test_dense(qrels: Qrels, questions: dict[str, str]) -> None:
    settings = Settings()
    if catalogue.current("scifact", settings) is None:
        pytest.skip("the index of SciFact is not built, which takes minutes: run make test-bench")
    corpus = index.open_corpus("scifact", settings=settings)
    assert (corpus.size, corpus.info.embedder) == (5183, "all-MiniLM-L6-v2")
    model = load_embedder(corpus.info.embedder, settings=settings)
    found = corpus.search_dense_many(model.embed(list(questions.values())), 100)
    assert ndcg(qrels, dict(zip(questions, found, strict=True))) == pytest.approx(DENSE, abs=0.01)


def test_every_metric_of_its_rankings_equals_ranx_and_ir_measures(
    qrels: Qrels, by_words: dict[str, Ranking]
) -> None:
    rankings = {q: tuple((hit.passage.id, hit.score) for hit in hits) for q, hits in by_words.items()}
    assert len(rankings) == 300
    found = by_question(qrels, rankings)
    assert sum(by["ndcg@10"] for by in found.values()) / 300 == pytest.approx(BM25, abs=0.01)
    filled = {q: hits for q, hits in rankings.items() if hits}
    assert_same(found, directly(qrels, filled, 1))
    assert_same(found, ranx({1: (qrels, filled)})[1])
