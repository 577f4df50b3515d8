"""Gaps and misses: the test's false alarms, its calibration, and what the command says of each kind."""

import json
import threading

import numpy as np
import pytest

from core.cli import main
from core.domain.errors import BadInput
from core.domain.types import Query
from core.evaluation import access, gaps
from core.evaluation.dataset import LabelledSet, Question
from tests.fakes import FakeEngine, asked_by_commands
from tests.parcels import TEXTS, labelled, people


@pytest.fixture
def engine(tmp_path):
    return FakeEngine(tmp_path, texts=TEXTS)


def found(engine, *questions, qrels=None, routes=("bm25", "dense")):
    corpus = engine.corpus("tiny")
    asked = LabelledSet("asked", questions, qrels or {}, 2)
    return gaps.find(engine, corpus, asked, routes, labelled(people(corpus)))


def test_labels_decide_before_the_test(engine):
    corpus = engine.corpus("tiny")
    ids = [passage.id for _, passage, _ in corpus.everything()]
    unseen = "Why do volcanoes erupt beneath oceans?"
    told = found(
        engine,
        Question("labelled", Query(unseen)),
        Question("none", Query("On which day is parcel number 7 sent?"), answerable=False),
        qrels={"labelled": {ids[3]: 3}},
        routes=("bm25",),
    )
    assert [(one["id"], one["by"]) for one in told["misses"]] == [("labelled", "labels")]
    assert told["misses"][0]["passage"] == ids[3]
    assert [(one["id"], one["by"]) for one in told["gaps"]] == [("none", "labels")]


def test_one_in_ten_answerable_questions_is_called_a_gap(engine):
    """The threshold is a conformal one: at most a tenth of the calibration's own answerable questions."""
    corpus = engine.corpus("tiny")
    evidence = gaps.EvidenceSigns(engine, corpus, threading.Event())
    some = labelled(people(corpus))
    test = gaps.calibrate(evidence, some, lambda *_: None)
    scores = [test.score(evidence.signs(q.query.text, evidence.wide(q.query.text))) for q in some.questions]
    assert np.mean(np.array(scores) < test.threshold) <= 0.25
    assert 0.5 <= test.auc <= 1
    assert 0 <= test.precision <= 1


def test_without_labels_sentences_of_the_corpus_calibrate_the_test(tmp_path):
    texts = {
        id: f"{text} It weighs {n} kg and crosses river {n}." for n, (id, text) in enumerate(TEXTS.items())
    }
    engine = FakeEngine(tmp_path, texts=texts)
    corpus = engine.corpus("tiny")
    evidence = gaps.EvidenceSigns(engine, corpus, threading.Event())
    assert all(sentence in passage.text for sentence, passage in gaps.known_items(corpus))
    test = gaps.calibrate(evidence, None, lambda *_: None)
    assert (test.source, test.questions) == ("sentences of the corpus", 40)
    small = FakeEngine(tmp_path / "small")
    with pytest.raises(BadInput, match="to calibrate on; 20 are needed"):
        gaps.find(small, small.corpus("tiny"), LabelledSet("asked", (), {}), ["bm25"])


def test_a_question_about_nothing_in_the_documents_is_a_gap_and_one_about_them_is_answered(
    engine, monkeypatch, tmp_path, capsys
):
    asked_by_commands(monkeypatch, engine)
    corpus = engine.corpus("tiny")
    monkeypatch.setattr(access, "own_questions", lambda *_: labelled(people(corpus)))
    asked = {"in": "On which day is parcel number 7 sent?", "out": "Why do volcanoes erupt beneath oceans?"}
    lines = [json.dumps({"id": id, "text": text}) for id, text in asked.items()]
    (tmp_path / "asked.jsonl").write_text("\n".join(lines))
    line = ["gaps", "tiny", "--questions", str(tmp_path / "asked.jsonl"), "--routes", "bm25,dense"]
    assert main([*line, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["answered"], [one["id"] for one in told["gaps"]]) == (1, ["out"])
    assert told["test"]["source"] == "labelled questions"
    assert told["clusters"][0]["advice"].startswith("write a document about ")
    assert main(line) == 0
    assert "write a document about" in capsys.readouterr().out
