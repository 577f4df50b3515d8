"""How programs find, share, start and give up the embedded server; no model is loaded here."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.backends.base import LLMRequest, Message
from core.backends.llm import launch, load_llm, server_state, start_server, stop_server
from core.backends.llm import launch as states
from core.backends.llm.launch import OFF, EmbeddedServer, ServerState
from core.backends.llm.server import counters, threads
from core.domain import settings as settings_module
from core.domain.errors import Cancelled, ModelTimedOut, Unavailable
from core.domain.settings import Settings
from tests.loopback import http, loopback

ASK = LLMRequest("test/1", (Message("user", "Hi"),), max_tokens=5)
NEVER = threading.Event()
HELLO = http('{"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}')


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    model = tmp_path / "bad.gguf"
    model.write_bytes(b"GGUF, but not really")
    return settings_module.load(home=tmp_path, models_dir=tmp_path / "models", llm=str(model))


def embedded(settings: Settings) -> EmbeddedServer:
    server = load_llm(settings).backend.server  # type: ignore[union-attr]
    states.folder(settings.models_dir)
    return server


def publish(settings: Settings, state: ServerState) -> Path:
    """As if a server had told its state."""
    path = embedded(settings)._file("json")
    states.write(path, state)
    return path


def test_the_state_is_for_its_user_only_and_its_key_is_not_shown(settings: Settings) -> None:
    state = states.ours().enter("ready", url="http://127.0.0.1:9", key="s3cret")
    path = publish(settings, state)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in path.parent.glob(f"{path.stem}*.json*")] == [path.name]
    assert server_state(settings) == state
    assert "s3cret" not in repr(server_state(settings))


@pytest.mark.parametrize("wrong", [{"pid": 2**22 - 7}, {"began": 1.0}])
def test_a_dead_process_or_another_one_with_its_number_is_not_the_server(
    settings: Settings, wrong: dict[str, Any]
) -> None:
    publish(settings, replace(states.ours().enter("ready", url="x", key="y"), **wrong))
    assert server_state(settings) == replace(OFF, detail="the last server died")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"phase": "ready", "more": 1}'])
def test_a_broken_state_file_counts_as_off(settings: Settings, text: str) -> None:
    embedded(settings)._file("json").write_text(text)
    assert replace(server_state(settings), detail="") == OFF


def test_another_users_state_is_not_trusted(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(settings, states.ours().enter("ready", url="http://127.0.0.1:9", key="theirs"))
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    state = server_state(settings)
    assert state is not None
    assert (state.phase, state.url) == ("off", "")
    assert "another user" in state.detail


@pytest.mark.parametrize("loads", [False, True])
def test_a_running_server_is_used_with_its_key_and_a_loading_one_waited_for(
    settings: Settings, loads: bool
) -> None:
    with loopback(HELLO) as server:
        loading = states.ours().enter("loading")
        ready = loading.enter("ready", url=server.url, key="its-key")
        publish(settings, loading if loads else ready)
        threading.Timer(0.3, publish, (settings, ready)).start()
        got = load_llm(settings).complete(ASK, timeout=5, cancel=NEVER)
        assert got.text == "Hello"
        heads = [sent.decode().lower() for sent in server.requests]
        assert all("authorization: bearer its-key" in head for head in heads)
        assert '"cache_prompt":false' in heads[-1].replace(" ", "")  # it was asked for its slots before


def test_waiting_ends_at_the_deadline_and_on_cancel(settings: Settings) -> None:
    publish(settings, states.ours().enter("loading"))
    began = time.monotonic()
    with pytest.raises(ModelTimedOut, match="was still loading"):
        load_llm(settings).complete(ASK, timeout=0.3, cancel=NEVER)
    assert time.monotonic() - began > 0.25
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    with pytest.raises(Cancelled):
        load_llm(settings).complete(ASK, timeout=30, cancel=cancel)


def test_a_server_that_died_is_started_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback(b"") as gone:
        pass
    me = states.ours()
    publish(settings, me.enter("ready", url=gone.url, key="k"))
    with loopback(HELLO) as server:
        revived = me.enter("ready", url=server.url, key="k2")
        llm = load_llm(settings)
        answers = chain([me.enter("ready", url=gone.url, key="k")], repeat(OFF))
        monkeypatch.setattr(EmbeddedServer, "state", lambda _: next(answers))
        monkeypatch.setattr(EmbeddedServer, "start", lambda _: revived)
        assert llm.complete(ASK, timeout=5, cancel=NEVER).text == "Hello"


@pytest.mark.process
def test_a_file_that_is_no_model_is_one_clear_line_and_is_not_tried_again_at_once(settings: Settings) -> None:
    llm = load_llm(settings)
    assert llm.status() is None
    for _ in range(2):
        with pytest.raises(Unavailable) as caught:
            llm.complete(ASK, timeout=30, cancel=NEVER)
        assert "did not start: llama.cpp cannot serve" in str(caught.value)
        assert "\n" not in str(caught.value)
    state = server_state(settings)
    assert state is not None
    assert state.phase == "failed"
    for child in list(launch._children):
        child.wait(10)
    server_state(settings)
    assert launch._children == []  # no zombie is left


def test_a_model_whose_content_changed_is_refused(settings: Settings, tmp_path: Path) -> None:
    server = EmbeddedServer("bad", tmp_path / "bad.gguf", tmp_path / "models", 512, 1.0, sha256="0" * 64)
    with pytest.raises(Unavailable, match="its sha256 is not the recorded one"):
        server.ready(deadline=time.monotonic() + 30, cancel=NEVER)


def test_secrets_of_this_program_are_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"ROUTESCOPE_LLM_API_KEY", "OPENAI_API_KEY", "MY_TOKEN", "OMP_NUM_THREADS"}
    for name in names:
        monkeypatch.setenv(name, "1")
    assert not names & set(launch._environment())
    assert "PATH" in launch._environment()


@pytest.mark.process
def test_stop_ends_the_process_and_forgets_it(settings: Settings) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    began = psutil.Process(child.pid).create_time()
    path = publish(settings, ServerState("ready", "", child.pid, began, time.time(), "u", "k"))
    reaper = threading.Thread(target=child.wait)
    reaper.start()
    stop_server(settings)
    reaper.join(5)
    assert child.returncode is not None
    assert not path.exists()
    stop_server(settings)  # nothing runs: nothing happens


def test_another_endpoint_has_no_server_and_without_the_model_file_none_is_started(tmp_path: Path) -> None:
    url = "http://localhost:1/v1"
    other = settings_module.load(home=tmp_path, models_dir=tmp_path, llm="m", llm_base_url=url)
    assert server_state(other) is None
    assert start_server(other) is None
    absent = settings_module.load(home=tmp_path, models_dir=tmp_path / "none", llm="smollm2-135m")
    assert start_server(absent) == OFF
    assert not (tmp_path / "none").exists()


def test_use_is_read_from_the_servers_own_counters() -> None:
    text = (
        "# HELP llamacpp:prompt_tokens_total x\nllamacpp:prompt_tokens_total 12\n"
        "llamacpp:prompt_tokens_cached_total 3\nllamacpp:tokens_predicted_total 4\n"
        "llamacpp:requests_processing {}\nllamacpp:requests_deferred {}\n"
    )
    assert counters(text.format(0, 0)) == (False, ("12", "3", "4"))
    assert counters(text.format(1, 0))[0]
    assert counters(text.format(0, 2))[0]


@pytest.mark.parametrize(("cores", "expected"), [(1, 1), (2, 2), (4, 3), (16, 15)])
def test_a_core_is_left_free_when_there_are_enough(
    cores: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    assert threads() == expected
