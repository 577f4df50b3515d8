"""Turns at a model: fair between runs, out of every route's time and deadline, left at once by Stop."""

import json
import threading
import time
from types import SimpleNamespace

import pytest

from core.backends import admission
from core.backends.admission import WAIT, Asker, ModelQueue
from core.backends.base import LLMRequest, Message
from core.backends.llm import client, launch, load_llm, model
from core.backends.llm import launch as states
from core.backends.llm.model import EmbeddedLLM, RemoteLLM
from core.domain.errors import Cancelled, ModelFailed, ModelTimedOut
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine import job
from core.engine.request import Request
from core.steps import base, trace
from core.steps.trace import Trace
from tests.fakes import FakeEngine
from tests.loopback import http, loopback
from tests.until import until

NEVER = threading.Event()
ASK = LLMRequest("test/1", (Message("user", "Hi"),), 5)
CALL_S = 1.0  # what a call takes on the scripted clock
WORDS = "Ask for an authorization within thirty days, then send it back in its own box."
UNKNOWN = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
SAID = http(json.dumps({"model": "m", "choices": [{"message": {"content": WORDS}, "finish_reason": "stop"}]}))


class Clock:
    """Stands still but for what a test lets go by."""

    def __init__(self, monkeypatch):
        self.at = 1000.0
        self.lock = threading.Lock()
        told = SimpleNamespace(
            perf_counter=self, monotonic=self, time_ns=time.time_ns, time=time.time, sleep=time.sleep
        )
        for module in (admission, trace, job, base, client, launch, model):
            monkeypatch.setattr(module, "time", told, raising=False)
        monkeypatch.setattr("core.engine.contexts.time", told)

    def __call__(self):
        return self.at

    def advance(self, seconds):
        with self.lock:
            self.at += seconds


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


class Caller:
    """A call by `who` in a thread of its own, which holds its slot until the test ends it."""

    def __init__(self, turns, who, slots=1, served=None, error=None):
        self.who, self.done, self.begun = who, threading.Event(), threading.Event()
        self.raised = None

        def call():
            try:
                with who.asking(), turns.slot(slots, told=True):
                    if served is not None:
                        served.append(who.run)
                    self.begun.set()
                    assert self.done.wait(20)
                    if error is not None:
                        raise error
            except Exception as raised:  # noqa: BLE001 - looked at by the test
                self.raised = raised

        before = turns.waiting()
        self.thread = threading.Thread(target=call, daemon=True)
        self.thread.start()
        until(lambda: self.begun.is_set() or self.raised or turns.waiting() == before + 1)

    def end(self):
        self.done.set()
        self.thread.join(20)


def end(*calls):
    """Let calls go in any order."""
    for call in calls:
        call.done.set()
    for call in calls:
        call.thread.join(20)


@pytest.mark.trust
def test_turns_go_round_between_runs_and_in_order_inside_one():
    turns, served = ModelQueue(), []
    end(*[Caller(turns, Asker(run), served=served) for run in "aaabcb"])
    assert served == ["a", "a", "b", "c", "a", "b"]  # one of a was served before the others came


def test_as_many_are_served_at_once_as_there_are_slots():
    turns = ModelQueue()
    calls = [Caller(turns, Asker(), slots=2) for _ in range(3)]
    assert [call.begun.is_set() for call in calls] == [True, True, False]
    end(calls[0])
    assert calls[2].begun.wait(20)
    end(*calls)
    many = [Caller(turns, Asker(), slots=float("inf")) for _ in range(20)]
    assert all(call.begun.is_set() for call in many)
    end(*many)


def test_the_place_and_the_expected_wait_are_told_while_it_waits(clock):
    turns = ModelQueue()
    first, unmeasured = Caller(turns, Asker("a")), Asker("b", Trace("r"))
    early = Caller(turns, unmeasured)

    def told(who, name):
        return getattr(who.trace.spans()[0].output, name, None)

    until(lambda: told(unmeasured, "place") is not None)
    assert told(unmeasured, "about") is None  # no call was measured yet
    clock.advance(4)
    first.end()  # calls take about 4 s
    assert early.begun.wait(20)
    waiting = [Asker(run, Trace("r")) for run in ("b", "c", "b")]
    calls = [Caller(turns, who) for who in waiting]
    clock.advance(1)
    until(lambda: [told(who, "place") for who in waiting] == [1, 2, 3])
    until(lambda: [told(who, "about") for who in waiting] == [3.0, 7.0, 11.0])
    assert [(who.trace.spans()[0].name, who.trace.spans()[0].kind) for who in waiting] == [
        (WAIT, "CHAIN")
    ] * 3
    end(early, *calls)


def test_stop_leaves_the_queue_at_once_and_the_next_one_moves_up():
    turns, cancel = ModelQueue(), threading.Event()
    held = Caller(turns, Asker("a"))
    stopped = Caller(turns, Asker("b", cancel=cancel))
    after = Caller(turns, Asker("c"))
    cancel.set()
    stopped.thread.join(20)
    assert isinstance(stopped.raised, Cancelled)
    assert not held.done.is_set(), "it did not wait for the one before it"
    assert turns.waiting() == 1
    held.end()
    assert after.begun.wait(20)
    after.end()


def test_a_call_that_fails_frees_its_slot():
    turns = ModelQueue()
    failing = Caller(turns, Asker("a"), error=ModelFailed("broken JSON"))
    after = Caller(turns, Asker("b"))
    assert not after.begun.is_set()
    failing.end()
    assert after.begun.wait(20)
    after.end()
    assert str(failing.raised) == "broken JSON"


def test_what_is_waited_for_others_is_in_no_deadline_and_counts_once(clock):
    turns, who = ModelQueue(), Asker("mine")
    held = Caller(turns, Asker("others"))
    clock.advance(5)
    branches = [Caller(turns, who) for _ in range(2)]
    clock.advance(3)
    assert who.waited() == 3.0
    held.end()
    assert branches[0].begun.wait(20)
    clock.advance(2)  # now the second waits for the first, which is its own route's
    assert who.waited() == 3.0
    end(*branches)
    assert who.waited() == 3.0


def test_who_waits_for_a_step_of_another_route_waits_for_what_that_one_waits_for(clock):
    one, other = Asker("r"), Asker("r")
    with other.waiting():
        clock.advance(2)
        with one.behind(other):
            clock.advance(3)
            assert one.waited() == 3.0
            with other.behind(one):  # each has a branch that waits for a step of the other
                assert one.waited() == 3.0
        clock.advance(4)
    assert one.waited() == 3.0
    assert other.waited() == 9.0


class Slow:
    """A loopback server that serves one call at a time, each taking a second of the clock. A call is served
    after `go` and once all is `settled`: what a thread needs on this machine to go on is no time.
    """

    def __init__(self, clock):
        self.clock, self.go, self.one = clock, threading.Event(), threading.Lock()
        self.settled = lambda: True

    def __call__(self, server, talk, sent):
        if sent.startswith(b"GET"):  # what the service says of its models is no call
            talk.sendall(UNKNOWN)
            return
        assert self.go.wait(20)
        with self.one:
            until(self.settled)
            self.clock.advance(CALL_S)
            talk.sendall(SAID)


def asked_at_once(engine, slow, runs):
    """The results of one LLM route of three calls in `runs` runs that all ask before any call is served."""
    request = Request(Query("How do I send it back?"), "tiny", ("hyde",), {"hyde": {"n": 3}}, stored=False)
    slow.go.clear()
    turns, at_once = admission.turns(engine.llm().endpoint), 1 if engine.llm().local else 3
    begun = []

    def settled():
        """Whether each run has ended, or has asked for all that it asks at once."""
        if not begun and turns.waiting() < runs * at_once - 1:
            return False
        begun.append(True)
        asking = {*turns._lines, *(ticket.asker.run for ticket in turns._serving)}
        return len(asking) + sum(job.done for job in jobs) == runs

    slow.settled = settled if engine.settings.llm_slots else lambda: True
    jobs = [engine.start(request) for _ in range(runs)]
    slow.go.set()
    return [job.wait(30).results[0] for job in jobs]


@pytest.mark.trust
@pytest.mark.parametrize("local", [True, False], ids=["one call after another", "calls in parallel"])
def test_a_routes_time_with_three_others_is_that_of_the_route_alone(tmp_path, clock, local):
    slow = Slow(clock)
    with loopback(slow) as server:
        settings = {"llm_base_url": f"{server.url}/v1", "llm_slots": 1}
        settings |= {"llm_timeout_s": 2.5 * CALL_S, "route_timeout_s": 4 * CALL_S}
        llm = RemoteLLM(Settings(home=tmp_path, **settings))
        llm.local = local
        engine = FakeEngine(tmp_path, llm=llm, **settings)
        (alone,) = asked_at_once(engine, slow, 1)
        together = asked_at_once(engine, slow, 4)
    assert (alone.status, alone.ms) == ("ok", pytest.approx(3 * CALL_S * 1000, abs=1))
    for result in together:
        assert (result.status, result.error) == ("ok", None)  # no timeout counts what others took
        assert result.ms == pytest.approx(alone.ms, abs=1)
        waits = [span for span in result.spans if span.name == WAIT]
        top = [span.ms for span in result.spans if span.parent is None]
        assert sum(top) == pytest.approx(result.ms, abs=1)
        assert all(span.kind == "CHAIN" and span.calls == 0 for span in waits)
    waited = [sum(s.output.others_ms for s in r.spans if s.name == WAIT) for r in together]
    assert sum(waited) >= 3 * CALL_S * 1000
    assert max(result.wall_ms for result in together) >= 12 * CALL_S * 1000  # all of it did go by


def test_a_run_tells_what_it_waits_for_and_stop_ends_it_in_the_queue(tmp_path, clock):
    slow = Slow(clock)
    with loopback(slow) as server:
        settings = {"llm_base_url": f"{server.url}/v1", "llm_slots": 1}
        llm = RemoteLLM(Settings(home=tmp_path, **settings))
        engine = FakeEngine(tmp_path, llm=llm, **settings)
        request = Request(Query("How do I send it back?"), "tiny", ("hyde",), stored=False)
        jobs = [engine.start(request) for _ in range(2)]
        until(lambda: admission.turns(llm.endpoint).waiting() == 1)

        def places(job):
            return [
                getattr(s.output, "place", None)
                for _, _, spans in job.pending()
                for s in spans
                if s.name == WAIT
            ]

        jobs.sort(key=lambda job: len(places(job)))
        other, waiting = jobs
        until(lambda: 1 in places(waiting))
        waiting.cancel()
        assert waiting.wait(20).results[0].status == "cancelled"
        assert not slow.go.is_set(), "nothing was served meanwhile"
        slow.go.set()
        assert other.wait(20).results[0].status == "ok"


def test_answers_from_the_cache_take_no_turn(tmp_path):
    with loopback(SAID) as server:
        settings = Settings(home=tmp_path, llm_base_url=f"{server.url}/v1", llm="m", llm_slots=1)
        cached = load_llm(settings)
        assert cached.complete(ASK, timeout=5, cancel=NEVER).source == "live"
        held = Caller(admission.turns(cached.endpoint), Asker("others"))
        assert cached.complete(ASK, timeout=5, cancel=NEVER).source == "cache"
        end(held)


def embedded(tmp_path):
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"no model")
    return EmbeddedLLM(Settings(home=tmp_path, models_dir=tmp_path / "models", llm=str(path)))


def publish(llm, state):
    states.folder(llm.server.models_dir)
    states.write(llm.server._file("json"), state)


def test_loading_the_model_is_no_time_of_the_route_that_came_first(tmp_path, clock):
    llm, recorded = embedded(tmp_path), Trace("r")
    who = Asker("run", recorded)
    loading = states.ours().enter("loading")
    publish(llm, loading)
    got = []
    with loopback(SAID) as server:

        def call():
            with who.asking(), recorded.span("ask", "LLM"):
                got.append(llm.complete(ASK, timeout=30, cancel=NEVER))

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        until(lambda: any(span.name == WAIT for span in recorded.spans()))
        clock.advance(20)
        publish(llm, loading.enter("ready", url=server.url, key="k"))
        thread.join(20)
    assert got[0].text == WORDS
    wait = next(span for span in recorded.spans() if span.name == WAIT)
    assert (wait.ms, wait.output.until) == (0.0, f"{llm.model} is loaded")
    assert recorded.now() == pytest.approx(0.0)
    assert who.waited() == pytest.approx(20.0)


def test_a_calls_own_deadline_is_kept_in_its_turn(tmp_path, clock):
    def late(server, talk, sent):
        if sent.startswith(b"GET"):
            talk.sendall(UNKNOWN)
            return
        clock.advance(5)
        threading.Event().wait(0.2)
        talk.sendall(SAID)

    with loopback(late) as server:
        settings = Settings(home=tmp_path, llm_base_url=f"{server.url}/v1", llm_slots=1)
        with pytest.raises(ModelTimedOut):
            RemoteLLM(settings).complete(ASK, timeout=2, cancel=NEVER)
    assert admission.turns(f"{server.url}/v1").waiting() == 0
