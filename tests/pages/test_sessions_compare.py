"""Two runs compared, a run replayed, and bundles brought in."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from core.analysis.run_diff import run_diff
from core.domain.types import Query
from core.engine.request import Request
from tests.fakes import FakeEngine, ScriptedLLM
from tests.pages.reading import address, html, shown
from tests.runs import make_run
from ui.sessions.actions import take_in

ACTIONS = ("open", "compare", "replay", "delete")
QUESTION = Query("How do I send a fragile item back?")


def text(app):
    return f"{shown(app)}\n{html(app)}"


@pytest.fixture
def asked(engine):
    """A run by two routes, really made."""
    engine.fake_llm = ScriptedLLM({"hyde": "Report a fragile item within 48 hours."})
    return engine.ask(Request(QUESTION, "tiny", ("bm25", "hybrid_rrf"), {"hybrid_rrf": {"k": 60}}))


def test_the_address_opens_the_comparison_with_the_stores_figures(visit, engine, asked):
    other = engine.ask(Request(QUESTION, "tiny", ("bm25", "hybrid_rrf"), {"hybrid_rrf": {"k": 5}}))
    app = visit("sessions.py", a=asked.id, b=other.id)
    shown = text(app)
    assert "Of 2 routes in both runs 1 gave a different result: Hybrid (RRF)." in shown
    assert "because <code>k</code> was 60 and is 5" in shown
    diff = run_diff(engine.store.load(asked.id), engine.store.load(other.id))
    assert f"{diff.equal} equal settings, no difference" in shown
    assert f"{diff.routes[1].ranking.scores} passages" in shown
    assert app.selectbox(key="session_of").options[0].endswith("(differs)")
    assert address(app, "of") == "hybrid_rrf"
    assert "Traces compared" in shown
    app.selectbox(key="session_of").set_value("bm25").run()
    assert "BM25 gave the same result in both runs." in text(app)
    assert address(app, "of") == "bm25"
    app.button(key="exchange").click().run()
    assert address(app, "a") == other.id
    assert "because <code>k</code> was 5 and is 60" in text(app)
    app.button(key="back").click().run()
    assert len(app.dataframe[0].value) == 2
    assert "a" not in app.query_params


def test_a_status_that_changed_is_told(visit, stored):
    failed = visit("sessions.py", a="good", b="bad", of="rag_fusion")
    assert "`status`" not in text(failed)
    assert "<code>status</code> was ok and is failed" in text(failed)


def test_a_run_that_is_not_there_is_said_by_its_place(visit, stored):
    shown = text(visit("sessions.py", a="good", b="nothing"))
    assert "Second run: there is no run 'nothing'" in shown


def test_a_replay_asks_no_model_and_is_compared_with_its_original(visit, engine, monkeypatch):
    engine.fake_llm = ScriptedLLM({"hyde": "Report a fragile item within 48 hours."})
    run = engine.ask(Request(QUESTION, "tiny", ("hyde", "bm25"), mode="live"))
    calls = len(engine.fake_llm.requests)
    other = engine.ask(
        Request(Query("Not asked of the model before"), "tiny", ("hyde", "bm25"), mode="replay")
    )
    from ui.app import state
    from ui.sessions import actions, compare

    started = []
    monkeypatch.setattr(state, "engine", lambda: engine)
    monkeypatch.setattr(compare, "of", lambda a, b: started.append((a, b)))
    actions.replay(run.id)
    actions.replay(other.id)
    again, missing = (engine.job(b).wait(20) for _, b in started)
    assert len(engine.fake_llm.requests) == calls
    assert [one.name for one in run_diff(run, again).settings] == ["llm mode"]
    assert not [r for r in run_diff(run, again).routes if not r.same_result]
    assert (missing.results[0].status, missing.results[1].status) == ("unavailable", "ok")
    assert "not recorded" in text(visit("sessions.py", a=run.id, b=missing.id))


def test_a_comparison_waits_for_a_run_that_is_under_way(visit, engine, asked):
    engine.fake_llm = ScriptedLLM({"hyde": "x"}, delay=1.5)
    job = engine.start(Request(QUESTION, "tiny", ("bm25", "hyde")))
    app = visit("sessions.py", a=asked.id, b=job.id)
    assert [button.key for button in app.button if button.key.startswith("stop:")] == [f"stop:{job.id}"]
    app.button(key=f"stop:{job.id}").click().run()
    deadline = time.monotonic() + 10
    while not job.done and time.monotonic() < deadline:
        time.sleep(0.05)
    app.run()
    assert "Only in the first run: Hybrid" in text(app)
    assert job.snapshot().status == "cancelled"


def test_files_are_imported_one_by_one_and_what_came_in_is_linked(visit, engine, stored, tmp_path):
    other = FakeEngine(tmp_path / "other", store=engine.store.__class__(tmp_path / "other.sqlite"))
    for id in ("n1", "n2"):
        other.store.save(make_run(run_id=id, corpus="tiny"))
    bundle = other.store.export_bundle(["n1", "n2"])
    given = {"a.zip": bundle, "b.zip": b"no zip", "a again.zip": bundle}
    files = [SimpleNamespace(name=name, getvalue=lambda data=data: data) for name, data in given.items()]
    app = visit("sessions.py")
    app.session_state["outcome:sessions_imported"] = take_in(engine.store, files)
    app.run()
    assert "b.zip was not imported: this is not a session bundle" in text(app)
    assert "2 new runs from 2 files" in text(app)
    assert len(app.dataframe[0].value) == 5
    app.button(key="sessions_imported_undo").click().run()
    assert len(app.dataframe[0].value) == 3


def test_all_that_is_found_is_exported_but_for_what_still_runs(visit, engine, stored):
    engine.store.save(replace(make_run(run_id="going", corpus="tiny"), status="running"))
    engine.store.flush()
    app = visit("sessions.py")
    assert "Export all 3 matches" in [button.proto.label for button in app.get("download_button")]
    narrowed = visit("sessions.py", search="crushed nothing of it")
    assert not narrowed.get("download_button")


def picked(*ids):
    """The actions of these rows, as if they had been picked."""

    def script(ids):
        from ui.app import state
        from ui.sessions.actions import actions

        store = state.engine().store
        actions(store, [store.session(id) for id in ids])

    return AppTest.from_function(script, kwargs={"ids": ids}, default_timeout=20).run()


def test_one_picked_run_is_opened_replayed_and_saved_for_other_tools(engine, stored):
    app = picked("good")
    assert [button.key for button in app.button if button.key in ACTIONS] == ["open", "replay", "delete"]
    assert [button.proto.label for button in app.get("download_button")] == [
        "Export 1",
        "Rankings as a TREC run file",
        "Results as JSON lines",
    ]
    assert "without searching again" in app.button(key="open").help
    assert "the language model is not called" in app.button(key="replay").help


def test_two_runs_one_that_runs_and_one_without_its_corpus_are_picked(engine, stored):
    good = stored["good"]
    engine.store.save(replace(good, id="older", created="2026-11-01T00:00:00.000+00:00"))
    engine.store.save(replace(good, id="going", status="running"))
    engine.store.save(replace(good, id="away", corpus="not built"))
    engine.store.flush()
    app = picked("good", "older")
    assert [button.key for button in app.button if button.key in ACTIONS] == ["compare", "delete"]
    app.button(key="compare").click().run()
    assert (address(app, "a"), address(app, "b")) == ("older", "good")
    app = picked("going")
    assert app.button(key="replay").disabled
    assert [(b.proto.label, b.proto.disabled) for b in app.get("download_button")] == [("Export 0", True)]
    app = picked("away")
    app.button(key="replay").click().run()
    assert "corpus 'not built' is not built" in text(app)
