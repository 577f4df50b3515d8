"""Addresses that are never called, those of one's own network, and names that lead to either."""

import json
import socket
import threading
from urllib.parse import urlsplit

import httpcore2
import pytest

from core.backends.base import LLMRequest, Message
from core.backends.llm import pace
from core.backends.llm.client import ChatClient
from core.backends.llm.completions import CompletionsClient
from core.backends.llm.model import clean_url
from core.backends.rerankers import cross as rerankers
from core.backends.rerankers.cross import HttpReranker
from core.backends.searxng import Searxng
from core.backends.searxng import endpoint as search_endpoint
from core.domain import reach
from core.domain.errors import BadInput, RouteScopeError
from core.domain.types import Passage
from tests.loopback import http, loopback

# However it is written: in decimal, hexadecimal and octal, in parts, mapped into IPv6, and by name.
NEVER = """
169.254.169.254 169.254.0.1 169.254.170.2 2852039166 0xA9FEA9FE 0xa9.0xfe.0xa9.0xfe 0251.0376.0251.0376
169.254.43518 169.16689662 169.254.169.254. [fe80::1] [febf::1] [fd00:ec2::254] [fd00:ec2::23] [fd20:ce::254]
[::ffff:169.254.169.254] [::ffff:a9fe:a9fe] [64:ff9b::a9fe:a9fe] [2002:a9fe:a9fe::1] [::169.254.169.254]
100.100.100.200 168.63.129.16 192.0.0.192 metadata.google.internal METADATA.Google.Internal.
x.metadata.google.internal metadata instance-data metadata.goog 224.0.0.1 [ff02::1] 255.255.255.255
"""
OWN = """
127.0.0.1 localhost a.localhost 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 2130706433 0x7f.1 0.0.0.0 [::1]
[::] [fc00::1] [fd12::1] [::ffff:10.0.0.1] 100.64.0.1
"""
PUBLIC = "93.184.216.34 [2606:2800:220:1::1] 172.32.0.1 models.example 10.example metadata.example"


@pytest.mark.trust
@pytest.mark.parametrize("host", NEVER.split())
def test_where_clouds_keep_keys_is_refused_however_it_is_written(host):
    assert reach.named(host, private=True)
    for address in (clean_url, search_endpoint, rerankers.endpoint):
        with pytest.raises(BadInput, match=r"called$") as caught:
            address(f"http://{host}:8000/v1")
        assert "\n" not in str(caught.value)


@pytest.mark.trust
@pytest.mark.parametrize("host", OWN.split())
def test_addresses_of_ones_own_are_for_who_runs_it(host):
    assert reach.named(host, private=True) is None
    assert "must be public" in str(reach.named(host, private=False))
    assert clean_url(f"http://{host}:8000/v1")


@pytest.mark.parametrize("host", PUBLIC.split())
def test_other_addresses_are_for_all(host):
    assert reach.named(host, private=False) is None


ASK = LLMRequest("test/1", (Message("user", "Hi"),), max_tokens=5)
STOP = threading.Event


def chat(url, **more):
    made = ChatClient(f"{url}/v1", model="m", key="", label="chat", **more)
    return made.complete(ASK, timeout=20, cancel=STOP())


def completions(url, **more):
    made = CompletionsClient(f"{url}/v1", model="m", key="", label="completions", **more)
    return made.complete(ASK, timeout=20, cancel=STOP())


def rerank(url, **more):
    return HttpReranker(url, **more).rerank("q", [Passage("p", "d", "t", "x")])


def search(url, **more):
    return Searxng(url, **more).search("q", 5, timeout=20)


CLIENTS = (chat, completions, rerank, search)
CHOICE = {"message": {"content": "Hello"}, "text": "Hello", "finish_reason": "stop"}
RESULT = {"index": 0, "relevance_score": 1, "url": "http://a.example/", "content": "x"}
GOOD = http(json.dumps({"choices": [CHOICE], "results": [RESULT]}))


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Calls are made again at once."""
    monkeypatch.setattr(pace, "PAUSE_S", 0.001)


@pytest.fixture
def names(monkeypatch):
    """Has a function tell the addresses of names; gives what was looked up."""
    asked = []

    def answer(find):
        def getaddrinfo(host, port, *_, **__):
            asked.append(host)
            kinds = [(socket.AF_INET6 if ":" in one else socket.AF_INET, one) for one in find(host)]
            return [(kind, socket.SOCK_STREAM, 6, "", (one, port)) for kind, one in kinds]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        return asked

    return answer


@pytest.mark.trust
@pytest.mark.parametrize("call", CLIENTS)
@pytest.mark.parametrize(
    ("found", "private", "why"),
    [
        (["169.254.169.254"], True, "link-local"),
        (["fe80::1%eth0"], True, "link-local"),
        (["fd00:ec2::254"], True, "serves cloud credentials"),
        (["::ffff:169.254.169.254"], True, "link-local"),
        (["127.0.0.1", "169.254.169.254"], True, "link-local"),  # it might be the next one's turn
        (["127.0.0.1"], False, "must be public"),
        (["10.0.0.7"], False, "must be public"),
        (["93.184.216.34", "::1"], False, "must be public"),
    ],
)
def test_a_name_that_leads_there_is_not_called(call, found, private, why, names):
    asked = names(lambda _: found)
    with loopback(GOOD) as server, pytest.raises(RouteScopeError) as caught:
        call(server.url.replace("127.0.0.1", "models.example"), private=private)
    assert asked == ["models.example"], "it is not tried again"
    assert "is not called: models.example leads to " in str(caught.value)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
    assert server.requests == []


@pytest.mark.trust
@pytest.mark.parametrize("call", CLIENTS)
def test_what_was_checked_is_what_is_called(call, names):
    """Rebinding: the second look would lead to the keys of a cloud; there is none."""
    turns = iter([["127.0.0.1"], ["169.254.169.254"], ["169.254.169.254"]])
    asked = names(lambda _: next(turns))
    with loopback(GOOD) as server:
        call(server.url.replace("127.0.0.1", "models.example"))
    assert asked == ["models.example"]
    port = urlsplit(server.url).port
    assert f"host: models.example:{port}".encode() in server.requests[0].lower()


@pytest.mark.parametrize("call", CLIENTS)
def test_an_address_that_takes_no_connection_is_no_reason_to_leave_out_the_next(call, names):
    names(lambda _: ["::1", "127.0.0.1"])
    with loopback(GOOD) as server:  # listens on 127.0.0.1 alone
        call(server.url.replace("127.0.0.1", "models.example"))
    assert len(server.requests) == 1


@pytest.mark.parametrize("call", CLIENTS)
def test_tls_is_asked_for_the_name(call, names, monkeypatch):
    connected, wanted = [], []

    class Stream(httpcore2.AsyncNetworkStream):
        async def start_tls(self, ssl_context, server_hostname=None, timeout=None):
            wanted.append(server_hostname)
            assert ssl_context.check_hostname
            raise httpcore2.ConnectError("that is all")

    async def connect_tcp(_, host, *__, **___):
        connected.append(host)
        return Stream()

    names(lambda _: ["93.184.216.34"])
    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect_tcp)
    with pytest.raises(RouteScopeError, match="that is all"):
        call("https://models.example", private=False)
    assert set(connected) == {"93.184.216.34"}, "also if it is tried again"
    assert set(wanted) == {"models.example"}
