"""Late interaction over stored token vectors: against loops over tokens, and how the vectors are kept."""

import json
import threading
from collections import deque
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.backends.late import MatchMatrix, TokenVectors
from core.cli import main
from core.corpus.build import Stages
from core.corpus.embeddings import Checkpoint, Vectors
from core.corpus.enrichments import store, tokens
from core.corpus.enrichments.recipe import Tools
from core.corpus.enrichments.tokens import STEP, TokenIndex, Tokens
from core.domain import settings as settings_module
from core.domain.errors import BadInput, Cancelled, ModelFailed, Unavailable
from core.domain.needs import Need
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine import engine as engine_module
from core.engine.engine import Engine
from core.engine.request import Request
from core.steps.late_interaction import COLUMNS, DRAWN_HITS, MATCHED_HITS, ROWS, matched
from tests.fakes import TEXTS, FakeEngine, HashTokens, MemoryCorpus, words
from tests.tiny import colbert


class RandomTokens:
    """Unit vectors by the dice; a text is the number of its tokens."""

    name = "dice"

    def __init__(self, seed, dim):
        self.draw, self.dim = np.random.default_rng(seed), dim
        self.given: list[np.ndarray] = []

    def embed_query(self, text):
        count = int(text)
        rows = self.draw.normal(size=(count, self.dim)) * self.draw.choice([1e-3, 1, 30], size=self.dim)
        rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return TokenVectors(tuple(f"t{at}" for at in range(count)), rows.reshape(count, self.dim))

    def embed_passages(self, texts):
        found = [self.embed_query(text.split()[-1]) for text in texts]  # after the title
        self.given += [one.vectors for one in found]
        return found


def tools(folder, cancel=None):
    vectors = Vectors("none", "none", lambda: None, (), Checkpoint(folder, "none"))
    stages = Stages(lambda *_: None, cancel or threading.Event())
    return Tools(Settings(late_model="fake"), stages, None, lambda: vectors)


def made(folder, embedder, corpus):
    folder.mkdir(parents=True)
    count = Tokens(lambda _: embedder).make(corpus, folder, tools(folder))
    index = TokenIndex(folder, embedder)
    assert count == sum(len(one) for one in index.of(range(corpus.size)))
    return index


def by_loop(query, passage):
    total = 0.0
    for asked in query.tolist():
        cosines = [sum(a * b for a, b in zip(asked, one, strict=True)) for one in passage.tolist()]
        total += max(cosines, default=0.0)
    return total


@given(
    seed=st.integers(0, 2**32 - 1),
    dim=st.integers(1, 24),
    asked=st.integers(1, 8),
    sizes=st.lists(st.integers(0, 9), max_size=12),
    data=st.data(),
)
def test_scores_are_the_loops_but_for_rounding(tmp_path_factory, seed, dim, asked, sizes, data):
    embedder = RandomTokens(seed, dim)
    corpus = MemoryCorpus({f"p{at:03}:0-9": str(size) for at, size in enumerate(sizes)})
    index = made(tmp_path_factory.mktemp("tokens") / "tokens", embedder, corpus)
    query = embedder.embed_query(str(asked)).vectors
    expected = np.array([by_loop(query, passage) for passage in embedder.given])
    bound = asked * (2**-11 + dim**0.5 * 2**-25 + 1e-6)  # the documented one, and float32 sums
    assert np.abs(index.scores(query) - expected).max(initial=0.0) <= bound
    looks = []
    index.scores(query, check=lambda: looks.append(1))
    assert len(looks) == -(-len(sizes) // tokens.BLOCK)
    with pytest.raises(BadInput, match=f"{dim + 1} dimensions; dice has {dim}"):
        index.scores(np.ones((1, dim + 1), np.float32))
    rows = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=9)) if sizes else []
    np.testing.assert_allclose(index.scores(query, rows), index.scores(query)[rows], atol=1e-5)
    assert [index.tokens(row) for row in range(len(sizes))] == [
        tuple(f"t{at}" for at in range(size)) for size in sizes
    ]


# Making them.

LATE = HashTokens.name


def many(count=3 * STEP, more=""):
    return MemoryCorpus({f"p{at:04}:0-9": f"passage {at} of {at % 7} things{more}" for at in range(count)})


def build(tmp_path, corpus, monkeypatch, embedder=None, model=LATE, **options):
    """Through the store, as the command line does."""
    embedder = embedder or HashTokens()
    monkeypatch.setitem(store.RECIPES, "tokens", Tokens(lambda _: embedder))
    here = Settings(home=tmp_path, late_model=model)
    return store.build("tokens", corpus, settings=here, embedder=corpus.embedder, **options), embedder


def test_the_record_says_by_which_model_and_how_large(tmp_path, monkeypatch):
    corpus = MemoryCorpus(TEXTS)
    record, embedder = build(tmp_path, corpus, monkeypatch)
    tokens = sum(len(words(f"{p.title} {p.text}")) for p in corpus.all)
    assert (record.model, record.entries, record.llm) == (LATE, tokens, None)
    assert record.bytes > 2 * embedder.dim * tokens
    home = tmp_path / "enrichments" / "tiny" / "tokens"
    assert np.load(home / "vectors.npy").dtype == np.float16
    again, embedder = build(tmp_path, corpus, monkeypatch)
    assert again == record
    assert embedder.read == []


def test_another_model_is_refused_with_the_way_to_get_it(tmp_path, monkeypatch):
    corpus = MemoryCorpus(TEXTS)
    build(tmp_path, corpus, monkeypatch)
    told = "by hash tokens, and somebody/colbert is set: run python -m core index tiny --with tokens"
    with pytest.raises(Unavailable, match=told):
        store.load("tokens", corpus, Settings(home=tmp_path, late_model="somebody/colbert"))
    record, embedder = build(tmp_path, corpus, monkeypatch, model="somebody/colbert")
    assert record.model == "somebody/colbert"
    assert len(embedder.read) == corpus.size  # nothing of the other model's was taken over
    folder = tmp_path / "enrichments" / "tiny" / "tokens"
    with pytest.raises(Unavailable, match=r"are by hash tokens \(16 dimensions\), not by dice \(4\)"):
        TokenIndex(folder, RandomTokens(0, 4))


def test_a_stopped_build_goes_on_where_it_was(tmp_path, monkeypatch):
    corpus, stop = many(), threading.Event()

    class Stopping(HashTokens):
        def embed_passages(self, texts):
            if len(self.read) == STEP:
                stop.set()
            return super().embed_passages(texts)

    with pytest.raises(Cancelled):
        build(tmp_path, corpus, monkeypatch, Stopping(), cancel=stop)
    unfinished = tmp_path / "enrichments" / "tiny" / ".tokens-unfinished"
    assert len(list(unfinished.iterdir())) == 2
    assert store.describe("tokens", "tiny", Settings(home=tmp_path)) is None
    damaged = sorted(unfinished.iterdir())[0]
    damaged.write_bytes(damaged.read_bytes()[:-9] + b"123456789")
    _, embedder = build(tmp_path, corpus, monkeypatch)
    assert len(embedder.read) == 2 * STEP  # the damaged step and the one never made
    assert not unfinished.exists()
    home = tmp_path / "enrichments" / "tiny" / "tokens"
    at_once = tmp_path / "at once"
    made(at_once, HashTokens(), corpus)
    for name in ("vectors.npy", "ids.npy", "starts.npy", "tokens.json"):
        assert (home / name).read_bytes() == (at_once / name).read_bytes(), name


def test_after_a_change_only_what_changed_is_embedded(tmp_path, monkeypatch):
    build(tmp_path, MemoryCorpus(TEXTS), monkeypatch)
    changed = MemoryCorpus({**TEXTS, "aaa:0-9": "a new first passage", "keys:0-80": "Keys are kept."})
    _, embedder = build(tmp_path, changed, monkeypatch)
    assert sorted(embedder.read) == ["Aaa:0-9 a new first passage", "Keys:0-80 Keys are kept."]
    index = store.load("tokens", changed, Settings(home=tmp_path, late_model=LATE))
    for row, passage in enumerate(changed.all):
        expected = HashTokens().embed_query(f"{passage.title} {passage.text}")
        assert index.tokens(row) == expected.tokens
        np.testing.assert_allclose(index.of([row])[0], expected.vectors, atol=2**-11)


def test_vectors_that_are_no_numbers_are_a_failure(tmp_path, monkeypatch):
    class Broken(HashTokens):
        def embed_passages(self, texts):
            return [TokenVectors(("a",), np.full((1, self.dim), np.nan, np.float32)) for _ in texts]

    with pytest.raises(ModelFailed, match="hash tokens gave no usable token vectors"):
        build(tmp_path, MemoryCorpus(TEXTS), monkeypatch, Broken())
    assert store.describe("tokens", "tiny", Settings(home=tmp_path)) is None


# The route.


def ask(tmp_path, question="How do I send a fragile item back?", texts=TEXTS, **parameters):
    engine = FakeEngine(tmp_path, texts=texts)
    return engine.ask(
        Request(Query(question), "tiny", ("late_interaction",), {"late_interaction": parameters})
    ).results[0]


def expected_scores(question, texts):
    """By loops, from nothing that the route uses but the embedder."""
    read, corpus = HashTokens().embed_query, MemoryCorpus(texts)
    asked = read(question).vectors
    return {p.id: by_loop(asked, read(f"{p.title} {p.text}").vectors) for p in corpus.all}


@pytest.mark.parametrize("candidates", [0, 100])
def test_hits_are_in_the_order_of_the_loops_and_equal_ones_in_that_of_ids(tmp_path, candidates):
    question = "How do I send a fragile item back?"
    result = ask(tmp_path, question, candidates=candidates)
    scores = expected_scores(question, TEXTS)
    assert [hit.passage.id for hit in result.hits] == sorted(scores, key=lambda id: (-scores[id], id))
    for hit in result.hits:
        assert hit.score == pytest.approx(scores[hit.passage.id], abs=8 * 2**-10)
    span = result.spans[-1]
    assert (span.output.scored if candidates else span.attributes["scored"]) == len(TEXTS)
    assert (span.output.reranker if candidates else span.output.model) == "hash tokens"
    corpus = MemoryCorpus({f"{name}:0-9": "the same words" for name in ("c", "a", "b")})
    for passage in corpus.all:
        object.__setattr__(passage, "title", "")
    engine = FakeEngine(tmp_path / "equal")
    engine.fakes["tiny"] = corpus
    parameters = {"late_interaction": {"candidates": candidates}}
    (result,) = engine.ask(Request(Query("same"), "tiny", ("late_interaction",), parameters)).results
    assert [hit.passage.id for hit in result.hits] == ["a:0-9", "b:0-9", "c:0-9"]
    nothing = ask(tmp_path / "none", "?!", candidates=candidates)
    assert (nothing.status, nothing.hits) == ("ok", ())
    assert "no token" in nothing.spans[-1].attributes["note"]


def test_few_candidates_are_the_first_of_each_list_and_the_searches_stay_those_of_others(tmp_path):
    engine = FakeEngine(tmp_path)
    parameters = {"late_interaction": {"candidates": 1}}
    run = engine.ask(
        Request(Query("crushed box photos"), "tiny", ("hybrid_rrf", "late_interaction"), parameters)
    )
    result = next(r for r in run.results if r.route == "late_interaction")
    found = [span for span in result.spans if span.hits is not None]
    assert [len(span.hits) for span in found[:2]] == [1, 7]
    assert {hit.passage.id for hit in result.hits} == {span.hits[0][0] for span in found[:2]}
    assert sum(span.shared_with is not None for r in run.results for span in r.spans) == 3
    assert [link.span for link in result.spans[-1].links if link.arg.startswith("lists")] == [2, 4]


def test_the_span_tells_how_the_first_hits_matched(tmp_path):
    result = ask(tmp_path)
    match = result.spans[-1].output.tokens
    assert match.query == ("how", "do", "i", "send", "a", "fragile", "item", "back")
    assert [hit.id for hit in match.hits] == [hit.passage.id for hit in result.hits[:MATCHED_HITS]]
    for number, (kept, hit) in enumerate(zip(match.hits, result.hits, strict=False)):
        assert sum(cosine for _, cosine in kept.best) == pytest.approx(hit.score, abs=1e-3)
        assert bool(kept.cosines) is (number < DRAWN_HITS)
    passage = next(kept for kept in match.hits if kept.id == "returns:0-90")
    best = dict(zip(match.query, passage.best, strict=True))
    assert best["send"][0] == "send"
    assert best["send"][1] == pytest.approx(1, abs=1e-3)


@given(st.integers(1, 80), st.integers(0, 400))
@settings(max_examples=20, deadline=None)
def test_a_kept_matrix_is_bounded_and_holds_each_best(rows, columns):
    cosines = np.random.default_rng(rows * 1000 + columns).uniform(-1, 1, (rows, columns)).astype(np.float32)
    names = tuple(f"p{at}" for at in range(columns))
    kept = matched("p", MatchMatrix(tuple(f"q{at}" for at in range(rows)), names, cosines), whole=True)
    assert len(kept.cosines) == min(rows, ROWS)
    assert all(len(row) == min(columns, COLUMNS) == len(kept.passage) for row in kept.cosines)
    assert kept.tokens == columns
    assert len(kept.best) == (rows if columns else 0)
    for row, (token, cosine) in enumerate(kept.best):
        assert cosine == pytest.approx(cosines[row].max(), abs=1e-4)
        assert cosines[row, names.index(token)] == cosines[row].max()
    assert len(json.dumps(asdict(kept))) < 80_000


# A real model, through the command line.


@pytest.mark.model
def test_a_colbert_model_is_used_by_name_from_the_command_line_on(tmp_path, monkeypatch, capsys):
    folder, docs = tmp_path / "colbert", tmp_path / "docs"
    for made_here in (folder, docs):
        made_here.mkdir()
    colbert(folder)
    for name, text in {"a": "a key is stored for hours.", "b": "send it back within days.", "c": "."}.items():
        (docs / f"{name}.md").write_text(text)
    now = Settings(home=tmp_path / "home", late_model=str(folder))
    engine = Engine(now)
    monkeypatch.setattr(settings_module, "current", lambda: now)
    monkeypatch.setattr(engine_module, "shared_engine", lambda: engine)
    assert main(["index", str(docs), "--name", "mine", "--with", "tokens", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["enrichments"][0]
    assert record["name"] == "tokens"
    assert record["model"].startswith(f"{folder}@")
    asked = ["ask", "within hours", "--corpus", "mine", "--routes", "late_interaction", "--json"]
    for parameter in (["--parameter", "late_interaction.candidates=0"], []):
        assert main([*asked, *parameter]) == 0
        (result,) = json.loads(capsys.readouterr().out)["results"]
        span = deque(result["spans"], 1).pop()
        assert (span["output"].get("model") or span["output"]["reranker"]) == str(folder)
        query = span["output"]["tokens"]["query"]
        assert query[:5] == ["[CLS]", "[unused0]", "within", "hours", "[SEP]"]
        assert len(query) == 16
        index = engine.enrichment(engine.corpus("mine"), Need.TOKENS)
        vectors = index.embed_query("within hours").vectors
        scores = {
            p.id: by_loop(vectors, index.of([row])[0]) for row, p, _ in engine.corpus("mine").everything()
        }
        assert len(result["hits"]) == 3
        for hit in result["hits"]:
            assert hit["score"] == pytest.approx(scores[hit["id"]], abs=1e-4)
    other = Engine(Settings(home=tmp_path / "home"))
    with pytest.raises(Unavailable, match="all-MiniLM-L6-v2 is set: run python -m core index mine"):
        other.enrichment(engine.corpus("mine"), Need.TOKENS)
