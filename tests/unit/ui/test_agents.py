"""Tools for agents over HTTP, on the real server: who may use them, asked by the protocol's own client."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from core.domain.program import PROJECT
from scripts.serving import served

pytestmark = [pytest.mark.process, pytest.mark.trust]
TOKENS = {who: f"{who}-token-of-43-characters" for who in ("ann", "bob", "cat", "@all")}
SETTINGS = """
[team.roles]
"ann@example.org" = "owner"
"bob@example.org" = "viewer"

[team.tokens]
""" + "".join(
    f'{hashlib.sha256(token.encode()).hexdigest()} = "{who}@example.org"\n' for who, token in TOKENS.items()
)
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
JSON = {"Accept": "application/json, text/event-stream"}
LOGIN = {"ROUTESCOPE_PROXY_HEADER": "X-Forwarded-Email", "ROUTESCOPE_PROXY_ADDRESSES": "127.0.0.1"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the corpus `faq`."""
    made = tmp_path_factory.mktemp("agents")
    (made / "faq").mkdir()
    (made / "faq" / "returns.md").write_text("Start a return on the page Orders.", encoding="utf-8")
    command = [sys.executable, "-m", "core", "index", str(made / "faq")]
    subprocess.run(command, cwd=PROJECT, env=_environment(made), check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def team(home: Path) -> Iterator[str]:
    """The address of a team's server."""
    (home / "routescope.toml").write_text(SETTINGS, encoding="utf-8")
    with served(home / "log", {**_environment(home), **LOGIN}) as (there, _):
        yield f"{there}/mcp"


def _environment(home: Path) -> dict[str, str]:
    return {"ROUTESCOPE_HOME": str(home), "ROUTESCOPE_LLM_MODE": "replay", "PATH": "/usr/bin:/bin"}


def call(address: str, tool: str, who: str = "", **arguments: object) -> Any:
    """Return what a tool tells, or its error as text."""
    headers = {"Authorization": f"Bearer {TOKENS[who]}"} if who else {}

    async def talk() -> Any:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            return await client.call_tool(tool, arguments)

    result = anyio.run(talk)
    return result.content[0].text if result.is_error else result.structured_content


def ask(address: str, who: str = "", routes: tuple[str, ...] = ("bm25",)) -> Any:
    return call(address, "ask", who, question="How do I return it?", corpus="faq", routes=routes)


def test_a_role_says_what_an_agent_may_do(team: str) -> None:
    hers = ask(team, "ann")
    assert [one["status"] for one in hers["routes"]] == ["ok"]
    assert ask(team, "bob")["run"] != hers["run"]
    assert (
        call(team, "why", "ann", run=hers["run"], passage="returns.md:0-34")["untrusted_run"] == hers["run"]
    )
    assert hers["run"] in json.loads(call(team, "why", "bob", run=hers["run"]))["untrusted_error"]
    assert "labeller" in json.loads(ask(team, "bob", ("hyde",)))["untrusted_error"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": "Bearer unknown", "X-Forwarded-Email": "ann@example.org"}, 401),
        ({"Authorization": f"Basic {TOKENS['ann']}"}, 401),
        ({"Authorization": f"Bearer {TOKENS['@all']}"}, 401),
        ({"Authorization": f"Bearer {TOKENS['cat']}"}, 403),
        ({"X-Forwarded-Email": "cat@example.org"}, 403),
        ({"Authorization": f"Bearer {TOKENS['ann']}", "Origin": "http://elsewhere.example"}, 403),
        ({"Authorization": f"Bearer {TOKENS['ann']}", "Host": "elsewhere.example"}, 400),
        ({"Authorization": f"Bearer {TOKENS['ann']}"}, 200),
        ({"X-Forwarded-Email": "bob@example.org"}, 200),
    ],
)
def test_nobody_without_a_role_is_answered(team: str, headers: Mapping[str, str], status: int) -> None:
    reply = httpx2.post(team, json=LIST, headers={**JSON, **headers})
    assert (reply.status_code, "ask" in reply.text) == (status, status == 200)


def test_there_is_nothing_to_wait_for(team: str) -> None:
    reply = httpx2.get(team, headers={**JSON, "Authorization": f"Bearer {TOKENS['ann']}"})
    assert reply.status_code == 405


def test_without_a_login_the_machine_itself_is_answered(home: Path) -> None:
    (home / "routescope.toml").unlink(missing_ok=True)
    with served(home / "log", _environment(home)) as (there, _):
        assert [one["status"] for one in ask(f"{there}/mcp")["routes"]] == ["ok"]
