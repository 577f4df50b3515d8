"""Cache, recordings and the modes that order them."""

from __future__ import annotations

import json
import pickle
import shutil
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.base import Completion, LLMRequest, Message, TokenLogprob
from core.backends.llm import load_llm
from core.backends.llm.cache import COST_ONLY, CompletionCache, canonical, from_plain, key_of, to_plain
from core.backends.llm.model import CachedLLM
from core.backends.llm.recordings import Recordings
from core.domain import settings as settings_module
from core.domain.errors import BadInput, Unavailable
from core.domain.settings import PROJECT, Settings

ASK = LLMRequest("test/1", (Message("user", "Hi"),), max_tokens=5)
DONE = Completion("Hello", "tiny", "stop", 1234.5, 9, 1, 4, created="2026-01-02T03:04:05+00:00")
NEVER = threading.Event()

number = st.floats(-1e4, 0, allow_nan=False)
completion = st.builds(
    Completion,
    text=st.text(),
    model=st.text(),
    finish=st.sampled_from(["stop", "length"]),
    ms=st.floats(0, 1e6),
    prompt_tokens=st.integers(0),
    completion_tokens=st.integers(0),
    cached_tokens=st.integers(0),
    created=st.text(),
    source=st.just("cache"),
    logprobs=st.lists(
        st.builds(TokenLogprob, st.text(), number, st.lists(st.tuples(st.text(), number)).map(tuple)),
        max_size=3,
    ).map(tuple),
)


class Model:
    """Counts its calls."""

    endpoint, local, model, identity = "embedded", True, "tiny", "tiny"

    def __init__(self, missing: str | None = None) -> None:
        self.calls, self.missing = 0, missing

    def status(self) -> str | None:
        return self.missing

    def complete(
        self, request: LLMRequest, *, timeout: float, cancel: threading.Event, written: Any = None
    ) -> Completion:
        self.calls += 1
        if self.missing:
            raise Unavailable(self.missing)
        return replace(DONE, text=f"{request.messages[0].content} #{self.calls}")


def cached(folder: Path, model: Any, mode: str = "live", home: str = "home") -> CachedLLM:
    cache = CompletionCache(folder / home / "llm.sqlite")
    return CachedLLM(model, cache=cache, recordings=Recordings(folder / "recordings"), mode=mode)


def call(llm: Any, request: LLMRequest = ASK) -> Completion:
    return llm.complete(request, timeout=5, cancel=NEVER)


@given(completion)
def test_a_completion_survives_json(made: Completion) -> None:
    assert from_plain(json.loads(canonical(to_plain(made))), "cache") == made


def test_everything_that_decides_the_answer_is_in_the_key() -> None:
    base = key_of(ASK, endpoint="e", model="m")
    changes: list[dict[str, Any]] = [
        {"prompt": "test/2"},
        {"messages": (Message("system", "Hi"),)},
        {"messages": ASK.messages * 2},
        {"max_tokens": 6},
        {"temperature": 0.1},
        {"seed": 1},
        {"top_logprobs": 1},
        {"schema": {}},
        {"stop": ("x",)},
        {"grammar": 'root ::= "a"'},
    ]
    keys = [key_of(replace(ASK, **change), endpoint="e", model="m") for change in changes]
    keys += [key_of(ASK, endpoint="f", model="m"), key_of(ASK, endpoint="e", model="n"), base]
    assert len(set(keys)) == len(keys)
    assert {f.name for f in fields(LLMRequest)} == {*COST_ONLY}.union(*changes)
    # The fields that do not decide the answer: what was made without them stays good.
    for field in COST_ONLY:
        assert base == key_of(replace(ASK, **{field: True}), endpoint="e", model="m")


def test_live_asks_once_and_tells_where_the_answer_is_from(tmp_path: Path) -> None:
    model = Model()
    first, second = call(cached(tmp_path, model)), call(cached(tmp_path, model))
    assert (first.source, second.source, model.calls) == ("live", "cache", 1)
    assert replace(second, source="live") == first  # the original time too
    assert cached(tmp_path, model).recorded(ASK)
    assert not cached(tmp_path, model).recorded(replace(ASK, seed=9))


def test_record_ignores_the_cache_but_not_the_recordings(tmp_path: Path) -> None:
    model = Model()
    call(cached(tmp_path, model))
    llm = cached(tmp_path, model, "record")
    assert not llm.recorded(ASK)
    assert [call(llm).source, call(llm).source, model.calls] == ["live", "recording", 2]


def test_recordings_answer_without_a_model_and_status_still_tells_what_is_missing(tmp_path: Path) -> None:
    made = call(cached(tmp_path, Model(), "record"))
    gone = Model(missing="not downloaded")
    for mode in ("live", "replay"):
        llm = cached(tmp_path, gone, mode, home=mode)
        assert call(llm) == replace(made, source="recording")
        assert llm.recorded(ASK)
        assert llm.status() == ("not downloaded" if mode == "live" else None)
    assert gone.calls == 0
    with pytest.raises(Unavailable, match="not downloaded"):
        call(cached(tmp_path, gone, home="live"), replace(ASK, seed=2))


def test_replay_never_calls_and_uses_no_recording_of_another_model_or_endpoint(tmp_path: Path) -> None:
    model = Model()
    llm = cached(tmp_path, model, "replay")
    assert "nothing of tiny is recorded" in str(llm.status())
    with pytest.raises(Unavailable, match=r"not recorded: test/1 by tiny"):
        call(llm)
    assert model.calls == 0
    call(cached(tmp_path, Model(), "record"))
    for name, value in (("identity", "other"), ("endpoint", "http://x/v1")):
        setattr(other := Model(), name, value)
        assert not cached(tmp_path, other, home=name).recorded(ASK)


def test_failures_are_not_kept(tmp_path: Path) -> None:
    llm = cached(tmp_path, Model(missing="down"), "record")
    with pytest.raises(Unavailable):
        call(llm)
    assert not llm.recorded(ASK)
    assert not list(tmp_path.glob("recordings/*.jsonl"))


def test_recordings_are_sorted_and_the_same_whatever_the_order(tmp_path: Path) -> None:
    """Also when threads write them."""
    asks = [replace(ASK, prompt=f"p/{n % 3}", seed=n) for n in range(24)]
    texts = []
    for turn, order in enumerate((asks, asks[::-1])):

        def add(request: LLMRequest, folder: Path = tmp_path / str(turn)) -> None:
            key = key_of(request, endpoint="e", model="org/tiny:1")
            Recordings(folder).add(key, request, DONE, endpoint="e", model="org/tiny:1")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(add, order))
        texts.append((tmp_path / str(turn) / "org_tiny_1.jsonl").read_text())
    assert texts[0] == texts[1]
    lines = [json.loads(line) for line in texts[0].splitlines()]
    assert len(lines) == 24
    shown = [(x["request"]["prompt"], x["key"]) for x in lines]
    assert shown == sorted(shown)
    assert set(lines[0]) == {"key", "endpoint", "model", "request", "completion", "ms", "created"}


def test_a_broken_line_is_told_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Recordings(tmp_path)
    store.add("k1", ASK, DONE, endpoint="e", model="m")
    with (tmp_path / "m.jsonl").open("a") as file:
        file.write('{"key": "k2", "comp\n[]\n{"key": "k3", "completion": {"text": 1}}\n')
    assert store.get("k1") == replace(DONE, source="recording")
    assert store.get("k2") is None
    assert store.get("k3") is None
    assert "m.jsonl line 2 is not a recording" in caplog.text


def _no_database(home: Path) -> None:
    for leftover in home.iterdir():
        leftover.unlink()
    (home / "llm.sqlite").write_bytes(b"not a database, surely" * 100)


def _no_completion(home: Path) -> None:
    with sqlite3.connect(home / "llm.sqlite") as db:
        db.execute("update entries set value = '{\"text\": 1}'")


def _no_folder(home: Path) -> None:
    shutil.rmtree(home)
    home.touch()


@pytest.mark.parametrize(
    ("damage", "faults"),
    [(_no_database, ("read", "written")), (_no_completion, ("read",)), (_no_folder, ("written",))],
)
def test_a_damaged_cache_is_a_warning_and_calls_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Any, faults: tuple[str, ...]
) -> None:
    call(cached(tmp_path, Model()))
    damage(tmp_path / "home")
    assert call(cached(tmp_path, Model())).source == "live"
    for fault in faults:
        assert f"cannot be {fault}" in caplog.text


def test_recordings_that_cannot_be_written_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "recordings").write_text("a file where the folder should be")
    with pytest.raises(Unavailable, match="cannot record into"):
        call(cached(tmp_path, Model(), "record"))


@pytest.mark.process
def test_threads_and_processes_share_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "llm.sqlite"
    code = (
        "import sys, pathlib, pickle; sys.path.insert(0, sys.argv[1])\n"
        "from core.backends.llm.cache import CompletionCache\n"
        "ask, done = pickle.loads(bytes.fromhex(sys.argv[4]))\n"
        "cache = CompletionCache(pathlib.Path(sys.argv[2]))\n"
        "[cache.keep(f'{sys.argv[3]}-{n}', done) for n in range(50)]\n"
        "sys.exit(cache.problem or 0)\n"
    )
    given = pickle.dumps((ASK, DONE)).hex()
    others = [
        subprocess.Popen([sys.executable, "-c", code, str(PROJECT), str(path), name, given]) for name in "ab"
    ]
    cache = CompletionCache(path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: cache.keep(f"t-{n}", DONE), range(100)))
    assert [other.wait() for other in others] == [0, 0]
    assert cache.problem is None
    with sqlite3.connect(path) as db:
        assert db.execute("select count(*) from entries").fetchone() == (200,)


@pytest.mark.process
def test_importing_and_answering_from_a_recording_needs_no_heavy_library(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    key = key_of(ASK, endpoint="embedded", model="qwen2.5-coder-1.5b")
    Recordings(recordings).add(key, ASK, DONE, endpoint="embedded", model="qwen2.5-coder-1.5b")
    code = (
        "import sys, pathlib, threading; sys.path.insert(0, sys.argv[1]); here = pathlib.Path(sys.argv[2])\n"
        "from core.domain import settings\n"
        "from core.backends.llm import load_llm, server_state\n"
        "from core.backends.base import LLMRequest, Message\n"
        "llm = load_llm(settings.load(home=here, models_dir=here), recordings=here / 'recordings')\n"
        "ask = LLMRequest('test/1', (Message('user', 'Hi'),), max_tokens=5)\n"
        "got = llm.complete(ask, timeout=1, cancel=threading.Event())\n"
        "assert got.source == 'recording' and got.text == 'Hello', got\n"
        "assert 'models pull qwen2.5-coder-1.5b' in llm.status()\n"
        "assert server_state(settings.load(home=here, models_dir=here)).phase == 'off'\n"
        "heavy = {'openai', 'httpx2', 'xllamacpp', 'torch', 'transformers', 'streamlit'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code, str(PROJECT), str(tmp_path)], check=True)


def settings(tmp_path: Path, **more: Any) -> Settings:
    return settings_module.load(home=tmp_path, models_dir=tmp_path, **more)


@pytest.mark.parametrize(
    ("url", "endpoint", "local"),
    [
        ("http://LOCALHOST:8080/v1/", "http://localhost:8080/v1", True),
        ("http://127.0.0.2/v1", "http://127.0.0.2/v1", True),
        ("http://[::1]:9/v1", "http://[::1]:9/v1", True),
        ("https://api.example.com/v1", "https://api.example.com/v1", False),
        *(
            (url, None, None)
            for url in (
                "ftp://x/v1",
                "localhost:80",
                "http://",
                "http://x:99999/",
                "http://a:pw9@x",
                "http://x?k=pw9",
            )
        ),
    ],
)
def test_a_base_url_is_named_in_one_form_or_refused(
    tmp_path: Path, url: str, endpoint: str | None, local: bool | None
) -> None:
    given = settings(tmp_path, llm_base_url=url, llm="m")
    if endpoint is None:
        with pytest.raises(BadInput, match="llm_base_url") as caught:
            load_llm(given)
        assert "pw9" not in str(caught.value)
    else:
        llm = load_llm(given)
        assert (llm.endpoint, llm.local, llm.model, llm.status()) == (endpoint, local, "m", None)


def test_an_unknown_model_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"'gpt-9'.*qwen2\.5-coder-1\.5b, qwen2\.5-coder-0\.5b, smollm2-135m"):
        load_llm(settings(tmp_path, llm="gpt-9"))


def test_a_local_file_is_a_model_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    absent = load_llm(settings(tmp_path, llm=str(path)))
    assert absent.status() == f"no model file {path}"
    with pytest.raises(Unavailable, match="no model file"):
        call(absent)
    path.write_bytes(b"x")
    assert load_llm(settings(tmp_path, llm=str(path))).status() is None


def kept(cache: CompletionCache, keys: range) -> list[int]:
    return [n for n in keys if cache.completion(f"key {n}") is not None]


def stored(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


@pytest.mark.slow
def test_the_cache_stays_within_its_bound_and_forgets_what_was_used_longest_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = [20_000 * 86_400.0]
    monkeypatch.setattr("core.backends.cache_file.time.time", lambda: day[0])
    cache = CompletionCache(tmp_path / "llm.sqlite", limit_mb=1)

    def put(keys: range) -> None:
        for n in keys:
            cache.keep(f"key {n}", replace(DONE, text="x" * 20_000, created=f"2026, {n:04}"))

    put(range(40))
    assert kept(cache, range(40)) == list(range(40))
    day[0] += 86_400
    assert kept(cache, range(5)) == list(range(5))  # used again, a day later
    put(range(40, 70))
    there = kept(cache, range(70))
    assert set(range(5)) < set(there), "what was used lately stays"
    assert set(range(60, 70)) < set(there), "and what is new"
    assert not set(there) & set(range(5, 15)), "what was used longest ago is gone"
    with sqlite3.connect(cache.path) as db:
        assert db.execute("select count(*) from entries").fetchone()[0] == len(there)
    put(range(1000, 1100))
    assert stored(cache.path) < 8_000_000  # the file, with the log that is emptied now and then
    assert cache.problem is None


def test_an_answer_is_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    cache = CompletionCache(tmp_path / "llm.sqlite")
    cache.keep("key", DONE)
    with sqlite3.connect(cache.path) as db:
        db.execute("update entries set used = 1")
        db.execute("create trigger no before update on entries begin select raise(abort, 'read only'); end")
    assert cache.completion("key") == replace(DONE, source="cache")
    assert "read only" in (cache.problem or "")
