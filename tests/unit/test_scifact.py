"""SciFact against the published figures: the whole way from a BEIR folder to nDCG@10."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from core.backends.embedder import load_embedder
from core.corpus import index
from core.evaluate.metrics import by_question
from core.settings import PROJECT, Settings
from core.types import Ranking
from tests.unit.test_metrics import assert_same, directly, ranx

HERE = os.environ.get("ROUTESCOPE_BENCH_DATA")
FOUND = [Path(HERE) / "scifact"] if HERE else sorted(PROJECT.glob("../*/data/scifact"))
NOT_HERE = "SciFact is not beside the project (or below ROUTESCOPE_BENCH_DATA)"
BM25, DENSE = 0.6874, 0.6451  # MTEB's results of bm25s and of all-MiniLM-L6-v2

pytestmark = [
    pytest.mark.bench,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not any(path.is_dir() for path in FOUND), reason=NOT_HERE),
]


@pytest.fixture(scope="module")
def corpus() -> index.Corpus:
    """The index in the project's own folder: embedding takes minutes, and is done once."""
    return index.build("scifact", FOUND[0], settings=Settings())


@pytest.fixture(scope="module")
def questions() -> dict[str, str]:
    rows = map(json.loads, (FOUND[0] / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    return {row["_id"]: row["text"] for row in rows}


def ndcg(found: dict[str, Ranking]) -> float:
    import ir_measures

    lines = (FOUND[0] / "qrels" / "test.tsv").read_text().splitlines()[1:]
    judged = [ir_measures.Qrel(q, d, int(grade)) for q, d, grade in (line.split("\t") for line in lines)]
    run = [ir_measures.ScoredDoc(q, hit.passage.id, hit.score) for q, hits in found.items() for hit in hits]
    return float(ir_measures.calc_aggregate([ir_measures.nDCG @ 10], judged, run)[ir_measures.nDCG @ 10])


def test_bm25(corpus: index.Corpus, questions: dict[str, str]) -> None:
    assert corpus.size == 5183
    found = {id: corpus.search_sparse(text, 100) for id, text in questions.items()}
    assert ndcg(found) == pytest.approx(BM25, abs=0.01)


def test_dense(corpus: index.Corpus, questions: dict[str, str]) -> None:
    model = load_embedder("all-MiniLM-L6-v2", settings=Settings())
    found = corpus.search_dense_many(model.embed(list(questions.values())), 100)
    assert ndcg(dict(zip(questions, found, strict=True))) == pytest.approx(DENSE, abs=0.01)


def test_every_metric_of_its_rankings_equals_ranx_and_ir_measures(
    corpus: index.Corpus, questions: dict[str, str]
) -> None:
    qrels: dict[str, dict[str, int]] = {}
    for line in (FOUND[0] / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        question, passage, grade = line.split("\t")
        qrels.setdefault(question, {})[passage] = int(grade)
    rankings = {
        q: tuple((hit.passage.id, hit.score) for hit in corpus.search_sparse(questions[q], 100))
        for q in qrels
    }
    assert len(rankings) == 300
    found = by_question(qrels, rankings)
    assert sum(by["ndcg@10"] for by in found.values()) / 300 == pytest.approx(BM25, abs=0.01)
    filled = {q: hits for q, hits in rankings.items() if hits}
    assert_same(found, directly(qrels, filled, 1))
    assert_same(found, ranx(qrels, filled, 1))
