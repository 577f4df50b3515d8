"""Hubs: the counts against a recount by hand, what hubs displace, and the effect without them."""

import json
import threading
from collections import Counter

import numpy as np
import pytest

from core.cli import main
from core.corpus import catalogue
from core.corpus.chunk import WHOLE
from core.corpus.source import Source
from core.domain import settings as settings_module
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine import engine as engine_module
from core.evaluation import access, gaps, hubs
from core.evaluation.dataset import LabelledSet, Question
from tests.fakes import FakeEngine

PLACES = ("harbour", "forest", "station", "museum", "bridge", "valley", "market", "castle")
TEXTS = {
    f"p{n:02}": f"The {PLACES[n % 8]} number {n} opens on every day at noon. Entry {n} costs {n} coins."
    for n in range(48)
} | {
    f"hub{n}": f"The {' and the '.join(PLACES)} open every day at noon on number {n}. Entry costs coins."
    for n in range(2)
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return FakeEngine(tmp_path_factory.mktemp("hubs"), texts=TEXTS)


@pytest.fixture(scope="module")
def found(engine):
    return hubs.find(engine, engine.corpus("tiny"), people(engine))


def people(engine):
    """Ask for what every hub has; relevant is a passage that the words put at rank 10, 11 or 12."""
    corpus, asked = engine.corpus("tiny"), {}
    for n in range(20):
        text = f"every day at noon the {PLACES[n % 8]} and the coins of entry {n}"
        asked[text] = searched(engine, corpus, text)["words"][9 + n % 3].passage.id
    questions = tuple(Question(f"q{n}", Query(text)) for n, text in enumerate(asked))
    return LabelledSet("people", questions, {f"q{n}": {id: 1} for n, id in enumerate(asked.values())})


def searched(engine, corpus, text):
    do = gaps.EvidenceSigns(engine, corpus, threading.Event()).steps()
    return {"words": do.sparse(text), "vectors": do.dense(text)}


@pytest.mark.parametrize("name", hubs.SEARCHES)
def test_hubs_are_those_returned_for_more_sentences_than_two_deviations_above_the_mean(engine, found, name):
    corpus = engine.corpus("tiny")
    counts, returned = Counter({passage.id: 0 for _, passage, _ in corpus.everything()}), set()
    items = gaps.known_items(corpus, hubs.MOST)
    for text, own in items:
        top = [hit.passage.id for hit in searched(engine, corpus, text)[name]][:10]
        returned.update(top)
        counts.update(id for id in top if id != own.id)
    for question in people(engine).questions:
        returned.update(hit.passage.id for hit in searched(engine, corpus, question.query.text)[name][:10])
    limit = np.mean(list(counts.values())) + 2 * np.std(list(counts.values()))
    expected = {id: count for id, count in counts.items() if count > limit}
    search = found["searches"][name]
    assert {one["passage"]: one["returned"] for one in search["hubs"]} == expected
    assert search["hub_count"] == len(expected) > 0
    assert {one["passage"] for one in search["never"]} == {own.id for _, own in items} - returned
    assert (found["sentences"], found["questions"]) == (len(items), 20)


def test_the_effect_is_that_of_rankings_without_hubs_and_displaced_passages_come_back(engine, found):
    corpus, set_ = engine.corpus("tiny"), people(engine)
    search = found["searches"]["words"]
    taken = {one["passage"] for one in search["hubs"]}
    gains, back = [], []
    for question in set_.questions:
        (relevant,) = set_.relevant(question.id)
        ids = [hit.passage.id for hit in searched(engine, corpus, question.query.text)["words"]]
        left = [id for id in ids if id not in taken]
        now, then = (one.index(relevant) + 1 if relevant in one else 99 for one in (left, ids))
        gains.append(sum(sign / np.log2(r + 1) for r, sign in ((now, 1), (then, -1)) if r <= 10))
        if now <= 10 < then:
            back.append((question.id, relevant, then, now))
    assert search["effect"]["difference"] == pytest.approx(np.mean(gains))
    assert back
    low, high = search["effect"]["ci95"]
    assert low <= search["effect"]["difference"] <= high
    assert [
        tuple(one[key] for key in ("question", "passage", "rank", "without")) for one in search["displaced"]
    ] == back
    assert sum(one["displaces"] for one in search["hubs"]) == sum(
        len(one["by"]) for one in search["displaced"]
    )


def test_without_labels_there_is_no_effect(engine):
    told = hubs.find(engine, engine.corpus("tiny"))
    assert all(one["effect"] is None and one["displaced"] == [] for one in told["searches"].values())


def test_the_command_prints_hubs_as_json_and_as_text(engine, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(engine_module, "shared_engine", lambda: engine)
    monkeypatch.setattr(settings_module, "current", lambda: Settings(home=tmp_path))
    monkeypatch.setattr(catalogue, "source", lambda *_, **__: Source("tiny", "indexed", None, WHOLE))
    monkeypatch.setattr("core.cli.corpora.ensure", lambda *_: None)
    monkeypatch.setattr(access, "own_questions", lambda *_: people(engine))
    assert main(["hubs", "tiny", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["searches"]) == set(hubs.SEARCHES)
    assert main(["hubs", "tiny"]) == 0
    said = capsys.readouterr().out
    assert f"{told['searches']['words']['effect']['difference']:+.3f}" in said
