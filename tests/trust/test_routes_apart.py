"""Routes stand apart: what one does, or its model's endpoint, costs no other; a run outlives its page."""

import json
import math
import threading
import unicodedata
from dataclasses import replace
from datetime import timedelta

import pytest

from core.backends.llm import load_llm
from core.domain.settings import Settings
from core.domain.types import Answer, Hit, Query
from core.engine import engine as engines
from core.engine import job as jobs
from core.engine.request import Request
from core.routes.registry import pick, routes
from tests.fakes import TEXTS, FakeEngine, ScriptedLLM
from tests.loopback import drip, http, loopback
from tests.pages.reading import address, html, shown

pytestmark = pytest.mark.trust

QUESTION = Query("How do I send a fragile item back?")
KEY = "sk-canary-0123456789abcdef"
PAGES = (
    "compare.py",
    "why.py",
    "steps.py?view=Transform",
    "steps.py?view=Fusion",
    "steps.py?view=Evaluators",
    "latency.py",
)

SPOILT = ("mmr", "dedupe", "rerank")

# --- one route that hangs, one that raises, one whose scores are no numbers


@pytest.fixture
def mishaps(monkeypatch):
    """Three routes that go wrong; what hangs is let go at the end."""
    release = threading.Event()

    def hangs(do, **_):
        do.sparse(do.question)
        release.wait(60)
        return Answer(())

    def raises(do, **_):
        do.sparse(do.question)
        raise ZeroDivisionError("it cannot be divided\nby <b>nothing</b>")

    def no_number(do, **_):
        found = do.sparse(do.question)
        odd = (math.nan, math.inf, -math.inf)
        return Answer(tuple(Hit(hit.passage, odd[n % 3]) for n, hit in enumerate(found)))

    spoilt = dict(zip(SPOILT, (hangs, raises, no_number), strict=True))

    def picked(names):
        return [replace(one, function=spoilt.get(one.name, one.function)) for one in pick(names)]

    monkeypatch.setattr(engines, "pick", picked)
    monkeypatch.setattr(jobs, "GRACE_S", 0.05)
    yield
    release.set()


def test_one_hanging_one_raising_one_nan_route_cost_the_others_nothing(visit, engine, mishaps, monkeypatch):
    wanted = ("bm25", "mmr", "dense", "dedupe", "hybrid_rrf", "rerank", "hybrid_linear")
    monkeypatch.setattr(engine, "settings", engine.settings.model_copy(update={"route_timeout_s": 4.0}))
    run = engine.ask(Request(QUESTION, "tiny", wanted))
    well = [name for name in wanted if name not in SPOILT]
    alone = engine.ask(Request(QUESTION, "tiny", tuple(well), timing="isolated"))
    by, usual = ({one.route: one for one in some.results} for some in (run, alone))
    assert [by[name].status for name in wanted] == ["ok", "timeout", "ok", "failed", "ok", "ok", "ok"]
    for name in well:
        assert by[name].hits == usual[name].hits
    assert "abandoned" in by["mmr"].error
    assert by["mmr"].spans
    assert by["dedupe"].error == "ZeroDivisionError: it cannot be divided by <b>nothing</b>"
    assert math.isnan(by["rerank"].hits[0].score)
    engine.store.flush()
    stored = engine.store.load(run.id)
    assert repr(stored) == repr(run)  # NaN is not equal to itself
    for line in engine.store.export_jsonl(stored).splitlines():
        json.loads(line, parse_constant=pytest.fail)
    assert engine.store.export_bundle([run.id]) == engine.store.export_bundle([run.id])
    for page in PAGES:
        app = visit(page, run=run.id)
        assert not app.error, page
        assert "<b>nothing</b>" not in html(app)


# --- a run goes on without its page, until somebody stops it


def begin(visit, engine, llm):
    engine.fake_llm = llm
    app = visit(corpus="tiny")
    app.session_state["routes"] = ["bm25", "hyde"]
    app.text_area(key="question").set_value(QUESTION.text)
    app.button(key="run").click().run()
    return app, engine.job(address(app, "run"))


def test_who_leaves_the_page_does_not_end_the_run(visit, engine):
    asked, answer = threading.Event(), threading.Event()

    def late(_):
        asked.set()
        assert answer.wait(30)
        return "A fragile item is boxed twice."

    app, job = begin(visit, engine, ScriptedLLM({"hyde": late}))
    assert asked.wait(30)
    app.switch_page("settings.py").run()
    del app
    answer.set()
    job.wait(30)
    engine.store.flush()
    run = engine.store.load(job.id)
    assert (run.status, [one.status for one in run.results]) == ("done", ["ok", "ok"])
    assert QUESTION.text in shown(visit("latency.py", run=job.id))


def test_stop_ends_the_run_for_whoever_looks_at_it(visit, engine):
    asked = threading.Event()

    class Slow(ScriptedLLM):
        def complete(self, *args, **more):
            asked.set()
            return super().complete(*args, **more)

    _, job = begin(visit, engine, Slow(delay=100))
    assert asked.wait(30)
    other = visit(run=job.id)
    other.button(key="stop").click().run()
    job.wait(30)
    engine.store.flush()
    stored = {one.route: one.status for one in engine.store.load(job.id).results}
    assert stored == {"bm25": "ok", "hyde": "cancelled"}
    assert "stopped early" in shown(visit(run=job.id))


# --- broken endpoints, and nine routes that ask a model

_ASKING = "hyde rag_fusion rewrite step_back decompose self_correct critique_loop iterative agentic"
ASKING = tuple(_ASKING.split())
ENDPOINTS = {  # of each way to fail one: what the client makes of each reply is tested with the client
    "html": http("<!DOCTYPE html><h1>Log in</h1><script>alert(1)</script>", kind="text/html"),
    "a null choice": http('{"choices": [null]}'),
    "401 with the key": http(f"bad key {KEY}", status="401 Unauthorized"),
    "500": http("boom\x1b[31m", status="500 Internal Server Error"),
    "a redirect": http("", status="302 Found", more="Location: http://evil.example/\r\n"),
    "drips": drip,
}


@pytest.mark.parametrize("name", ENDPOINTS)
def test_a_broken_endpoint_ends_what_asks_it_in_words_and_nothing_else(tmp_path, name):
    with loopback(ENDPOINTS[name]) as server:
        remote = {"llm_base_url": f"{server.url}/v1", "llm_api_key": KEY, "llm": "tiny", "llm_timeout_s": 0.3}
        engine = FakeEngine(tmp_path, texts=TEXTS, web={}, route_timeout_s=2.0, **remote)
        engine.fake_llm = load_llm(Settings(home=tmp_path, **remote), recordings=tmp_path)
        free = ("bm25", "dense", "hybrid_rrf")
        job = engine.start(Request(QUESTION, "tiny", (*free, *ASKING)))
        run = job.wait(60)
    by = {one.route: one for one in run.results}
    assert [by[route].status for route in free] == ["ok"] * 3
    assert all(by[route].hits for route in free)
    assert {by[route].status for route in ASKING} <= {"ok", "failed", "timeout"}
    told = [by[route].error for route in ASKING if by[route].status != "ok"]
    assert len(told) >= 4  # some routes do without the model, or take what it says for nothing
    for error in told:
        assert 5 < len(error) < 1000
        assert all(unicodedata.category(char)[0] != "C" for char in error)
    assert KEY not in repr(run)
    assert timedelta(milliseconds=run.wall_ms) < timedelta(seconds=60)
    assert set(ASKING) <= set(routes())
