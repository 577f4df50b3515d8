"""Responses that unpack to far more than was sent cost one failed call, little memory and little time."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from core.backends.base import LLMRequest, Message
from core.backends.external.doors import Live, PipelineRequest
from core.backends.llm.client import ChatClient
from core.backends.llm.completions import CompletionsClient
from core.backends.llm.transport import MAX_BYTES
from core.backends.rerankers.cross import HttpReranker
from core.backends.searxng import Searxng
from core.domain.errors import RouteScopeError
from core.domain.pipelines import Pipeline
from core.domain.settings import PROJECT
from core.domain.types import Passage
from tests.loopback import http, loopback

pytestmark = pytest.mark.trust
GZIP, ZLIB, RAW = zlib.MAX_WBITS | 16, zlib.MAX_WBITS, -zlib.MAX_WBITS


def packed(body: bytes, encoding: str, wbits: int = GZIP) -> bytes:
    packer = zlib.compressobj(1, wbits=wbits)
    return http(packer.compress(body) + packer.flush(), more=f"Content-Encoding: {encoding}\r\n")


@cache
def bomb(encoding: str = "gzip", wbits: int = GZIP, megabytes: int = 300) -> bytes:
    """A response whose text has `megabytes` MB."""
    packer = zlib.compressobj(9, wbits=wbits)
    start, end = json.dumps({"choices": [{"message": {"content": "\n!"}, "text": "!"}]}).split("!", 1)
    body = packer.compress(start.encode())
    block = b"a" * 1_000_000
    for _ in range(megabytes):
        body += packer.compress(block)
    body += packer.compress(end.encode()) + packer.flush()
    return http(body, more=f"Content-Encoding: {encoding}\r\n")


def chat(url: str, kind: type[ChatClient] = ChatClient, *, streams: bool = False) -> Any:
    request = LLMRequest("test/1", (Message("user", "Hi"),), max_tokens=5)
    written = (lambda _: None) if streams else None
    made = kind(f"{url}/v1", model="tiny", key="sk-very-secret-0123", label="tiny")
    return made.complete(request, timeout=30, cancel=threading.Event(), written=written)


def pipeline(url: str) -> Any:
    asked = Live(Pipeline("mine", "http", f"{url}/search"))
    return asked.ask(PipelineRequest("why?", 3), timeout=30, cancel=threading.Event())


PASSAGE = Passage("a", "a", "Returns", "Send it back.")
CALLS: dict[str, Callable[[str], Any]] = {
    "chat": chat,
    "streamed chat": lambda url: chat(url, streams=True),
    "completions": lambda url: chat(url, CompletionsClient),
    "reranker": lambda url: HttpReranker(url).rerank("how?", [PASSAGE], timeout=30),
    "web search": lambda url: Searxng(url).search("duties", 5, timeout=30),
    "pipeline": pipeline,
}


@pytest.mark.parametrize("call", CALLS)
def test_a_bomb_is_a_failed_call_of_every_client(call: str) -> None:
    reply = bomb(megabytes=40)
    assert len(reply) < 100_000
    began = time.process_time()
    with loopback(reply) as server, pytest.raises(RouteScopeError, match="larger than 16 MiB"):
        CALLS[call](server.url)
    assert time.process_time() - began < 10
    assert len(server.requests) == 1  # the next would be as large


@pytest.mark.parametrize(
    "reply",
    [
        bomb("deflate", ZLIB, 40),
        bomb("x-gzip", GZIP, 40),
        packed(gzip.compress(b" " * (MAX_BYTES + 1)), "gzip, gzip"),
        packed(b"{}", "br"),
        packed(b"{}", "deflate", RAW),
        http(b"{}", more="Content-Encoding: gzip\r\n"),
    ],
    ids=["deflate", "x-gzip", "twice", "brotli", "raw deflate", "not gzip"],
)
def test_other_encodings_unpack_no_further_and_are_one_line(reply: bytes) -> None:
    with loopback(reply) as server, pytest.raises(RouteScopeError) as raised:
        chat(server.url)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(("encoding", "wbits"), [("gzip", GZIP), ("deflate", ZLIB), ("GZIP", GZIP)])
@pytest.mark.parametrize("size", [1, 65_536, 300_000])
def test_a_packed_answer_of_usual_size_is_read(encoding: str, wbits: int, size: int) -> None:
    body = json.dumps({"choices": [{"message": {"content": "Hello " + "x" * size}, "finish_reason": "stop"}]})
    with loopback(packed(body.encode(), encoding, wbits)) as server:
        assert chat(server.url).text == "Hello " + "x" * size


# Linux counts the memory of the process that starts a child as the child's own, so a small one starts it.
PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.process
def test_a_bomb_of_a_model_is_a_failed_answer_below_600_megabytes(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Returns are free for thirty days.")
    own = {"HOME": str(tmp_path / "home"), "LLM": "remote:tiny", "LLM_API_KEY": "sk-very-secret-0123"}
    command = [
        sys.executable,
        "-c",
        PEAK,
        sys.executable,
        "-m",
        "core",
        "ask",
        "Are returns free?",
        "--corpus",
        str(tmp_path / "docs"),
        "--routes",
        "bm25",
        "--answers",
        "all",
        "--json",
    ]
    with loopback(bomb()) as server:
        variables = {f"ROUTESCOPE_{name}": value for name, value in own.items()}
        asked = subprocess.run(
            command,
            cwd=PROJECT,
            env={**os.environ, **variables, "ROUTESCOPE_LLM_BASE_URL": f"{server.url}/v1"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        assert server.requests
    out, _, peak = asked.stdout.rstrip().rpartition("\n")
    (result,) = json.loads(out)["results"]
    assert result["hits"]
    assert "larger than 16 MiB" in json.dumps(result)
    assert int(peak) < 600_000  # kB
