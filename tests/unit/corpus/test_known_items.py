"""The weight of dense search that a corpus is measured to need, in worlds in which the answer is known."""

import math
import threading
from collections import Counter

import numpy as np
import pytest

from core.backends import sparse
from core.backends.terms import Analyzer
from core.corpus import known_items
from core.corpus.embeddings import Checkpoint, Vectors
from core.corpus.known_items import WEIGHTS, choose, draw, gains, weigh
from core.corpus.stages import Stages
from core.corpus.types import UNMEASURED
from core.domain.errors import ModelFailed
from core.domain.text import searchable
from core.domain.types import Passage
from tests.fakes import HashEmbedder

SUBJECTS = 60


def measure(items, asked, rests, words, vectors, passages):
    return choose(gains(items, asked, rests, words, vectors, passages), words.size)


QUIET = Stages(lambda *_: None, threading.Event())


def source(folder, load=HashEmbedder):
    return Vectors("hash", "hash", load, (), Checkpoint(folder, "hash"))


class Listed:
    """Passages in memory."""

    def __init__(self, passages):
        self.all = passages

    def texts(self):
        return iter([searchable(one.title, one.text) for one in self.all])

    def at(self, rows):
        return {row: self.all[row] for row in rows}


def passage(n, text):
    return Passage(f"p{n}", f"p{n}", "", text)


def corpus(tmp_path, texts):
    passages = Listed([passage(n, text) for n, text in enumerate(texts)])
    sparse.write_index(passages.texts(), tmp_path / "bm25", Analyzer("none"))
    return passages, sparse.BM25Index(tmp_path / "bm25", len(texts))


def units(rows, seed):
    made = np.random.default_rng(seed).normal(size=(rows, 16)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def told_apart_by_words(n):
    return f"Here subject{n} begins its long story today. And later subject{n} ends all of the story again."


def told_apart_by_nothing(n):
    return f"Only alpha{n} beta{n} gamma{n} delta{n} stand here. Then omega{n} psi{n} chi{n} phi{n} follow."


@pytest.mark.parametrize(
    ("text", "vectors_know", "least", "most"),
    [
        (told_apart_by_words, False, 0.0, 0.3),  # words find each passage, vectors are noise
        (told_apart_by_nothing, True, 0.4, 1.0),  # no word is shared, the vectors are those of the passages
    ],
)
def test_the_list_that_finds_the_passages_gets_the_weight(tmp_path, text, vectors_know, least, most):
    passages, words = corpus(tmp_path, [text(n) for n in range(SUBJECTS)])
    vectors, items = units(SUBJECTS, 1), draw(passages)
    assert len(items) == SUBJECTS
    own = vectors[[item.row for item in items]]
    asked, rests = (own, own) if vectors_know else (units(SUBJECTS, 2), units(SUBJECTS, 3))
    found = measure(items, asked, rests, words, vectors, passages)
    assert least <= found.low <= found.weight <= found.high <= most
    assert (found.items, found.why, len(found.found)) == (SUBJECTS, "", len(WEIGHTS))


def test_gains_are_those_of_an_index_in_which_the_shortened_passage_stands(tmp_path):
    texts = [f"{told_apart_by_words(n % 9)} Nobody knows number {n} so well." for n in range(30)]
    passages, words = corpus(tmp_path, texts)
    items = draw(passages)
    vectors, asked, rests = units(30, 1), units(len(items), 2), units(len(items), 3)
    found = measure(items, asked, rests, words, vectors, passages)
    slow = [
        [gain(passages, words, vectors, item, asked[at], rests[at], weight) for weight in WEIGHTS]
        for at, item in enumerate(items)
    ]
    assert [mean for _, mean in found.found] == pytest.approx(np.mean(slow, axis=0), abs=1e-4)
    scores = words.scores("subject3 begins")
    for row, text in enumerate(passages.texts()):
        assert words.score_of(text, "subject3 begins") == pytest.approx(scores[row], rel=1e-5)


def gain(passages, words, vectors, item, asked, rest, weight):
    """The same by the formula of BM25, term by term, and by sorting the whole corpus."""
    texts = list(passages.texts())
    counted = [Counter(words.analyzer.terms(text)) for text in texts]
    mean = float(np.mean([c.total() for c in counted]))
    question = words.analyzer.terms(item.question)
    idf = {
        t: math.log(1 + (len(texts) - h + 0.5) / (h + 0.5))
        for t in question
        for h in [sum(t in c for c in counted)]
    }

    def score(text, vector):
        own = Counter(words.analyzer.terms(text))
        norm = sparse.K1 * (1 - sparse.B + sparse.B * own.total() / mean)
        bm25 = sum(idf[t] * own[t] / (own[t] + norm) for t in question) / sum(idf[t] for t in question)
        return (1 - weight) * bm25 + weight * float(vector @ asked)

    mine = score(item.rest, rest)
    rivals = [
        score(text, vectors[row])
        for row, text in enumerate(texts)
        if not (abs(row - item.row) <= known_items.NEAR and item.question in text)
    ]
    above = sum(one > mine + 1e-6 for one in rivals)
    rank = 1 + above + sum(abs(one - mine) <= 1e-6 for one in rivals) // 2
    return 1 / math.log2(rank + 1) if rank <= 10 else 0.0


def test_too_few_sentences_chance_and_a_failing_embedder_leave_the_weight_unmeasured(tmp_path):
    for name in ("few", "noise", "failing"):
        (tmp_path / name).mkdir()
    few, words = corpus(tmp_path / "few", ["One sentence that stands alone here."] * 30)
    found = weigh(few, words, units(30, 1), source(tmp_path), tmp_path, QUIET)
    assert (found.weight, found.items, bool(found.why)) == (UNMEASURED, 0, True)
    noise, words = corpus(tmp_path / "noise", [told_apart_by_nothing(n) for n in range(200)])
    items = draw(noise)
    made = measure(items, units(200, 2), units(200, 3), words, units(200, 1), noise)
    assert (made.weight, made.items, bool(made.why)) == (UNMEASURED, 200, True)

    def fail():
        raise ModelFailed("out of memory")

    passages, words = corpus(tmp_path / "failing", [told_apart_by_words(n) for n in range(SUBJECTS)])
    found = weigh(passages, words, units(SUBJECTS, 1), source(tmp_path, fail), tmp_path, QUIET)
    assert (found.weight, "out of memory" in found.why) == (UNMEASURED, True)


def test_an_item_is_a_sentence_and_the_passage_without_it(tmp_path):
    passages, _ = corpus(tmp_path, [told_apart_by_words(n) for n in range(SUBJECTS)])
    for item in draw(passages):
        text = passages.all[item.row].text
        assert item.question in text
        assert item.question not in item.rest
        assert sorted(f"{item.question} {item.rest}".split()) == sorted(text.split())


def test_a_refresh_asks_mostly_the_same_items(tmp_path, monkeypatch):
    monkeypatch.setattr(known_items, "ITEMS", 30)
    texts = [told_apart_by_words(n) for n in range(SUBJECTS)]
    before = {item.question for item in draw(Listed([passage(n, text) for n, text in enumerate(texts)]))}
    texts.insert(0, told_apart_by_words(99))
    after = {item.question for item in draw(Listed([passage(n, text) for n, text in enumerate(texts)]))}
    assert len(before & after) >= 29
