"""The real llama.cpp server with the smallest real model, from start to idle stop."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from core.backends.base import Completion, LLMRequest, Message
from core.backends.llm import CachedLLM, load_llm, server_state, start_server, stop_server
from core.backends.llm.launch import ServerState
from core.backends.llm.probe import probe
from core.domain.errors import Cancelled, ModelFailed, ModelTimedOut
from core.domain.settings import PROJECT, Settings

pytestmark = pytest.mark.model
ASK = LLMRequest("test/1", (Message("user", "Is water wet? Answer yes or no."),), max_tokens=8)
LONG = LLMRequest("test/2", (Message("user", "Write a very long story about a dog."),), max_tokens=2000)


@pytest.fixture(scope="module")
def settings(tiny_model: Callable[..., Settings]) -> Settings:
    return tiny_model(llm_context=1024)


@pytest.fixture
def llm(settings: Settings, tmp_path: Path) -> CachedLLM:
    """The model with an empty cache."""
    return load_llm(settings.model_copy(update={"home": tmp_path}), recordings=tmp_path)


def call(
    llm: CachedLLM, request: LLMRequest, timeout: float = 60, cancel: threading.Event | None = None
) -> Completion:
    return llm.complete(request, timeout=timeout, cancel=cancel or threading.Event())


def state(settings: Settings) -> ServerState:
    found = server_state(settings)
    assert found is not None
    return found


def running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_threads_and_programs_start_one_server_between_them(settings: Settings, llm: CachedLLM) -> None:
    stop_server(settings)
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1])\n"
        "from core.domain import settings; from core.backends.llm import start_server\n"
        "here = pathlib.Path(sys.argv[2])\n"
        "print(start_server(settings.load(home=here, models_dir=here / 'models', llm='smollm2-135m',"
        " llm_context=1024)).pid)\n"
    )
    command = [sys.executable, "-c", code, str(PROJECT), str(settings.home)]
    others = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda n: call(llm, replace(ASK, seed=n)), range(4)))
    pids = {int(other.communicate()[0]) for other in others} | {state(settings).pid}
    assert len(pids) == 1
    assert all(answer.text.strip() and answer.model == "smollm2-135m" for answer in answers)
    assert start_server(settings) == state(settings)


def test_only_who_has_the_key_is_served_and_only_on_loopback(settings: Settings, llm: CachedLLM) -> None:
    call(llm, ASK)
    server = state(settings)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{server.url}/v1/models")
    addresses = [
        c.laddr.ip for c in psutil.Process(server.pid).net_connections("tcp") if c.status == "LISTEN"
    ]
    assert addresses == ["127.0.0.1"]
    assert server.key not in " ".join(psutil.Process(server.pid).cmdline())


def test_the_same_request_gives_the_same_text_whatever_came_before(llm: CachedLLM) -> None:
    asks = [replace(ASK, prompt=f"again/{n}", max_tokens=24, temperature=0.7, seed=5) for n in range(3)]
    texts = []
    for request in asks:
        texts.append(call(llm, request).text)
        call(llm, replace(LONG, prompt=request.prompt, max_tokens=3))
    assert len(set(texts)) == 1
    assert call(llm, replace(asks[0], seed=6)).text != texts[0]


def test_probabilities_and_schemas(llm: CachedLLM) -> None:
    graded = call(llm, replace(ASK, max_tokens=1, top_logprobs=20))
    top = graded.logprobs[0].top
    assert len(top) == 20
    assert [p for _, p in top] == sorted((p for _, p in top), reverse=True)
    assert 0.5 < sum(math.exp(p) for _, p in top) <= 1.0001
    assert {"Yes", "No"} <= {token.strip() for token, _ in top}
    schema = {"type": "object", "properties": {"wet": {"type": "boolean"}}, "required": ["wet"]}
    assert isinstance(json.loads(call(llm, replace(ASK, schema=schema, max_tokens=40)).text)["wet"], bool)
    found = probe(llm)
    assert (found["probabilities"], found["schema"]) == (True, True)


def test_grading_numbers_hardly_move_with_what_was_cached(llm: CachedLLM) -> None:
    graded = replace(ASK, max_tokens=1, top_logprobs=20)
    firsts = []
    for n in range(3):
        call(llm, replace(LONG, prompt=f"other/{n}", max_tokens=2))
        firsts.append(call(llm, replace(graded, prompt=f"grade/{n}")).logprobs[0].logprob)
    assert max(firsts) - min(firsts) < 0.2


def test_a_call_no_longer_wanted_frees_the_model_at_once(llm: CachedLLM) -> None:
    call(llm, ASK)
    for how in ("cancel", "deadline"):
        cancel = threading.Event()
        if how == "cancel":
            threading.Timer(0.5, cancel.set).start()
        with pytest.raises(Cancelled if how == "cancel" else ModelTimedOut):
            call(llm, replace(LONG, prompt=how), timeout=30 if how == "cancel" else 0.5, cancel=cancel)
        began = time.monotonic()
        call(llm, replace(ASK, prompt=how, max_tokens=1))
        assert time.monotonic() - began < 12  # the whole story takes several times that


def test_a_prompt_longer_than_the_context_is_told_in_numbers(llm: CachedLLM) -> None:
    with pytest.raises(ModelFailed, match=r"exceeds the available context size \(1024 tokens\)"):
        call(llm, replace(ASK, messages=(Message("user", "word " * 3000),)))


def test_a_killed_server_is_started_again(settings: Settings, llm: CachedLLM) -> None:
    call(llm, ASK)
    before = state(settings).pid
    os.kill(before, signal.SIGKILL)
    assert call(llm, replace(ASK, seed=77)).text.strip()
    assert state(settings).pid != before


def test_it_ends_itself_when_unused(settings: Settings) -> None:
    stop_server(settings)
    brief = settings.model_copy(update={"llm_idle_minutes": 4 / 60})
    llm = load_llm(brief)
    call(llm, replace(ASK, prompt="idle/0"))
    pid, began, asked = state(brief).pid, time.monotonic(), 0
    while time.monotonic() - began < 6:  # use keeps it alive
        time.sleep(0.3)
        asked += 1
        call(llm, replace(ASK, prompt=f"idle/{asked}", max_tokens=1))
    assert state(brief).pid == pid
    deadline = time.monotonic() + 20
    while state(brief).phase != "off" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert state(brief).phase == "off"
    while running(pid) and time.monotonic() < deadline + 20:  # it says so first, and then frees its memory
        time.sleep(0.1)
    assert not running(pid)


def test_it_ends_itself_when_its_state_file_is_gone(settings: Settings, llm: CachedLLM) -> None:
    call(llm, replace(ASK, prompt="orphan/1"))
    process = psutil.Process(state(settings).pid)
    for file in (settings.models_dir / "run").glob("*.json"):
        file.unlink()
    psutil.wait_procs([process], timeout=30)
    assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_a_grammar_of_tables_lets_only_their_columns_be_written(llm: CachedLLM) -> None:
    """A model that would write anything writes a query that compiles; the server reads the whole grammar."""
    import sqlite3

    from core.backends.sql import Database
    from core.backends.sql.grammar import grammar
    from core.backends.sql.joins import declared
    from core.backends.sql.mending import normalised
    from tests.gbnf import Grammar

    connection = sqlite3.connect(":memory:")
    connection.executescript(
        'CREATE TABLE "it\'s an ""order""" (id INTEGER PRIMARY KEY, "näme \\ of" TEXT);'
        'CREATE TABLE line (order_id INTEGER REFERENCES "it\'s an ""order""", n INTEGER);'
    )
    database = Database(connection.serialize(), "d")
    rules = grammar(database.tables, declared(database.tables))
    for question in ("Say hello.", "SELECT price FROM product", "How many lines has each order?"):
        request = LLMRequest("test/5", (Message("user", question),), max_tokens=60, grammar=rules)
        found = llm.complete(request, timeout=60, cancel=threading.Event())
        left = Grammar(rules).follow(found.text)
        assert left == {""} or (found.finish == "length" and left == {"(unfinished)"}), found.text
        if found.finish == "stop":
            connection.execute(f"EXPLAIN {normalised(found.text)}").close()
    connection.close()
