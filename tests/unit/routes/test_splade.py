"""The route over learned term weights: against dense products, and with a tiny real model from the shell."""

import json

import pytest

from core.backends.learned_sparse import SpladeEncoder
from core.cli import main
from core.corpus.enrichments import store
from core.corpus.enrichments.learned import LearnedSparse
from core.domain import settings as settings_module
from core.domain.errors import Unavailable
from core.domain.needs import Need
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine import engine as engine_module
from core.engine.availability import missing
from core.engine.engine import Engine
from core.engine.request import Request
from core.steps.retrieve import MAX_RECORDED_HITS, TERMS
from tests import asking
from tests.fakes import TEXTS, FakeEngine, HashTerms, MemoryCorpus
from tests.tiny import splade

QUESTION = "How do I send a fragile item back within 30 days?"


def ask(tmp_path, question=QUESTION):
    return asking.ask(tmp_path, "splade", question)[0]


def test_hits_are_the_dense_products_best_first(tmp_path):
    result, corpus, encoder = ask(tmp_path), MemoryCorpus(TEXTS), HashTerms()
    weights = encoder.encode([f"{p.title} {p.text}" for p in corpus.all]).toarray()
    scores = dict(
        zip((p.id for p in corpus.all), weights @ encoder.encode([QUESTION]).toarray()[0], strict=True)
    )
    order = sorted((id for id in scores if scores[id] > 0), key=lambda id: (-scores[id], id))
    assert [hit.passage.id for hit in result.hits] == order
    assert [hit.score for hit in result.hits] == pytest.approx([scores[id] for id in order])


def test_the_span_tells_what_was_searched_with_and_what_each_term_added(tmp_path):
    result = ask(
        tmp_path,
        f"{QUESTION} and where is the invoice of my parcel that customs may hold for five business days",
    )
    (span,) = result.spans
    told = span.output
    assert told.model == "hash terms"
    assert len(told.expansion) == TERMS < told.terms
    weights = [weight for _, weight in told.expansion]
    assert weights == sorted(weights, reverse=True)
    assert list(told.matched) == [hit.passage.id for hit in result.hits[:MAX_RECORDED_HITS]]
    for hit in result.hits[:MAX_RECORDED_HITS]:
        shares = told.matched[hit.passage.id]
        assert sum(share for _, share in shares) == pytest.approx(hit.score)
        assert all(share > 0 for _, share in shares)


def test_a_question_without_a_term_finds_nothing_and_says_so(tmp_path):
    result = ask(tmp_path, "?!")
    assert (result.status, result.hits) == ("ok", ())
    assert "nothing found" in result.spans[0].attributes["note"]


def test_without_a_model_the_need_says_what_to_set_and_to_run(tmp_path):
    reason = (
        "no learned sparse model is set: ROUTESCOPE_SPARSE_MODEL=splade-tiny (or a folder), "
        "then run python -m core index tiny --with learned_sparse"
    )
    engine = FakeEngine(tmp_path, sparse_model="")
    assert missing(engine, "tiny")[Need.LEARNED_SPARSE].startswith(reason)
    with pytest.raises(Unavailable, match="no learned sparse model is set"):
        store.build("learned_sparse", engine.corpus("tiny"), settings=engine.settings)
    engine.enrichment = lambda corpus, need: Engine.enrichment(engine, corpus, need)
    result = engine.ask(Request(Query("a box"), "tiny", ("splade",))).results[0]
    assert result.status == "unavailable"
    assert reason in result.error


def test_with_a_model_that_was_not_used_yet_the_need_says_what_to_run(tmp_path):
    gap = missing(FakeEngine(tmp_path), "tiny")[Need.LEARNED_SPARSE]
    assert "has no learned term weights of the passages yet: run python -m core index tiny" in gap


def test_an_index_by_another_encoder_is_refused(tmp_path, monkeypatch):
    corpus = MemoryCorpus(TEXTS)
    here = Settings(home=tmp_path, sparse_model=HashTerms.name)
    store.build("learned_sparse", corpus, settings=here, embedder=corpus.embedder)

    class Grown(HashTerms):
        terms = [*HashTerms.terms, "more"]  # noqa: RUF012

    monkeypatch.setitem(store.RECIPES, "learned_sparse", LearnedSparse(lambda _: Grown()))
    with pytest.raises(Unavailable, match=r"are by hash terms \(61 terms\), not by hash terms \(62\)"):
        store.load("learned_sparse", corpus, here)


@pytest.mark.model
def test_a_splade_model_is_used_by_name_from_the_command_line_on(tmp_path, monkeypatch, capsys):
    folder, docs = tmp_path / "splade", tmp_path / "docs"
    for made in (folder, docs):
        made.mkdir()
    splade(folder)
    for name, text in {
        "a": "a key is stored for hours.",
        "b": "send it back within days.",
        "c": "the box",
    }.items():
        (docs / f"{name}.md").write_text(text)
    now = Settings(home=tmp_path / "home", sparse_model=str(folder))
    engine = Engine(now)
    monkeypatch.setattr(settings_module, "current", lambda: now)
    monkeypatch.setattr(engine_module, "shared_engine", lambda: engine)
    assert main(["index", str(docs), "--name", "mine", "--with", "learned_sparse", "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)["enrichments"]
    assert record["entries"] == 3
    assert record["model"].startswith(f"{folder}@")
    assert main(["ask", "return the box", "--corpus", "mine", "--routes", "splade", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    inputs = result["spans"][0]["output"]
    assert inputs["model"] == str(folder)
    ours = SpladeEncoder(str(folder))
    assert [tuple(term) for term in inputs["expansion"]] == [
        (term, pytest.approx(weight, rel=1e-4)) for term, weight in ours.expansion("return the box")[:TERMS]
    ]
    passages = [p for _, p, _ in engine.corpus("mine").everything()]
    weights = ours.encode([f"{p.title} {p.text}" for p in passages]).toarray()
    scores = weights @ ours.encode_query("return the box").toarray()[0]
    expected = dict(zip((p.id for p in passages), scores, strict=True))
    assert {hit["id"] for hit in result["hits"]} == {id for id, score in expected.items() if score > 0}
    for hit in result["hits"]:
        assert hit["score"] == pytest.approx(expected[hit["id"]], rel=1e-4)
        assert sum(share for _, share in inputs["matched"][hit["id"]]) == pytest.approx(
            hit["score"], rel=1e-4
        )
