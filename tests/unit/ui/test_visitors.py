"""Who may talk to the server, and what of those who leave is logged."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.websockets import WebSocketDisconnected
from streamlit import config

from ui.app.visitors import Departures, OwnOrigin, configured, exposed, is_own

OWN = """http://localhost:8501 localhost:8501, https://app.example app.example,
http://[::1]:8501 [::1]:8501, HTTP://LocalHost:8501 localhost:8501,
http://app.example app.example:80, https://app.example app.example:443"""
FOREIGN = """http://localhost:8502 localhost:8501, http://localhost localhost:8501, null localhost:8501,
http://127.0.0.1:8501 localhost:8501, https://app.example:8443 app.example,
http://app.example:443 app.example:80, ftp://localhost:8501 localhost:8501,
http://localhost:x localhost:8501, http://localhost:99999 localhost:8501, http://[::1 localhost:8501"""


def test_host_and_port_are_compared():
    for pairs, own in ((OWN, True), (FOREIGN, False)):
        for origin, host in map(str.split, pairs.split(",")):
            assert is_own(origin, {host}) is own, (origin, host)
    assert not is_own("", {""})


def test_what_is_configured_is_own_too(monkeypatch):
    """As behind a proxy that changes Host; nothing is configured unless somebody does."""
    assert configured() == set()
    given = {
        "server.corsAllowedOrigins": ["https://app.example", " http://other.example:81"],
        "browser.serverAddress": "Scope.example",
        "browser.serverPort": 443,
    }
    monkeypatch.setattr(config, "get_option", given.__getitem__)
    monkeypatch.setattr(config, "is_manually_set", lambda name: name in given)
    assert configured() == {"app.example", "other.example:81", "scope.example:443"}
    assert is_own("https://scope.example", configured())
    assert not is_own("http://scope.example", configured())


def test_others_reach_what_listens_on_more_than_loopback(monkeypatch):
    loopback = ("127.0.0.1", "localhost", "::1", "127.0.0.5", "unix:///run/x")
    for address in (*loopback, "0.0.0.0", "::", "192.168.1.5", None, "", "scope.example"):
        monkeypatch.setattr(config, "get_option", {"server.address": address}.__getitem__)
        assert exposed() is (address not in loopback), address


def talked(middleware, scope, received=()):
    """What the server is told to send when `scope` comes in."""
    sent, waiting = [], list(received)

    async def receive():
        return waiting.pop(0)

    async def send(message):
        sent.append(message)

    with ThreadPoolExecutor(1) as apart:  # browser tests leave a loop running in this thread
        apart.submit(asyncio.run, middleware(scope, receive, send)).result()
    return sent


@pytest.mark.trust
@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    ("origins", "passes"),
    [
        ([], True),
        (["http://here:1"], True),
        (["http://here:2"], False),
        (["http://here:1", "http://here:2"], False),
    ],
)
def test_only_the_own_origin_passes(kind, origins, passes):
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    headers = [(b"host", b"here:1"), *((b"origin", origin.encode()) for origin in origins)]
    sent = talked(OwnOrigin(app), {"type": kind, "headers": headers})
    assert bool(seen) is passes
    if not passes:
        assert sent[0] == {"type": "websocket.close", "code": 1008} or sent[0]["status"] == 403


def test_who_went_away_is_no_error(caplog):
    async def app(scope, receive, send):
        raise WebSocketDisconnected("gone")

    assert talked(Departures(app), {"type": "websocket"}) == []
    streamlit = logging.getLogger("streamlit.web.server.starlette.starlette_websocket")
    for error in (WebSocketDisconnected("gone"), ValueError("other")):
        try:
            raise error
        except (WebSocketDisconnected, ValueError):
            streamlit.exception("Error sending websocket payload: %s", error)
    assert [record.getMessage()[-5:] for record in caplog.records] == ["other"]


def test_text_ends_a_connection_that_speaks_in_bytes():
    seen = []

    async def app(scope, receive, send):
        while (message := await receive())["type"] != "websocket.disconnect":
            seen.append(message["bytes"])

    frames = [
        {"type": "websocket.receive", "bytes": b"x"},
        {"type": "websocket.receive", "text": "x", "bytes": None},
    ]
    assert talked(Departures(app), {"type": "websocket"}, frames) == [
        {"type": "websocket.close", "code": 1003}
    ]
    assert seen == [b"x"]
