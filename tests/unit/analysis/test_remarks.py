"""What a ranking does not say: BM25 found nothing and why, and what was embedded while a question waited."""

import pytest

from core.analysis.remarks import prepared_by, remarks
from core.cli.comparison import comparison
from core.domain.errors import BadInput, Unavailable
from core.domain.needs import Need
from core.domain.types import Query, Turn
from core.engine.request import Request
from core.evaluation import dataset, experiment
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.spec import Spec
from tests.fakes import FakeEngine


def bare(engine, monkeypatch):
    def nothing(_self, _corpus, need):
        raise Unavailable(f"no {need.name}")

    monkeypatch.setattr(FakeEngine, "enrichment", nothing)
    return engine


def test_a_search_by_words_that_found_nothing_says_why(tmp_path):
    run = FakeEngine(tmp_path).ask(Request(Query("zzz qqq"), "tiny", ("bm25", "hybrid_rrf", "dense")))
    told = {result.route: remarks(result, "tiny") for result in run.results}
    assert (
        told["bm25"]
        == told["hybrid_rrf"]
        == ["BM25 found nothing: no passage has any of its terms (zzz qqq)"]
    )
    assert told["dense"] == []
    prepared = FakeEngine(tmp_path).ask(Request(Query("a damaged box"), "tiny", ("compress", "hybrid_rrf")))
    assert [remarks(result, "tiny") for result in prepared.results] == [[], []]
    assert "bm25: BM25 found nothing: no passage has any" in comparison(run)


@pytest.mark.parametrize(
    ("route", "need", "made"),
    [
        ("rerank", Need.TOKENS, "token vectors of "),
        ("compress", Need.CHILDREN, "pieces of passages"),
        ("crag", Need.TOKENS, "token vectors of "),
    ],
)
def test_what_is_embedded_at_the_question_is_said_with_the_command(tmp_path, monkeypatch, route, need, made):
    texts = {f"{route}{n}:0-30": f"the {route} box {n} came damaged" for n in range(4)}  # nobody read before
    engine = bare(FakeEngine(tmp_path, texts=texts), monkeypatch)
    result = engine.ask(Request(Query("a damaged box"), "tiny", (route,))).results[0]
    assert prepared_by(result.spans) == (need,)
    (remark,) = remarks(result, "tiny")
    assert remark.startswith("Embedded while the question waited")
    assert made in remark
    assert remark.endswith(f"index tiny --with {need.name.lower()}")


def labelled(*queries):
    questions = tuple(Question(f"q{n}", query) for n, query in enumerate(queries))
    return LabelledSet("tiny", questions, {question.id: {"any": 1} for question in questions})


def prepared(engine, monkeypatch, *queries, routes=()):
    monkeypatch.setattr(experiment, "_questions", lambda *_: (labelled(*queries), []))
    return experiment.prepare(engine, Spec("tiny", routes))


def test_an_evaluation_leaves_out_what_embeds_at_each_question_of_a_large_corpus(tmp_path, monkeypatch):
    engine = FakeEngine(tmp_path)
    small = prepared(engine, monkeypatch, Query("a box"))
    assert "rerank" in small.plan.routes
    assert any(
        "rerank" in said and "while each question waits; to prepare" in said for said in small.warnings
    )
    monkeypatch.setattr(experiment, "MANY", 1)
    large = prepared(engine, monkeypatch, Query("a box"))
    assert not {"rerank", "crag", "compress", "memory_rerank"} & set(large.plan.routes)
    assert {"bm25", "hybrid_linear"} <= set(large.plan.routes)
    (said,) = [said for said in large.warnings if said.startswith("left out")]
    assert "rerank" in said
    assert "index tiny --with tokens,children" in said or "index tiny --with children,tokens" in said
    named = prepared(engine, monkeypatch, Query("a box"), routes=("rerank", "bm25"))
    assert named.plan.routes == ("rerank", "bm25")


def test_an_evaluation_says_where_memory_has_nothing_to_remember(tmp_path, monkeypatch):
    engine = FakeEngine(tmp_path)
    without = prepared(engine, monkeypatch, Query("a box"), routes=("memory", "bm25"))
    assert any(said.startswith("memory: no question of this set has turns") for said in without.warnings)
    turns = (Turn("user", "what is damaged?"),)
    spoken = prepared(engine, monkeypatch, Query("a box", turns), routes=("memory", "bm25"))
    assert not any("turns before it" in said for said in spoken.warnings)


TURNS = (Turn("user", "What is X?"), Turn("assistant", "A thing."))


def with_history(folder, history):
    (folder / "qrels").mkdir()
    (folder / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "And that?", "metadata": {"history": ' + history + "}}\n"
    )
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    return dataset.beir(folder).questions[0].query


@pytest.mark.parametrize(
    ("history", "turns"),
    [
        ('[{"role": "user", "text": "What is X?"}, {"role": "assistant", "text": "A thing."}]', TURNS),
        ('[{"role": "user", "content": "What is X?"}, {"role": "assistant", "content": "A thing."}]', TURNS),
        ('[{"speaker": "Human", "text": "What is X?"}, {"speaker": "agent", "text": "A thing."}]', TURNS),
        ('["What is X?"]', TURNS[:1]),
        ('"What is X?"', TURNS[:1]),
        ("[]", ()),
        ("null", ()),
    ],
)
def test_history_in_the_metadata_of_a_question_is_the_conversation_before_it(tmp_path, history, turns):
    assert with_history(tmp_path, history) == Query("And that?", turns)


@pytest.mark.parametrize(
    "history", ["7", '{"a": 1}', '[{"role": "nobody", "text": "x"}]', '[{"role": "user"}]']
)
def test_a_history_that_is_none_is_refused_with_its_question(tmp_path, history):
    with pytest.raises(BadInput, match=r"queries\.jsonl, query q1: a (history|turn) is"):
        with_history(tmp_path, history)
