"""The engine: sharing, honest time, limits, cancel, bad input."""

import threading
import time
from dataclasses import replace

import pytest

from core.domain.errors import BadInput, ModelFailed
from core.domain.types import Query, Turn
from core.engine.request import MAX_QUESTION, Request, clean
from core.store import Store
from tests.fakes import FakeEngine, ScriptedLLM

QUESTION = Query("How do I send a fragile item back?")


def by_route(run):
    return {result.route: result for result in run.results}


def test_equal_steps_are_done_once_and_charged_to_every_route(tmp_path):
    engine = FakeEngine(tmp_path)
    run = engine.ask(Request(QUESTION, "tiny", ("bm25", "dense", "hybrid_rrf")))
    assert [r.status for r in run.results] == ["ok"] * 3
    corpus = engine.fakes["tiny"]
    assert corpus.searches == [QUESTION.text]
    assert corpus.embedder.calls == [QUESTION.text]
    results = by_route(run)
    own = next(s for s in results["bm25"].spans if s.kind == "RETRIEVER")
    shared = next(s for s in results["hybrid_rrf"].spans if s.name == own.name)
    assert shared.shared_with == f"bm25#{own.id}"
    assert shared.ms == pytest.approx(own.ms, abs=1e-6)
    assert shared.hits == own.hits
    assert results["hybrid_rrf"].ms >= own.ms
    fuse = next(span for span in results["hybrid_rrf"].spans if span.name.startswith("fuse"))
    names = {span.id: span.name for span in results["hybrid_rrf"].spans}
    assert [names[link.span] for link in fuse.links] == ["search BM25", "search vectors"]
    corpus.searches.clear()
    lone = engine.ask(Request(QUESTION, "tiny", ("bm25", "hybrid_rrf"), timing="isolated"))
    assert len(corpus.searches) == 2
    assert not any(span.shared_with for result in lone.results for span in result.spans)


def test_a_routes_time_is_the_same_whoever_did_the_model_call(tmp_path):
    llm = ScriptedLLM({"variants/2": "one way to ask\nanother way to ask\na third way to ask"}, delay=0.05)
    run = FakeEngine(tmp_path, llm=llm).ask(
        Request(QUESTION, "tiny", ("rag_fusion", "hyde", "rewrite"), {"rag_fusion": {"k": 10}})
    )
    again = FakeEngine(tmp_path, llm=llm).ask(Request(QUESTION, "tiny", ("rag_fusion",), timing="isolated"))
    assert by_route(run)["rag_fusion"].ms == pytest.approx(by_route(again)["rag_fusion"].ms, rel=0.5)
    assert run.wall_ms >= max(result.wall_ms for result in run.results)


@pytest.mark.trust
def test_a_failing_route_keeps_its_spans_and_the_others_finish(tmp_path):
    llm = ScriptedLLM({"hyde/2": ModelFailed("the endpoint answered HTML"), "grade": ModelFailed("no")})
    asked = ("hyde", "bm25", "rag_fusion", "crag")
    request = Request(QUESTION, "tiny", asked, {"crag": {"evaluator": "llm"}})
    run = FakeEngine(tmp_path, llm=llm, web={}).ask(request)
    results = by_route(run)
    assert results["hyde"].status == results["crag"].status == "failed"
    assert results["hyde"].error == results["hyde"].spans[-1].error == "the endpoint answered HTML"
    assert "none of 5 passages could be graded: no" in results["crag"].error
    assert tuple(r.route for r in run.results) == asked
    assert results["bm25"].start_ms < results["hyde"].start_ms, "routes that ask a model come last"
    assert results["bm25"].status == results["rag_fusion"].status == "ok"


def test_an_absent_model_is_unavailable_not_failed(tmp_path):
    run = FakeEngine(tmp_path, llm=ScriptedLLM(missing="no model; pull it")).ask(Request(QUESTION, "tiny"))
    statuses = {r.route: r.status for r in run.results}
    assert statuses["hyde"] == "unavailable"
    assert statuses["bm25"] == "ok"
    assert by_route(run)["hyde"].error == "no model; pull it"
    assert sum(span.calls for span in by_route(run)["hyde"].spans) == 0
    assert statuses["rewrite"] == "ok", (
        "without a conversation there is nothing to rewrite, so no model is needed"
    )


def test_stop_keeps_what_is_finished(tmp_path):
    job = FakeEngine(tmp_path, llm=ScriptedLLM(delay=30)).start(
        Request(QUESTION, "tiny", ("bm25", "hyde", "crag"), {"crag": {"evaluator": "llm"}})
    )
    while not any(name == "hyde" and state == "running" for name, state, _ in job.pending()):
        time.sleep(0.005)
    job.cancel()
    run = job.wait(60)
    results = by_route(run)
    assert run.status == "cancelled"
    assert results["bm25"].status == "ok"
    assert results["hyde"].status == results["crag"].status == "cancelled"


@pytest.mark.parametrize(
    ("delay", "limits", "calls", "error"),
    [
        (30, {"route_timeout_s": 0.2, "llm_timeout_s": 10}, 1, "the route's time is up"),
        (30, {"llm_timeout_s": 0.05}, 1, "no answer within 0.05 s"),
        (0, {"route_max_calls": 2}, 2, "the route's budget of 2 model calls is spent"),
    ],
    ids=["of the route", "of a call", "of calls"],
)
def test_a_route_past_a_limit_is_a_timeout_and_the_next_one_runs(tmp_path, delay, limits, calls, error):
    engine = FakeEngine(tmp_path, llm=ScriptedLLM(delay=delay), **limits)
    results = by_route(engine.ask(Request(QUESTION, "tiny", ("hyde", "bm25"), {"hyde": {"n": 8}})))
    assert (results["hyde"].status, results["hyde"].error) == ("timeout", error)
    assert len(engine.fake_llm.requests) == calls
    assert results["bm25"].status == "ok"


def test_a_route_that_hangs_is_given_up_with_its_spans(tmp_path, monkeypatch):
    monkeypatch.setattr("core.engine.job.GRACE_S", 0.05)
    engine = FakeEngine(tmp_path, route_timeout_s=0.1)
    hold = threading.Event()
    corpus = engine.fakes["tiny"]
    monkeypatch.setattr(corpus, "search_sparse", lambda *_: hold.wait(60) and ())
    run = engine.ask(Request(QUESTION, "tiny", ("bm25", "dense")))
    hold.set()
    result = by_route(run)["bm25"]
    assert result.status == "timeout"
    assert "abandoned" in result.error
    assert result.spans[0].error == "not finished when the route was abandoned"
    assert by_route(run)["dense"].status == "ok"


def test_answers_are_made_only_where_asked_for_and_added_later(tmp_path):
    llm = ScriptedLLM({"answer/2": "Ask for an authorization [1], see also [9]."})
    engine = FakeEngine(tmp_path, llm=llm)
    request = Request(QUESTION, "tiny", ("bm25", "dense"), answers="selected", answered=("bm25",))
    results = by_route(engine.ask(request))
    assert results["bm25"].answer.startswith("Ask for an authorization")
    assert results["bm25"].citations == (results["bm25"].hits[0].passage.id,)
    written = next(span for span in results["bm25"].spans if span.name == "write answer")
    assert written.output.wrong == (9,)
    assert results["dense"].answer is None
    run = engine.ask(Request(QUESTION, "tiny", ("bm25",)))
    (before,), (added,) = run.results, engine.add_answer(run, "bm25").results
    assert added.answer == results["bm25"].answer
    assert added.spans[: len(before.spans)] == before.spans
    assert added.spans[-1].id > before.spans[-1].id
    assert added.spans[-1].start_ms >= before.ms
    with pytest.raises(BadInput, match="no finished result"):
        engine.add_answer(run, "nonsense")


def test_an_answer_added_later_answers_the_question_as_it_was_rewritten(tmp_path):
    llm = ScriptedLLM({"rewrite": "How do I send a fragile vase back?", "grade": "0.5"})
    engine = FakeEngine(tmp_path, llm=llm, web={"w": "fragile goods"})
    follow_up = Query("And the vase?", (Turn("user", "I bought a vase."),))
    run = engine.ask(Request(follow_up, "tiny", ("rewrite", "crag")))
    assert [r.status for r in run.results] == ["ok", "ok"]
    for route in ("rewrite", "crag"):
        engine.add_answer(run, route)
    asked = [request.messages[-1].content for request in llm.requests if request.prompt.startswith("answer/")]
    assert "How do I send a fragile vase back?" in asked[0]
    # its keywords for the web were written from the question, and are none
    assert any(span.kind == "LLM" and span.name.endswith("keywords") for span in run.results[1].spans)
    assert "And the vase?" in asked[1]


def test_an_answer_is_written_in_the_background_once_and_stored(tmp_path):
    store = Store(tmp_path / "runs.sqlite")
    llm = ScriptedLLM({"answer/2": "It is so [1]."})
    engine = FakeEngine(tmp_path, llm=llm, store=store)
    run = engine.ask(Request(QUESTION, "tiny", ("bm25", "dense")))
    llm.delay = 0.3
    first = engine.start_answer(run.id, "bm25")
    assert engine.start_answer(run.id, "bm25") is first is engine.answering(run.id)
    with pytest.raises(BadInput, match="'bm25' is writing its answer"):
        engine.start_answer(run.id, "dense")
    assert not first.done
    assert first.wait(60)
    assert first.error is None
    assert 0.3 <= first.seconds < 5
    assert [request.prompt for request in llm.requests] == ["evidence/1", "answer/2"]
    stored = store.load(run.id)
    assert stored == engine.run(run.id)
    assert stored.results[0].answer == "It is so [1]."
    assert stored.results[1] == run.results[1]
    with pytest.raises(BadInput, match="already has an answer"):
        engine.start_answer(run.id, "bm25")
    store.close()


@pytest.mark.parametrize(
    ("reply", "told"), [(ModelFailed("no such model"), "no such model"), (KeyError("x"), "KeyError: 'x'")]
)
def test_an_answer_that_comes_to_nothing_says_why_and_changes_nothing(tmp_path, reply, told):
    engine = FakeEngine(tmp_path, llm=ScriptedLLM({"answer": reply}))
    run = engine.ask(Request(QUESTION, "tiny", ("bm25",)))
    writing = engine.start_answer(run.id, "bm25")
    assert writing.wait(60)
    assert writing.error == told
    assert engine.run(run.id) == run
    with pytest.raises(BadInput, match="has no passages"):
        engine.add_answer(replace(run, results=(replace(run.results[0], hits=()),)), "bm25")
    with pytest.raises(BadInput, match="still running"):
        engine.add_answer(replace(run, status="running"), "bm25")


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request(Query("  \x00 "), "tiny"), "the question is empty"),
        (Request(Query("x" * 20_000), "tiny"), "20,000 characters; at most 10,000"),
        (Request(Query("q"), "tiny", ("bm26",)), "unknown route 'bm26'; known: all, adaptive"),
        (Request(Query("q"), "tiny", ("bm25",), {"bm25": {"k": 1}}), "route bm25 has no parameter 'k'"),
        (
            Request(Query("q"), "tiny", ("hyde",), {"hyde": {"n": 9}}),
            "hyde.n: 9 is not allowed; expected a whole number",
        ),
        (Request(Query("q"), "tiny", ("hyde",), {"hyde": {"n": "two"}}), "hyde.n: 'two' is not allowed"),
        (Request(Query("q"), "tiny", ("bm25",), {"hyde": {"n": 1}}), "not among the routes"),
        (Request(Query("q", (Turn("user", "x" * 20_000),)), "tiny"), "turn 1 has 20,000 characters"),
        (Request(Query("q"), "tiny", ("bm25",), mode="cheap"), "mode='cheap'; give live, record, replay"),
    ],
)
def test_bad_input_is_refused_with_one_line_that_names_it(tmp_path, request_, message):
    with pytest.raises(BadInput) as caught:
        FakeEngine(tmp_path).start(request_)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_control_characters_are_replaced_and_told():
    cleaned, warnings = clean(Query("a\x00b\u202eקבל\ud800"))
    assert cleaned.text == "a b\u202eקבל"
    assert warnings == ["2 control characters were replaced by spaces"]
    assert len(clean(Query("é" * MAX_QUESTION))[0].text) == MAX_QUESTION


def test_remote_models_let_routes_run_side_by_side(tmp_path):
    llm = ScriptedLLM({"variants/2": "a b\nc d\ne f"}, delay=0.2, local=False)
    run = FakeEngine(tmp_path, llm=llm).ask(Request(QUESTION, "tiny", ("hyde", "rag_fusion")))
    assert run.wall_ms < sum(result.wall_ms for result in run.results)
    assert run.settings["routes ran"] == "side by side"


# --- stored answers only, in one run


def test_a_replayed_run_calls_no_model_and_finds_what_was_found_with_it(tmp_path):
    engine = FakeEngine(tmp_path, llm=ScriptedLLM({"hyde": "Report a fragile item within 48 hours."}))
    asked = Request(QUESTION, "tiny", ("hyde", "bm25"), mode="live")
    live = engine.ask(asked)
    calls = len(engine.fake_llm.requests)
    assert calls > 0
    engine.fake_llm.missing = "no model file is here"
    again = engine.ask(replace(asked, mode="replay"))
    assert len(engine.fake_llm.requests) == calls
    assert [result.status for result in again.results] == ["ok", "ok"]
    assert [result.hits for result in again.results] == [result.hits for result in live.results]
    asking = [span for span in by_route(again)["hyde"].spans if span.name.startswith("ask ")]
    assert [span.cached for span in asking] == ["cache"] * calls
    assert (live.settings["llm mode"], again.settings["llm mode"]) == ("live", "replay")


def test_a_replayed_run_says_which_answer_is_not_stored_and_the_others_go_on(tmp_path):
    engine = FakeEngine(tmp_path)
    run = engine.ask(Request(QUESTION, "tiny", ("hyde", "bm25"), mode="replay"))
    assert engine.fake_llm.requests == []
    results = by_route(run)
    assert results["hyde"].status == "unavailable"
    assert "not recorded: hyde/" in results["hyde"].error
    assert "replay" in results["hyde"].error
    assert results["bm25"].status == "ok"
    run = engine.ask(Request(QUESTION, "tiny", ("hyde",)))
    assert run.settings["llm mode"] == engine.settings.llm_mode == "live", "that was the mode of one run"
    assert run.results[0].status == "ok"
