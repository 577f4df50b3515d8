"""Reranking: the blend against a plain reading of its definition, and the step with each reranker."""

import itertools
import json
import math
import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from semantic_text_splitter import TextSplitter

from core.backends import cache_file
from core.backends.base import Completion, TokenLogprob
from core.backends.llm import pace
from core.backends.rerankers.blend import (
    BlendReranker,
    Candidates,
    TokenCache,
    rounded,
    token_weights,
    weighted_maxsim,
    whole_words,
)
from core.backends.sparse import BM25Index, write_index
from core.backends.terms import Analyzer
from core.corpus.enrichments.keys import SIZE
from core.domain.errors import Cancelled, ModelFailed, ModelTimedOut, Unavailable
from core.domain.needs import Need
from core.domain.types import Passage, Query
from core.engine.request import Request
from core.steps.rerank import READ_NOW, by_score
from tests import asking
from tests.fakes import TEXTS, FakeEngine, HashTokens, ScriptedLLM, words
from tests.loopback import http, loopback

ASKED = "send a fragile parcel back in its box"


def run(tmp_path, llm=None, engine=None, setting=None, **parameters):
    own = [key for key in parameters if key.startswith(("reranker_", "route_"))]
    options = {key: parameters.pop(key) for key in own} | ({"reranker": setting} if setting else {})
    engine = engine or FakeEngine(tmp_path, llm=llm, **options)
    return asking.ask(tmp_path, "rerank", ASKED, engine=engine, **parameters)[0]


def span(result, name="rerank"):
    return next(s for s in result.spans if s.name.startswith(name))


def found(result):
    """The ids in the order of the first stage."""
    return [id for id, _ in span(result, "fuse").hits]


def unit(rng, rows, dim=5):
    vectors = rng.normal(size=(rows, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@given(st.integers(0, 10_000), st.integers(1, 6), st.lists(st.integers(0, 7), min_size=1, max_size=6))
def test_weighted_maxsim_by_its_definition(seed, asked, lengths):
    rng = np.random.default_rng(seed)
    query, weights = unit(rng, asked), rng.random(asked)
    passages = [unit(rng, length).reshape(-1, 5) for length in lengths]
    got = weighted_maxsim(query, weights, passages)
    for score, passage in zip(got, passages, strict=True):
        expected = 0.0
        for vector, weight in zip(query, weights, strict=True):
            cosines = [sum(float(a) * float(b) for a, b in zip(vector, row, strict=True)) for row in passage]
            expected += weight * max(cosines, default=0.0)
        assert score == pytest.approx(expected, abs=2e-6)


@given(st.integers(0, 10_000), st.integers(1, 8))
def test_equal_passages_get_equal_scores_wherever_they_stand(seed, copies):
    rng = np.random.default_rng(seed)
    query, passage = unit(rng, 4, 384), unit(rng, 9, 384)
    others = [unit(rng, 5, 384) for _ in range(copies)]
    mixed = [one for other in others for one in (other, passage)]
    got = weighted_maxsim(query, np.full(4, 0.25), mixed)
    assert len(set(got[1::2].tolist())) == 1


def test_a_words_pieces_weigh_what_the_word_weighs():
    tokens = ("how", "are", "id", "##em", "##pot", "##ency", "keys", "##s", "?")
    assert whole_words(tokens) == ["how", "are", *["idempotency"] * 4, "keyss", "keyss", "?"]
    assert whole_words(("##s", "a")) == ["s", "a"]
    idf = {"idempotency": 6.0, "keyss": 2.0}
    got = token_weights(whole_words(tokens), lambda asked: [idf.get(word, 0.0) for word in asked])
    np.testing.assert_allclose(got, np.array([0, 0, 6, 6, 6, 6, 2, 2, 0]) / 28)
    assert token_weights(["is", "it"], lambda asked: [0.0] * len(asked)).tolist() == [0.5, 0.5]


def test_idf_counts_passages_and_leaves_stop_words_out(tmp_path):
    texts = ["keys are stored", "keys, keys and keys", "a parcel", "parcels of keys"]
    write_index(texts, tmp_path / "bm25", Analyzer("english", ("are", "and", "of")))
    got = BM25Index(tmp_path / "bm25", len(texts)).idf(["keys", "key", "are", "parcel", "unheard", "?", "a"])
    three, two, none = (math.log(1 + (4 - df + 0.5) / (df + 0.5)) for df in (3, 2, 0))
    assert got == pytest.approx([three, three, 0, two, none, 0, 0])


NUMBERS = st.floats(-5, 50, allow_nan=False).map(lambda x: round(x, 3))


@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from(sorted(TEXTS.values()))), min_size=1, max_size=8))
def test_the_blend_is_the_sum_of_the_three_signals_on_the_candidates_scale(rows):
    passages = [Passage(f"p{at}", "d", "", text) for at, (_, _, text) in enumerate(rows)]
    tokens = HashTokens()
    bm25, cosine = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    frequency = Counter(word for text in TEXTS.values() for word in set(words(text)))

    def idf(asked):
        return [1 / (1 + frequency[word]) for word in asked]

    got = BlendReranker(tokens).blend(ASKED, Candidates(passages, bm25, cosine, idf))
    asked = words(ASKED)
    total = sum(idf(asked))
    maxsim = []
    for passage in passages:
        have = rounded(tokens.embed_query(passage.text).vectors).astype(float)
        want = tokens.embed_query(ASKED).vectors.astype(float)
        maxsim.append(
            sum(idf([word])[0] / total * max(have @ v) for word, v in zip(asked, want, strict=True))
        )

    def scaled(values):
        values = np.round(values, 6)
        low, high = min(values), max(values)
        return [1.0 if high == low else (value - low) / (high - low) for value in values]

    expected = np.sum([scaled(bm25), scaled(cosine), scaled(maxsim)], axis=0)
    np.testing.assert_allclose(got.raw["maxsim"], maxsim, atol=2e-6)
    if np.ptp(got.raw["maxsim"]) > 1e-3 or np.ptp(maxsim) < 1e-7:  # else rounding decides about all
        np.testing.assert_allclose(got.scores, expected, atol=4e-3)
    np.testing.assert_allclose(got.scores, np.sum(list(got.parts.values()), axis=0))
    assert sum(share for _, share in got.words) == pytest.approx(1)
    assert got.embedded == len(rows)


def candidates(texts, stored=None):
    """Passages of which nothing but the tokens tells one from another."""
    passages, zeros = [Passage(id, "d", "", text) for id, text in texts.items()], np.zeros(len(texts))
    return Candidates(passages, zeros, zeros, lambda asked: [1.0] * len(asked), stored or {})


def test_vectors_at_hand_are_used_and_only_the_others_made():
    tokens = HashTokens()
    passages = candidates(TEXTS).passages
    plain = BlendReranker(tokens).blend(ASKED, candidates(TEXTS))
    stored = {at: rounded(tokens.embed_query(passages[at].text).vectors) for at in (0, 2, 3)}
    tokens.read.clear()
    again = BlendReranker(tokens).blend(ASKED, candidates(TEXTS, stored))
    np.testing.assert_array_equal(plain.scores, again.scores)
    assert again.embedded == len(passages) - 3
    assert set(tokens.read) == {ASKED, *(p.text for at, p in enumerate(passages) if at not in stored)}


def test_a_passage_is_read_once_and_scores_the_same_afterwards(tmp_path):
    tokens, file = HashTokens(), tmp_path / "a.sqlite"
    first = BlendReranker(tokens, TokenCache(file, tokens.name)).blend(ASKED, candidates(TEXTS))
    tokens.read.clear()
    again = BlendReranker(tokens, TokenCache(file, tokens.name)).blend(ASKED, candidates(TEXTS))
    assert tokens.read == [ASKED]
    assert (first.embedded, first.cached, again.embedded, again.cached) == (len(TEXTS), 0, 0, len(TEXTS))
    np.testing.assert_array_equal(first.scores, again.scores)
    assert TokenCache(file, "another model").get(list(TEXTS.values())) == {}


def test_what_was_used_longest_ago_goes_when_the_cache_is_full(tmp_path, monkeypatch):
    now = itertools.count(1.0, 2 * cache_file.USED_S)
    monkeypatch.setattr(cache_file.time, "time", lambda: next(now))
    cache = TokenCache(tmp_path / "a.sqlite", "m", limit=400_000)
    ones = np.ones((64, 64), np.float32)
    for number in range(60):
        cache.put({f"text {number}": ones})
        cache.get(["text 0"])
    assert cache.get(["text 0"])
    assert cache.get(["text 59"])
    assert not cache.get(["text 1"])


def test_a_broken_cache_costs_time_and_no_result(tmp_path):
    (tmp_path / "a.sqlite").write_bytes(b"this is no database" * 99)
    reranker = BlendReranker(HashTokens(), TokenCache(tmp_path / "a.sqlite", HashTokens.name))
    assert reranker.blend("x", candidates({"a": "x"})).embedded == 1


def test_reading_passages_stops_when_asked_or_out_of_time():
    reranker, one, stop = BlendReranker(HashTokens()), candidates({"a": "x"}), threading.Event()
    stop.set()
    with pytest.raises(Cancelled):
        reranker.blend("x", one, cancel=stop)
    with pytest.raises(ModelTimedOut, match="give fewer"):
        reranker.blend("x", one, timeout=-1)
    assert reranker.blend("x", candidates({})).scores.shape == (0,)


@given(st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=9))
def test_an_order_by_scores_keeps_ties_and_what_has_no_score(scores):
    order = by_score(scores)
    assert sorted(order) == list(range(len(scores)))
    for place, at in enumerate(order):
        assert (scores[at] is None) == (scores[place] is None), (
            "unscored ones stay, scored ones do not intrude"
        )
        if scores[at] is None:
            assert at == place
    known = [at for at in order if scores[at] is not None]
    assert known == sorted(known, key=lambda at: (-scores[at], at))


def test_the_embedded_one_needs_no_model_and_tells_how_it_decided(tmp_path):
    llm = ScriptedLLM(missing="no model here")
    result = run(tmp_path, llm, candidates=5)
    assert (result.status, result.error) == ("ok", None)
    told = span(result)
    assert told.kind == "RERANKER"
    order = told.output.order
    assert [one.id for one in order] == [hit.passage.id for hit in result.hits[:5]]
    assert sorted(one.was for one in order) == [1, 2, 3, 4, 5]
    for one in order:
        assert one.id == found(result)[one.was - 1]
        assert one.score == pytest.approx(sum(one.parts[name][1] for name in ("bm25", "cosine", "maxsim")))
    assert [score for _, score in told.hits] == [one.score for one in order]
    assert [hit.passage.id for hit in result.hits[5:]] == found(result)[5:]
    assert sum(told.output.words.values()) == pytest.approx(1)
    assert [hit.score for hit in result.hits] == [1 / rank for rank in range(1, len(result.hits) + 1)]
    every = run(tmp_path, candidates=100)
    assert [hit.score for hit in every.hits] == [one.score for one in span(every).output.order]
    assert len(every.hits) == len(found(every))


def test_token_vectors_made_beforehand_are_taken_if_the_same_model_made_them(tmp_path, monkeypatch):
    engine = FakeEngine(tmp_path)
    tokens = engine.tokens

    class Index:
        name, compressed = tokens.name, ""

        def stored(self, rows):
            texts = [f"{p.title} {p.text}" for p in engine.fakes["tiny"].passages(rows)]
            return [rounded(one.vectors) for one in HashTokens().embed_passages(texts)]

        def embed_query(self, text):
            return tokens.embed_query(text)

    made = run(tmp_path, engine=_with(engine, monkeypatch, Unavailable("not made")))
    assert span(made).attributes["read now"] == len(made.hits)
    assert "not made" in span(made).attributes["token vectors"]
    tokens.read.clear()
    stored = run(tmp_path, engine=_with(engine, monkeypatch, Index()))
    assert tokens.read == [ASKED]  # in a step of its own, which other routes share
    assert [one.parent for one in stored.spans if one.name == "embed tokens"] == [span(stored).id]
    assert "read now" not in span(stored).attributes
    assert stored.hits == made.hits
    Index.name = "another"
    other = run(tmp_path, engine=_with(engine, monkeypatch, Index()))
    assert "by another" in span(other).attributes["token vectors"]
    assert other.hits == made.hits


def test_fewer_are_candidates_where_token_vectors_have_to_be_made_now(tmp_path, monkeypatch):
    more = {f"more:{n}-{n}": f"a parcel of kind {n} is sent back in its box" for n in range(30)}
    engine = FakeEngine(tmp_path, texts={**TEXTS, **more})
    prepared = run(tmp_path, engine=engine, candidates=25)
    assert len(span(prepared).output.order) == 25
    assert "candidates" not in span(prepared).attributes
    now = run(
        tmp_path,
        engine=_with(engine, monkeypatch, Unavailable("run index tiny --with tokens")),
        candidates=25,
    )
    told = span(now)
    assert len(told.output.order) == READ_NOW == told.attributes["read now"]
    assert told.attributes["candidates"] == "10 of 25: token vectors have to be made now"
    assert "run index tiny --with tokens" in told.attributes["token vectors"]
    assert [hit.passage.id for hit in now.hits[READ_NOW:]] == found(now)[READ_NOW:]
    few = run(tmp_path, engine=engine, candidates=7)
    assert len(span(few).output.order) == 7
    assert "candidates" not in span(few).attributes


def _with(engine, monkeypatch, index):
    def enrichment(corpus, need):
        if need is not Need.TOKENS:
            raise Unavailable("no pieces")
        if isinstance(index, Exception):
            raise index
        return index

    monkeypatch.setattr(engine, "enrichment", enrichment)
    return engine


def test_a_passage_is_as_near_as_its_nearest_piece_where_pieces_were_made(tmp_path, monkeypatch):
    long = {
        f"long:{n}-{n}": f"{'Filler about nothing much at all. ' * 20}{TEXTS[id]}"
        for n, id in enumerate(TEXTS)
    }
    engine = FakeEngine(tmp_path, texts={**TEXTS, **long})
    told = span(run(tmp_path, engine=engine))
    assert told.attributes["cosine"] == "of the nearest piece of each passage"
    embed = engine.fakes["tiny"].embedder.embed
    asked = embed([ASKED])[0]
    for one in told.output.order:
        passage = engine.fakes["tiny"].by_ids([one.id])[one.id]
        pieces = TextSplitter(SIZE).chunks(passage.text)
        nearest = max(float(v @ asked) for v in embed([f"{passage.title} {piece}" for piece in pieces]))
        assert one.parts["cosine"][0] == pytest.approx(nearest, abs=2e-6)
    without = span(run(tmp_path, engine=_with(engine, monkeypatch, Unavailable("not made"))))
    assert "of whole passages: no pieces" in without.attributes["cosine"]


def test_the_models_grades_order_the_candidates(tmp_path):
    def grade(request):
        return "0.9" if "photos of all six" in request.messages[-1].content else "0.2"

    llm = ScriptedLLM({"grade": grade})
    result = run(tmp_path, llm, candidates=5, reranker="llm")
    before = found(result)[:5]
    first = [id for id in before if id.startswith("crushed")]
    assert first, "the oracle needs it among the candidates"
    assert [hit.passage.id for hit in result.hits[:5]] == first + [id for id in before if id not in first]
    assert len(llm.requests) == 5
    assert {one.state for one in span(result).output.order} == {"scored"}
    assert span(result).hits[0][1] == pytest.approx(0.9)


class Hesitant(ScriptedLLM):
    """Gives no Yes and no No on passages about customs."""

    def complete(self, request, *, timeout, cancel, written=None):
        if "Customs" in request.messages[-1].content.split("Question:")[0]:
            top = (("Perhaps", -0.1),)
            return Completion("Perhaps", "m", "stop", 1.0, 10, 1, 0, (TokenLogprob("Perhaps", -0.1, top),))
        return super().complete(request, timeout=timeout, cancel=cancel)


def test_what_cannot_be_graded_keeps_its_place_and_is_marked(tmp_path):
    def grade(request):
        asked = request.messages[-1].content
        if "Express shipping" in asked:
            raise ModelFailed("the endpoint answered HTML")
        if "double boxed" in asked:
            raise ModelTimedOut("no answer within 1 s")
        return str(0.1 + 0.01 * (len(asked) % 80))

    result = run(tmp_path, Hesitant({"grade": grade}), candidates=100, reranker="llm")
    assert result.status == "ok"
    states = {one.id.split(":")[0]: one for one in span(result).output.order}
    assert states["customs"].state == "not scored"
    assert "neither Yes nor No" in states["customs"].why
    assert {states[id].state for id in ("express", "fragile")} == {"error"}
    assert states["express"].score is None
    before = found(result)
    after = [hit.passage.id for hit in result.hits]
    for id in ("customs", "express", "fragile"):
        place = next(at for at, name in enumerate(before) if name.startswith(id))
        assert after[place] == before[place]
    graded = [one.score for one in span(result).output.order if one.score is not None]
    assert graded == sorted(graded, reverse=True)
    assert "3 of 7 passages have no score" in span(result).attributes["note"]
    assert [hit.score for hit in result.hits] == [1 / rank for rank in range(1, len(after) + 1)]


def test_half_of_the_calls_are_left_for_what_comes_after_the_models_grades(tmp_path):
    llm = ScriptedLLM({"grade": "0.5"})
    result = run(tmp_path, llm, candidates=100, reranker="llm", route_max_calls=6)
    assert result.status == "ok"
    assert [one.state for one in span(result).output.order] == ["scored"] * 3
    assert len(llm.requests) == 3
    assert [hit.passage.id for hit in result.hits] == found(result)
    assert span(result).attributes["candidates"].startswith("3 of 7")


def test_no_grade_at_all_is_a_failure_and_no_model_is_unavailable(tmp_path):
    broken = run(tmp_path, ScriptedLLM({"grade": ModelFailed("answered HTML")}), reranker="llm")
    assert broken.status == "failed"
    assert "none of 7 passages could be graded: answered HTML" in broken.error
    absent = run(tmp_path, ScriptedLLM(missing="run: fetch"), reranker="llm")
    assert (absent.status, absent.error) == ("unavailable", "run: fetch")


def test_crag_and_rerank_share_their_grades(tmp_path):
    llm = ScriptedLLM({"grade": "0.95"})
    engine = FakeEngine(tmp_path, llm=llm, web={"w:0-9": "the web"})
    request = Request(
        Query(ASKED),
        "tiny",
        ("crag", "rerank"),
        {"crag": {"evaluator": "llm"}, "rerank": {"reranker": "llm"}},
    )
    crag, rerank = engine.ask(request).results
    assert (crag.status, rerank.status) == ("ok", "ok")
    graded = [json.dumps([m.content for m in request.messages]) for request in llm.requests]
    assert len(graded) == len(set(graded)) == 7


def test_a_server_orders_by_its_scores(tmp_path):
    def answer(_, talk, sent):
        documents = json.loads(sent.split(b"\r\n\r\n", 1)[1])["documents"]
        scored = [{"index": at, "relevance_score": -len(text)} for at, text in enumerate(documents)]
        talk.sendall(http(json.dumps({"results": scored})))

    with loopback(answer) as server:
        result = run(
            tmp_path, setting=f"{server.url}/rerank", reranker_model="tiny", reranker_api_key="s3cr3t"
        )
    assert (result.status, result.error) == ("ok", None)
    order = [hit.passage for hit in result.hits]
    assert order == sorted(order, key=lambda p: len(f"{p.title} {p.text}"))
    assert "s3cr3t" not in repr(result)
    assert b"Bearer s3cr3t" in server.requests[0]
    assert json.loads(server.requests[0].split(b"\r\n\r\n", 1)[1])["model"] == "tiny"


def test_a_server_that_fails_fails_the_route_and_an_address_shows_no_secret(tmp_path, monkeypatch):
    monkeypatch.setattr(pace, "PAUSE_S", 0.01)
    with loopback(http("{}", status="500 Internal Server Error")) as server:
        result = run(tmp_path, setting=server.url)
    assert result.status == "failed"
    assert "status 500" in result.error
    assert span(result).error
    secret = run(tmp_path, setting="http://me:pa55word@127.0.0.1:1/rerank")
    assert secret.status == "failed"
    assert "pa55word" not in repr(secret)


def test_the_configured_one_may_be_the_model(tmp_path):
    llm = ScriptedLLM({"grade": "0.5"})
    assert run(tmp_path, llm, setting="llm").status == "ok"
    assert len(llm.requests) == 7
    assert run(tmp_path, llm, setting="llm", reranker="embedded").status == "ok"
    assert len(llm.requests) == 7


@pytest.mark.model
def test_a_cross_encoder_by_folder_is_loaded_and_used(tmp_path, tmp_path_factory):
    from transformers import BertForSequenceClassification

    from core.backends.rerankers.cross import CrossEncoderReranker
    from tests.tiny import bert, tokenizer

    folder = tmp_path_factory.mktemp("cross")
    bert(BertForSequenceClassification, num_labels=1).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    result = run(tmp_path, setting=str(folder))
    assert (result.status, result.error) == ("ok", None)
    passages = [hit.passage for hit in result.hits]
    expected = CrossEncoderReranker(str(folder)).rerank(ASKED, passages)
    assert expected == sorted(expected, reverse=True)
    assert [hit.score for hit in result.hits] == pytest.approx(expected, abs=1e-5)


@pytest.mark.model
def test_minilm_tokens_find_the_passage_that_says_it_in_other_words():
    from core.backends.late import token_embedder
    from core.domain.settings import Settings

    reranker = BlendReranker(token_embedder("all-MiniLM-L6-v2", settings=Settings()))
    passages = [Passage(id, id, "", text) for id, text in TEXTS.items()]
    zeros = np.zeros(len(passages))
    weighed = Candidates(passages, zeros, zeros, lambda asked: [float(len(word) > 4) for word in asked])
    for text, best in (
        ("When do I get my money back?", "returns:90-180"),
        ("How are breakable things packed?", "fragile:0-80"),
        ("Which paper do the border officials ask for?", "customs:0-80"),
    ):
        assert passages[int(reranker.blend(text, weighed).scores.argmax())].id == best
