"""A key that the endpoint repeats in every way is nowhere: cache, recordings, store, exports, output, log."""

from __future__ import annotations

import json
import logging
import zipfile
from io import BytesIO
from typing import Any
from urllib.parse import quote

import pytest

from core.backends.llm import load_llm
from core.cli import main
from core.domain import settings as settings_module
from core.domain.redact import MARK
from core.domain.settings import Settings
from core.engine import engine as engine_module
from core.store import Store
from tests.fakes import FakeEngine
from tests.loopback import http, loopback

KEY = "sk-Canary/4f9a7c2e+1b8d5a90"
OTHER = "rk-Canary-91c0d2e3f4a5b6c7"  # of the reranker: not sent here, but known
CODED = quote(KEY, safe="")
ECHO = f"Your key is {KEY}, coded {CODED}, begins {KEY[:10]}, ends {KEY[-9:]}, the other {OTHER}."


def leaks(data: bytes | str) -> list[str]:
    """The parts of the keys that are in `data`, as text or coded."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    text += text.replace("\\/", "/")
    parts = {key[at : at + 8] for key in (KEY, OTHER) for at in range(len(key) - 7)}
    return sorted(part for part in parts if part in text or quote(part, safe="") in text)


def answer(server: Any, talk: Any, sent: bytes) -> None:
    """Echoes the key as text, streamed or whole, with token probabilities, in headers and in errors."""
    assert KEY.encode() in sent  # it was sent, else nothing could be echoed
    more = f"X-Echo: {KEY}\r\n"
    if sent.startswith(b"GET"):
        models = [{"id": KEY, "max_model_len": 4096}, {"id": "echo", "owned_by": ECHO, "max_model_len": 8192}]
        talk.sendall(http(json.dumps({"object": "list", "data": models}), more=more))
        return
    asked = json.loads(sent.split(b"\r\n\r\n", 1)[1])
    if len(server.requests) % 3 == 0:
        talk.sendall(http(f"bad key {ECHO}", status="400 Bad Request", kind="text/plain", more=more))
    elif asked.get("stream"):
        pieces = [ECHO[at : at + 5] for at in range(0, len(ECHO), 5)]
        lines = [
            json.dumps({"choices": [{"delta": {"content": one}, "finish_reason": None}]}) for one in pieces
        ]
        lines.append(json.dumps({"model": KEY, "choices": [{"delta": {}, "finish_reason": "stop"}]}))
        body = "".join(f"data: {line}\n\n" for line in lines) + "data: [DONE]\n\n"
        talk.sendall(http(body, kind="text/event-stream", more=more))
    else:
        tokens = [
            {
                "token": ECHO[at : at + 4],
                "logprob": -0.1,
                "top_logprobs": [{"token": ECHO[at : at + 4], "logprob": -0.1}],
            }
            for at in range(0, len(ECHO), 4)
        ]
        message = {"role": "assistant", "content": ECHO}
        first = {"message": message, "finish_reason": KEY, "logprobs": {"content": tokens}}
        talk.sendall(http(json.dumps({"model": f"m {KEY}", "choices": [first]}), more=more))


@pytest.fixture
def call(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capfd: Any, caplog: Any) -> Any:
    """What the command line says, with everything logged; the engine talks to the endpoint above."""
    caplog.set_level(logging.DEBUG)
    with loopback(answer) as server:
        settings = {
            "llm": "echo",
            "llm_base_url": f"{server.url}/v1",
            "llm_api_key": KEY,
            "reranker_api_key": OTHER,
            "llm_mode": "record",
        }
        now = Settings(home=tmp_path, **settings)
        store = Store(tmp_path / "routescope.sqlite")
        engine = FakeEngine(tmp_path, store=store, llm=load_llm(now, recordings=tmp_path / "recordings"))
        engine.settings = now
        monkeypatch.setattr(engine_module, "shared_engine", lambda: engine)
        monkeypatch.setattr(settings_module, "current", lambda: now)

        def run(*args: str) -> tuple[int, str, str]:
            code = main(list(args))
            assert store.flush()
            return code, *capfd.readouterr()

        run.server, run.home = server, tmp_path  # type: ignore[attr-defined]
        yield run
        store.close()


@pytest.mark.slow
@pytest.mark.trust
def test_a_canary_key_is_nowhere(call: Any, caplog: Any) -> None:
    # Some of their calls write, some grade by token probabilities, each third fails and repeats the key.
    code, out, err = call(
        "ask",
        "My box arrived crushed",
        "--corpus",
        "tiny",
        "--routes",
        "hyde,rewrite,crag,bm25",
        "--answers",
        "all",
        "--json",
        "--debug",
    )
    assert code == 0, err
    run = json.loads(out)
    assert len(call.server.requests) > 3
    assert MARK in out  # the echo was there
    places = {"command line": out, "errors": err, "log": caplog.text}
    for kind in ("bundle", "jsonl", "trec"):
        file = call.home / f"out.{kind}"
        assert call("export", run["run_id"], "--format", kind, "--out", str(file))[0] == 0
        data = file.read_bytes()
        places[kind] = (
            "".join(
                archive.read(name).decode("utf-8", "replace")
                for archive in [zipfile.ZipFile(BytesIO(data))]
                for name in archive.namelist()
            )
            if kind == "bundle"
            else data.decode()
        )
    files = [path for path in call.home.rglob("*") if path.is_file()]
    assert {"answers.sqlite", "routescope.sqlite", "echo.jsonl"} <= {path.name for path in files}
    places |= {
        str(path.relative_to(call.home)): path.read_bytes().decode("utf-8", "replace") for path in files
    }
    assert {place: found for place, text in places.items() if (found := leaks(text))} == {}
    assert any(MARK in str(span["error"]) for one in run["results"] for span in one["spans"])
