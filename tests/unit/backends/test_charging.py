"""Model tokens of a day: simultaneous calls share one budget, and a call that ends early is charged too."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.backends import admission
from core.backends.base import Completion, LLMRequest, Message
from core.backends.llm.cache import CompletionCache
from core.backends.llm.model import CachedLLM, RemoteLLM
from core.backends.llm.recordings import Recordings
from core.domain import people
from core.domain.errors import BudgetSpent, Cancelled, ModelFailed, RouteScopeError
from core.domain.people import Person, acting
from core.domain.program import PROJECT
from core.domain.settings import Settings
from core.store import Store, deeds
from core.store.files import reading
from tests.loopback import hold, http, loopback
from tests.until import until

pytestmark = pytest.mark.trust
CAT = Person("cat@example.org", "editor")
PROMPT = "Which parcels come back? " * 5  # 125 bytes, at most as many tokens
DAILY = 300


class Slow:
    """A model that takes its time; each call uses 100 tokens."""

    model = identity = endpoint = "slow"
    local = False

    def __init__(self, seconds=0.1):
        self.seconds, self.calls, self.at_once, self.most = seconds, 0, 0, 0
        self.lock = threading.Lock()

    def status(self):
        return None

    def complete(self, request, *, timeout, cancel, written=None):
        with self.lock:
            self.calls += 1
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        time.sleep(self.seconds)
        with self.lock:
            self.at_once -= 1
        return Completion("yes", "slow", "stop", 1.0, 60, 40)


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "a.sqlite")
    people.keep_in(made)
    yield made
    people._ledgers.clear()
    made.close()


def model(backend, folder, daily=DAILY):
    folder.mkdir(exist_ok=True)
    cache = CompletionCache(folder / "llm.sqlite")
    return CachedLLM(backend, cache=cache, recordings=Recordings(folder), mode="live", daily=daily)


def call(model, n, cancel=None, written=None):
    """What became of one call, by the name of its error."""
    request = LLMRequest(f"p/{n}", (Message("user", f"{PROMPT}{n}"),), 40)
    try:
        with acting(CAT), admission.Asker().asking():
            model.complete(request, timeout=20, cancel=cancel or threading.Event(), written=written)
    except RouteScopeError as error:
        return type(error)
    return None


def test_a_budget_is_spent_once_and_a_large_one_lets_all_calls_run_at_once(store, tmp_path):
    for daily, calls, spent in ((DAILY, 3, DAILY), (100_000, 6, DAILY + 600)):
        slow = model(Slow(0.5), tmp_path / str(daily), daily)
        with ThreadPoolExecutor(6) as pool:
            ended = list(pool.map(lambda n, slow=slow: call(slow, n), range(6)))
        assert (ended.count(None), ended.count(BudgetSpent)) == (calls, 6 - calls)
        assert (store.spent(CAT.account), slow.backend.calls) == (spent, calls)
    assert slow.backend.most == 6


PROCESS = """
import sys, threading
from pathlib import Path
from core.domain import people
from core.domain.postgres import Dsn
from core.store import Store
from tests.unit.backends.test_charging import Slow, call, model
place, folder, n, seconds = sys.argv[1:]
store = Store(Dsn(place) if "://" in place else Path(place))
people.keep_in(store)
slow = model(Slow(float(seconds)), Path(folder) / n)
print("ready", flush=True)
sys.stdin.readline()
ended = call(slow, int(n))
print(slow.backend.calls, "" if ended is None else ended.__name__)
store.close()
"""


def process(place, folder, n, seconds=0.2):
    from core.domain.postgres import Dsn

    where = place.conninfo() if isinstance(place, Dsn) else str(place)
    command = [sys.executable, "-c", PROCESS, where, str(folder), str(n), str(seconds)]
    return subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def go(*processes):
    """Let them call, once all are ready."""
    for one in processes:
        assert one.stdout.readline() == "ready\n"
    for one in processes:
        one.stdin.write("go\n")
        one.stdin.flush()


@pytest.mark.process
def test_processes_cannot_spend_a_budget_twice(store_place, tmp_path):
    asking = [process(store_place, tmp_path, n) for n in range(4)]
    go(*asking)
    ended = [one.communicate(timeout=60)[0].split() for one in asking]
    assert sorted(ended) == [["0", "BudgetSpent"]] + [["1"]] * 3
    with reading(store_place) as connection:
        assert deeds.spent(connection, deeds.today()) == {CAT.account: DAILY}
    assert rows(store_place) == 0


@pytest.mark.process
def test_what_a_killed_process_had_reserved_is_free_again(store_place, tmp_path):
    hanging = process(store_place, tmp_path, 0, seconds=600)
    go(hanging)
    made = Store(store_place)
    try:
        until(lambda: rows(store_place))
        assert made.reserve(CAT.account, DAILY, DAILY) == ("", 0)
        hanging.kill()
        hanging.communicate()
        assert made.reserve(CAT.account, DAILY, DAILY)[0]
        assert rows(store_place) == 1
    finally:
        made.close()


def rows(place):
    """How many reservations there are."""
    with reading(place) as connection:
        return connection.execute("SELECT count(*) FROM reserved").fetchone()[0]


def remote(server, tmp_path):
    settings = Settings(
        home=tmp_path, llm="tiny", llm_base_url=f"{server.url}/v1", llm_api_key="sk-0123456789"
    )
    return model(RemoteLLM(settings), tmp_path)


YES = http(json.dumps({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (hold, Cancelled),
        (http("no", status="400 Bad Request"), ModelFailed),
        (http("{}"), ModelFailed),
        (YES, None),
    ],
    ids=["stopped", "refused", "no answer", "no usage told"],
)
def test_a_call_that_ends_early_is_charged_for_what_was_sent(store, tmp_path, answer, error):
    cancel = threading.Event()
    with loopback(answer) as server:
        asked = remote(server, tmp_path)
        if error is Cancelled:
            threading.Thread(target=lambda: (until(lambda: server.requests), cancel.set())).start()
        ended = call(asked, 1, cancel)
    assert ended is error or issubclass(ended, error)
    assert 25 <= store.spent(CAT.account) <= 60  # 126 bytes are about 32 tokens
    assert rows(store.path) == 0


def test_a_call_that_reached_nobody_costs_nothing(store, tmp_path):
    with loopback(hold) as server:
        asked = remote(server, tmp_path)
    assert issubclass(call(asked, 1), ModelFailed)
    cancelled = threading.Event()
    cancelled.set()
    assert call(asked, 2, cancelled) is Cancelled
    assert store.spent(CAT.account) == 0
