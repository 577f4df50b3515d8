"""Conversation memory: what is remembered stays, stays apart, and is gone when it is forgotten."""

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.cache_file import EmbeddingCache
from core.domain import settings as settings_module
from core.domain.errors import BadInput
from core.domain.settings import Settings
from core.domain.types import Query, Remembered, Turn
from core.engine import engine as engine_module
from core.engine.request import Request, gather, keep
from core.steps.feedback import weigh
from core.store import Store, memory
from core.store.files import open_to_write
from core.store.postgres import Dsn
from tests.fakes import FakeEngine, HashEmbedder
from tests.postgres_server import rows_with

SECRET = "my-card-number-4929"


def said(*texts):
    return [Turn("assistant" if n % 2 else "user", text) for n, text in enumerate(texts)]


def texts(turns):
    return [turn.text for turn in turns]


# --- the store


def test_turns_come_back_in_order_with_where_they_are_from_and_a_run_is_remembered_once(store):
    assert store.recall("vase") == ()
    box, sorry = said("My box arrived crushed.", "Sorry \ud83d \x00.")
    assert store.remember("vase", [box], run="r1") == 1
    assert store.remember("vase", [box], run="r1") == 0
    assert store.remember("vase", [box, sorry], run="r1") == 1, "the answer came later"
    assert store.remember("vase", [box], run="r2") == 1, "asked again it is said again"
    turns = store.recall("vase")
    assert [(t.session, t.number, t.role, t.run, t.text) for t in turns] == [
        ("vase", 1, "user", "r1", box.text),
        ("vase", 2, "assistant", "r1", sorry.text),
        ("vase", 3, "user", "r2", box.text),
    ]
    assert Store(store.path).recall("vase") == turns
    with pytest.raises(BadInput, match="one question and one answer"):
        store.remember("vase", [Turn("user", "a"), Turn("user", "b")], run="r3")


def test_sessions_never_see_each_other_and_other_names_are_refused_everywhere(store):
    names = ["a", "A", "a.b", "a_b", "a-b", "\u00e4"]
    for name in names:
        store.remember(name, said(f"only {name}"))
    assert {name: texts(store.recall(name)) for name in names} == {name: [f"only {name}"] for name in names}
    store.forget("a")
    assert {row.session for row in store.sessions_remembered()} == set(names) - {"a"}
    remember = lambda name: store.remember(name, said("x"))  # noqa: E731
    for name in ("", " ", "a b", "a/b", "a\n", "x" * 81, "%", "'; DROP TABLE memory; --", "\ud83d", None, 7):
        for call in (remember, store.recall, store.forget):
            with pytest.raises(BadInput, match="1 to 80 letters"):
                call(name)


def test_sizes_are_bounded(store, monkeypatch):
    for wrong in ("", " \n", "x" * (memory.MAX_TEXT + 1)):
        with pytest.raises(BadInput, match="20,000"):
            store.remember("s", said(wrong))
    with pytest.raises(BadInput, match="role"):
        store.remember("s", [Turn("system", "x")])
    monkeypatch.setattr(memory, "MAX_TURNS", 3)
    store.remember("s", said("1", "2"))
    with pytest.raises(BadInput, match="at most 3"):
        store.remember("s", said("3", "4"))
    assert texts(store.recall("s")) == ["1", "2"], "all or none"
    store.remember("s", said("3"))


def test_a_number_is_never_given_twice(store):
    store.remember("s", said("one", "two", "three"))
    assert store.forget("s", [3]) == 1
    store.remember("s", said("four"))
    assert [(t.number, t.text) for t in store.recall("s")] == [(1, "one"), (2, "two"), (4, "four")]
    with pytest.raises(BadInput, match=r"no turn 3; it has: 1, 2, 4"):
        store.forget("s", [1, 3])
    assert len(store.recall("s")) == 3, "all or none"
    assert store.forget("s") == 3
    assert (store.recall("s"), store.sessions_remembered()) == ((), ())
    with pytest.raises(BadInput, match="session 's' has no remembered turns"):
        store.forget("s")


@pytest.mark.trust
@pytest.mark.parametrize("numbers", [None, [2]])
def test_what_is_forgotten_is_in_no_row_and_no_byte_of_the_file(store, numbers):
    store.remember("s", said("My box arrived crushed.", f"Noted: {SECRET}"), run="r1")
    store.remember("other", said("stays"))
    if isinstance(store.path, Dsn):
        assert rows_with(store.path, SECRET)
        store.forget("s", numbers)
        assert rows_with(store.path, SECRET) == []
    else:
        files = list(store.path.parent.glob("sessions.sqlite*"))
        assert any(SECRET.encode() in file.read_bytes() for file in files)
        store.forget("s", numbers)
        for file in store.path.parent.glob("sessions.sqlite*"):
            assert SECRET.encode() not in file.read_bytes(), file
        with closing(sqlite3.connect(store.path)) as connection:
            assert SECRET not in "\n".join(connection.iterdump())
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert store.count(SECRET) == 0
    assert texts(store.recall("other")) == ["stays"]


def test_threads_of_two_stores_lose_nothing(store):
    def work(which, name):
        for n in range(15):
            which.remember("one", said(f"{name}{n}"), run=f"{name}{n}")

    with closing(Store(store.path)) as other, ThreadPoolExecutor(4) as pool:
        list(pool.map(work, (store, store, other, other), "abcd"))
    turns = store.recall("one")
    assert [turn.number for turn in turns] == list(range(1, 61))
    for name in "abcd":
        assert [t.text for t in turns if t.text[0] == name] == [f"{name}{n}" for n in range(15)]


EVENTS = st.one_of(
    st.tuples(st.just("say"), st.sampled_from("ab"), st.text(min_size=1, max_size=5)),
    st.tuples(st.just("forget"), st.sampled_from("ab"), st.none() | st.integers(1, 6)),
)


@pytest.mark.slow
@given(st.lists(EVENTS, max_size=12))
def test_any_course_of_events_leaves_what_a_plain_model_says(tmp_path_factory, events):
    """Against lists in memory, through the same connection-level functions that the store calls."""
    model, last = {"a": {}, "b": {}}, {"a": 0, "b": 0}
    with closing(open_to_write(tmp_path_factory.mktemp("m") / "m.sqlite")) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for kind, name, value in events:
            if kind == "say":
                memory.add(connection, name, [Turn("user", value)], "")
                last[name] += 1
                model[name][last[name]] = value
                continue
            numbers = None if value is None else [value]
            if not model[name] or (value is not None and value not in model[name]):
                with pytest.raises(BadInput):
                    memory.remove(connection, name, numbers)
                continue
            memory.remove(connection, name, numbers)
            for number in numbers or list(model[name]):
                del model[name][number]
            if not model[name]:
                last[name] = 0
        for name in "ab":
            assert {t.number: t.text for t in memory.read(connection, name)} == model[name]


# --- the steps


@given(st.lists(st.floats(-1, 1), max_size=30), st.floats(0.5, 1), st.floats(0, 1))
def test_weights_follow_their_definition(similarities, decay, relevance):
    weighed = weigh(similarities, decay, relevance)
    assert [age for age, _, _ in weighed] == list(reversed(range(len(similarities))))
    factor = 1.0
    for similarity, (_, recency, score) in zip(reversed(similarities), reversed(weighed), strict=True):
        assert recency == pytest.approx(factor)
        assert score == pytest.approx(
            relevance * (similarity if similarity > 0 else 0) + (1 - relevance) * factor
        )
        assert 0 <= score <= 1 + 1e-9
        factor *= decay


def test_what_is_remembered_and_what_is_given_are_one_conversation():
    stored = [Remembered("s", n, "user", text) for n, text in enumerate(("old", "Sorry.", "My box"), 3)]
    given_now = (Turn("user", "My box"), Turn("assistant", "Sorry."))
    assert [(t.session, t.number, t.role, t.text) for t in gather(stored, given_now)] == [
        ("s", 3, "user", "old"),
        ("s", 4, "user", "Sorry."),  # said by the other one
        ("", 1, "user", "My box"),
        ("", 2, "assistant", "Sorry."),
    ]
    assert gather((), ()) == ()


class CountingEmbedder(HashEmbedder):
    def embed(self, texts):
        self.calls += texts
        return super().embed(texts)


def test_a_kept_vector_is_made_once_and_the_least_used_goes():
    embedder, kept = CountingEmbedder(), EmbeddingCache(limit=2)
    first = kept.embed(embedder, ["a", "b", "a"])
    assert embedder.calls == ["a", "b"]
    assert (first == HashEmbedder().embed(["a", "b", "a"])).all()
    kept.embed(embedder, ["a", "c"])
    kept.embed(embedder, ["a"])
    assert embedder.calls == ["a", "b", "c"]
    kept.embed(embedder, ["b"])
    assert embedder.calls == ["a", "b", "c", "b"]
    assert kept.embed(embedder, []).shape == (0, 64)
    assert kept.embed(embedder, ["x", "y", "z"]).shape == (3, 64)


# --- the route, through the engine


def ask(engine, text, session="", history=(), routes=("memory", "hybrid_rrf"), answers="none", **parameters):
    query = Query(text, tuple(history))
    request = Request(
        query, "tiny", routes, {"memory": parameters} if parameters else {}, answers, session=session
    )
    job = engine.start(request)
    return job.wait(20), job


def result_of(run, route="memory"):
    (result,) = [result for result in run.results if result.route == route]
    assert (result.status, result.error) == ("ok", None)
    return result


def span_of(result, name):
    return next((span for span in result.spans if span.name == name), None)


def found(result):
    return [(hit.passage.id, hit.score) for hit in result.hits]


@pytest.fixture
def engine(tmp_path, store):
    return FakeEngine(tmp_path, store=store)


CRUSHED = said("My box arrived crushed", "I am sorry.")


@pytest.mark.parametrize("given_as", ["history", "session"])
def test_a_follow_up_finds_what_it_is_about(engine, store, given_as):
    if given_as == "session":
        store.remember("vase", CRUSHED)
        run, _ = ask(engine, "What do I do now?", "vase")
    else:
        run, _ = ask(engine, "What do I do now?", history=CRUSHED)
    result, plain = result_of(run), result_of(run, "hybrid_rrf")
    assert result.hits[0].passage.id == "crushed:0-80"
    assert plain.hits[0].passage.id != "crushed:0-80"
    assert all(not hit.passage.id.startswith("memory/") for hit in result.hits)
    span = span_of(result, "search the conversation")
    name = "vase" if given_as == "session" else ""
    assert {row.id for row in span.output.recalled} == {f"memory/{name}/1", f"memory/{name}/2"}
    for row in span.output.recalled:
        assert row.score == pytest.approx(0.5 * max(0, row.similarity) + 0.5 * 0.8**row.age)
        assert row.recency == pytest.approx(0.8**row.age)
    assert span.hits == tuple((row.id, row.score) for row in span.output.recalled)
    passage = run.passages[f"memory/{name}/1"]
    assert passage.text == "My box arrived crushed"
    assert passage.title == f"conversation{' vase' if name else ''}, turn 1 (user)"
    text = span_of(result, "put recalled turns before the question").output.texts[0]
    assert text == "My box arrived crushed\nI am sorry.\nWhat do I do now?"


def test_expansion_is_rocchio_and_fusion_over_an_independent_oracle(engine):
    run, _ = ask(engine, "What do I do now?", history=CRUSHED, memory_weight=2.0, relevance=1.0, decay=0.5)
    corpus = engine.fakes["tiny"]
    question, *turns = HashEmbedder().embed(["What do I do now?", *texts(CRUSHED)])
    vector = question + 2 * sum(max(0.0, float(turn @ question)) * turn for turn in turns)
    dense = corpus.search_dense(vector / np.linalg.norm(vector), 100)
    # the other turn has no word of the question
    sparse = corpus.search_sparse("I am sorry. What do I do now?", 100)
    expected = {}
    alone = corpus.search_sparse("What do I do now?", 100), corpus.search_dense(question, 100)
    for weight, ranking in ((1, dense), (1, sparse), *((0.25, one) for one in alone)):
        for rank, hit in enumerate(ranking, 1):
            expected[hit.passage.id] = expected.get(hit.passage.id, 0) + weight / (60 + rank)
    order = sorted(expected, key=lambda id: (-expected[id], id))
    assert found(result_of(run)) == [(id, pytest.approx(expected[id])) for id in order]
    run, _ = ask(engine, "What do I do now?", history=CRUSHED, expand=False)
    ids = [hit.passage.id for hit in result_of(run).hits]
    assert {"memory//1", "memory//2"} < set(ids), "turns are ranked among the passages"
    corpus_only = [id for id in ids if not id.startswith("memory/")]
    assert corpus_only == [hit.passage.id for hit in result_of(run, "hybrid_rrf").hits]
    assert engine.store.flush()
    assert engine.store.load(run.id) == run


@pytest.mark.parametrize(
    ("text", "history", "parameters", "note"),
    [
        ("What do I do now?", (), {}, "no remembered turns"),
        ("Idempotency keys?", CRUSHED, {"relevance": 1.0}, "none of 2 turns"),
        ("What do I do now?", CRUSHED, {"memory_weight": 0}, ""),
    ],
    ids=["nothing remembered", "turns that count nothing", "weight zero"],
)
def test_without_turns_that_count_it_is_the_plain_hybrid(engine, text, history, parameters, note):
    run, _ = ask(engine, text, history=history, **parameters)
    assert found(result_of(run)) == found(result_of(run, "hybrid_rrf"))
    span = span_of(result_of(run), "search the conversation")
    assert not note or (span.hits, note in span.attributes["note"]) == ((), True)
    assert engine.store.sessions_remembered() == (), "without a session nothing is remembered"


@pytest.mark.parametrize(("enough", "used"), [(0.2, False), (1.01, True)])
def test_a_question_that_stands_alone_is_left_alone(engine, enough, used):
    turns = said("Customs may hold a parcel", "Yes.")
    run, _ = ask(engine, "Express shipping to Belgium", history=turns, enough=enough)
    same = found(result_of(run)) == found(result_of(run, "hybrid_rrf"))
    assert same is not used
    span = span_of(result_of(run), "does the question stand alone")
    assert (span.output.decision == "stands alone") is not used
    assert ("is not used" in span.output.why) is not used
    assert 0.2 < span.output.score < 1


# --- what a run leaves


def test_a_run_remembers_its_question_and_first_answer_once(engine, store):
    run, job = ask(engine, "My box arrived crushed", "vase", answers="all")
    assert job.warnings == []
    assert [(t.number, t.role, t.text, t.run) for t in store.recall("vase")] == [
        (1, "user", "My box arrived crushed", run.id),
        (2, "assistant", "an answer of five words", run.id),
    ]
    assert result_of(run).spans[0].name
    assert span_of(result_of(run), "search the conversation").hits == (), "its own question is not in it"
    keep(store, "vase", run)
    assert len(store.recall("vase")) == 2
    again, _ = ask(engine, "What do I do now?", "vase")
    assert span_of(result_of(again), "search the conversation").attributes["turns"] == 2
    assert again.settings["session"] == "vase"
    assert texts(store.recall("vase"))[2:] == ["What do I do now?"]
    assert store.sessions_remembered()[0].turns == 3


@pytest.mark.trust
def test_two_sessions_at_once_stay_apart(engine, store):
    def talk(name):
        for n in range(5):
            ask(engine, f"{name} asks number {n}", name, routes=("memory",))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(talk, ("ann", "bob")))
    for name in ("ann", "bob"):
        assert texts(store.recall(name)) == [f"{name} asks number {n}" for n in range(5)]
    run, _ = ask(engine, "and what did the other one ask?", "ann")
    seen = {id for span in result_of(run).spans for id, _ in span.hits or ()}
    assert all(id.startswith("memory/ann/") for id in seen if id.startswith("memory/"))
    assert "bob asks" not in repr(run)


def test_a_later_answer_is_remembered_while_nothing_was_said_after_it(engine, store):
    first, _ = ask(engine, "My box arrived crushed", "vase")
    engine.add_answer(first, "memory")
    assert [t.role for t in store.recall("vase")] == ["user", "assistant"]
    second, _ = ask(engine, "What do I do now?", "vase")
    ask(engine, "And then?", "vase")
    engine.add_answer(second, "memory")
    assert [t.text for t in store.recall("vase") if t.role == "assistant"] == ["an answer of five words"]
    store.forget("vase")
    engine.add_answer(first, "hybrid_rrf")
    assert store.recall("vase") == (), "what was forgotten does not come back with an answer"


def test_a_session_that_cannot_be_used_is_told(engine, store, monkeypatch, tmp_path):
    with pytest.raises(BadInput, match="1 to 80 letters"):
        ask(engine, "My box", "not/allowed")
    monkeypatch.setattr(memory, "MAX_TURNS", 0)
    run, job = ask(engine, "My box", "full")
    assert run.status == "done"
    assert any("not added to the session: session 'full'" in warning for warning in job.warnings)
    _, job = ask(FakeEngine(tmp_path), "My box", "vase")
    assert any("session vase is not available" in warning for warning in job.warnings)


def test_a_stopped_run_is_not_remembered(engine, store):
    engine.fake_llm.delay = 30
    job = engine.start(Request(Query("My box"), "tiny", ("hyde",), session="vase"))
    job.cancel()
    assert job.wait(20).status == "cancelled"
    assert store.recall("vase") == ()


# --- the command line


@pytest.fixture
def call(engine, tmp_path, monkeypatch, call):
    monkeypatch.setattr(engine_module, "shared_engine", lambda: engine)
    monkeypatch.setattr(settings_module, "current", lambda: Settings(home=tmp_path))
    return call


def test_the_command_lists_and_forgets(call, store):
    asking = ("--corpus", "tiny", "--routes", "memory", "--session", "vase", "--json")
    assert call("ask", "My box arrived crushed", *asking)[0] == 0
    code, out, err = call("ask", "What do I do now?", *asking)
    assert (code, err) == (0, "")
    run = json.loads(out)
    assert (run["settings"]["session"], run["results"][0]["hits"][0]["id"]) == ("vase", "crushed:0-80")
    (session,) = json.loads(call("memory", "--json")[1])["sessions"]
    assert (session["session"], session["turns"]) == ("vase", 2)
    listed = json.loads(call("memory", "--session", "vase", "--json")[1])["turns"]
    assert [(t["number"], t["text"]) for t in listed] == [
        (1, "My box arrived crushed"),
        (2, "What do I do now?"),
    ]
    assert "My box arrived crushed" in call("memory", "--session", "vase")[1]
    code, out, _ = call("memory", "--session", "vase", "--forget", "--turn", 1, "--json")
    assert (code, json.loads(out)) == (0, {"session": "vase", "forgotten": 1})
    assert "Deleted 1 turns" in call("memory", "--session", "vase", "--forget")[1]
    assert call("memory")[1].startswith("No conversation is remembered")
    store.remember("s", [Turn("user", "red \x1b[31m box \x07 \u202egnp.exe")])
    for extra in ([], ["--json"]):
        assert not any(c in call("memory", "--session", "s", *extra)[1] for c in "\x1b\x07\u202e")
    assert call("memory", "--session", "s", "--forget")[0] == 0
    for wrong in (["--forget"], ["--session", "s", "--turn", "1"], ["--session", "s", "--forget"]):
        assert call("memory", *wrong)[:2] == (2, "")
