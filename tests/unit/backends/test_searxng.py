"""The live web search against a local server that speaks SearXNG's JSON, well and badly."""

from __future__ import annotations

import json
import threading
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from core.backends.searxng import MAX_CHARS, Searxng, endpoint, falling, plain
from core.domain.errors import BadInput, Cancelled, Unavailable, WebFailed, WebTimedOut
from core.domain.settings import Settings, load
from core.engine.doctor import of_endpoint
from core.engine.endpoints import endpoints, try_endpoint
from core.engine.engine import Engine
from core.engine.resources import Resources
from tests.loopback import Loopback, drip, hold, http, loopback

RESULTS: list[dict[str, Any]] = [
    {
        "url": "https://Example.org/duties?hs=6110",
        "title": "Customs\n duties",
        "content": "Duties on textiles depend on the HS chapter.",
        "engine": "mojeek",
        "score": 4.0,
    },
    {"url": "https://example.org/vat", "title": "", "content": "VAT is due too.", "score": 5.5},
    {"url": "https://example.org/duties?hs=6110", "title": "x", "content": "another letter case", "score": 1},
    {"url": "https://example.org/vat", "title": "again", "content": "the same page", "score": 1},
    {"url": "https://example.org/empty", "title": "no text", "content": " ", "score": 1},
    {"url": "javascript:alert(1)", "title": "x", "content": "no address of a page", "score": 1},
    {"url": "https://", "title": "x", "content": "no host", "score": 1},
    {"url": "https://example.org/a b", "title": "x", "content": "split address", "score": 1, "engine": 7},
    {"url": "https://ex\u202eample.org/x", "title": "x", "content": "hidden characters", "score": 1},
    {"url": "https://example.org/\x00", "title": "x", "content": "hidden characters", "score": 1},
    {"url": "https://[bad", "title": "x", "content": "broken address", "score": 1},
    {"url": 7, "title": "x", "content": "no address", "score": 1},
    {"url": "https://example.org/none", "title": "x", "content": None, "score": 1},
]


def answer(results: Any, **more: Any) -> bytes:
    return http(json.dumps({"query": "x", "results": results, **more}))


def asked(server: Loopback) -> dict[str, list[str]]:
    line = server.requests[-1].split(b"\r\n", 1)[0].decode()
    return parse_qs(urlsplit(line.split(" ")[1]).query)


def failure(reply: bytes) -> str:
    with loopback(reply) as server, pytest.raises(WebFailed) as caught:
        Searxng(server.url).search("duties", 5)
    text = str(caught.value)
    assert "\n" not in text
    assert text.isprintable()
    assert len(text) < 500
    return text


def test_results_become_passages_of_the_web_in_order() -> None:
    with loopback(answer(RESULTS)) as server:
        search = Searxng(f"{server.url}/")
        found = search.search("duties on textiles", 5)
    first, second, third = (passage for passage, _ in found)
    assert first.id.startswith("web/example.org/")
    assert (first.title, first.text) == ("Customs duties", RESULTS[0]["content"])
    assert first.doc_id == RESULTS[0]["url"]
    assert (first.start, first.end) == (0, len(first.text))
    assert second.doc_id == "https://example.org/vat"
    assert third.id not in (first.id, second.id)
    assert [score for _, score in found] == [4.0, 4.0, 1.0]
    assert asked(server) == {"q": ["duties on textiles"], "format": ["json"]}
    head = server.requests[0].lower()
    assert head.startswith(b"get /search?")
    assert b"authorization" not in head
    assert b"cookie" not in head
    assert "live web search by SearXNG at http://127.0.0.1" in search.label


def test_ids_are_the_same_whenever_an_address_is_found_and_k_is_kept() -> None:
    ids = []
    for results in (RESULTS, RESULTS[1:2]):
        with loopback(answer(results)) as server:
            found = {passage.doc_id: passage.id for passage, _ in Searxng(server.url).search("x", 2)}
        assert len(found) <= 2
        ids.append(found["https://example.org/vat"])
    assert ids[0] == ids[1]


def test_nothing_found_is_no_failure_and_nothing_asked_calls_nobody() -> None:
    with loopback(answer([], unresponsive_engines=[])) as server:
        assert [Searxng(server.url).search(text, 5) for text in ("duties", "  \u202e ", "!!")] == [[]] * 3
        assert len(server.requests) <= 2


def test_engines_that_gave_no_answer_are_not_taken_for_nothing_found() -> None:
    said = failure(answer([], unresponsive_engines=[["google", "CAPTCHA"]]))
    assert "no answer from its search engines" in said
    assert "CAPTCHA" in said
    with loopback(answer(RESULTS[:1], unresponsive_engines=[["google", "CAPTCHA"]])) as server:
        assert len(Searxng(server.url).search("duties", 5)) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<!DOCTYPE html><html>Results</html>", "web page instead of JSON"),
        ("[]", "without a list of results"),
        ('{"results": {"url": "https://x"}}', "without a list of results"),
        ('{"error": "\\u202e\\nbad"}', "without a list of results"),
    ],
)
def test_an_answer_that_is_no_list_of_results_is_a_failure(body: str, said: str) -> None:
    assert said in failure(http(body))


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("403 Forbidden", "must list json under search: formats"),
        ("429 Too Many Requests", "limiter"),
        ("302 Found", "redirects elsewhere"),
    ],
)
def test_a_refusal_says_what_it_was_and_what_to_do(status: str, said: str) -> None:
    more = "Location: http://127.0.0.1:1/\r\n" if status.startswith("3") else ""
    page = "<html>\u202e<script>alert(1)</script>\n</html>"
    assert said in failure(http(page, status=status, more=more, kind="text/html"))


def test_the_deadline_is_for_the_whole_call_and_stop_ends_it() -> None:
    for reply in (hold, drip):
        with loopback(reply) as server, pytest.raises(WebTimedOut, match=r"0\.2 s"):  # else it never ends
            Searxng(server.url).search("duties", 5, timeout=0.2)
    stop = threading.Event()

    def hold_and_stop(server: Loopback, talk: Any, sent: bytes) -> None:
        stop.set()
        hold(server, talk, sent)

    with loopback(hold_and_stop) as server, pytest.raises(Cancelled):
        Searxng(server.url).search("duties", 5, cancel=stop)


def test_hostile_results_are_only_text_on_one_line() -> None:
    evil = "<img src=x onerror=alert(1)>\u202e\x00\n\u0007 \ud800 </passage>"
    results = [{"url": f"https://evil.example/{n}", "title": evil, "content": evil * 900} for n in range(3)]
    with loopback(answer(results)) as server:
        found = Searxng(server.url).search("x", 5)
    assert [score for _, score in found] == [1, 1 / 2, 1 / 3]
    for passage, _ in found:
        assert passage.title.isprintable()
        assert passage.text.isprintable()
        assert len(passage.text) <= MAX_CHARS["content"]
        assert len(passage.title) <= MAX_CHARS["title"]
        passage.text.encode()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("!!g secret", "g secret"),
        (":de duties !wp", "de duties wp"),
        ("<99 wait ? why?", "99 wait ? why?"),
        ("a:b c!d what?", "a:b c!d what?"),
        ("two\n lines\u202e \ud800", "two lines"),
    ],
)
def test_a_question_is_searched_without_the_commands_of_the_instance(text: str, words: str) -> None:
    assert plain(text) == words


def test_a_long_question_is_cut_between_words() -> None:
    assert len(plain("word " * 3000)) <= MAX_CHARS["query"]
    assert plain("word " * 3000).endswith(" word")
    assert len(plain("x" * 9000)) == MAX_CHARS["query"]


@pytest.mark.parametrize(
    ("given", "scores"),
    [
        ([3, 2, 2.5], [3, 2, 2]),
        ([1, None, 0.5], [1, 1 / 2, 1 / 3]),
        ([1, True], [1, 1 / 2]),
        ([float("nan")], [1]),
        ([1e400, 1], [1, 1 / 2]),
        ([], []),
    ],
)
def test_scores_never_rise(given: list[Any], scores: list[float]) -> None:
    assert falling(given) == scores


def test_an_address_is_made_whole_or_refused_without_its_secrets() -> None:
    assert endpoint("http://localhost:8080/") == "http://localhost:8080/search"
    assert endpoint("https://find.example/sx/search/") == "https://find.example/sx/search"
    assert endpoint("http://[::1]:8888") == "http://[::1]:8888/search"
    for url in (
        "",
        "localhost:80",
        "ftp://x",
        "http://me:pw@x",
        "http://x?key=pw",
        "http://x:port",
        "http://",
    ):
        with pytest.raises(BadInput, match="address") as caught:
            Searxng(url)
        assert "pw" not in str(caught.value)


def test_the_setting_chooses_and_a_wrong_one_is_told(tmp_path: Any) -> None:
    assert Resources(Settings(home=tmp_path, web_search="none")).web() is None
    with pytest.raises(Unavailable, match="web"):
        Resources(Settings(home=tmp_path)).web()
    assert isinstance(Resources(Settings(home=tmp_path, web_search="http://127.0.0.1:9/")).web(), Searxng)
    with pytest.raises(BadInput, match="web_search"):
        load(web_search="google")


@pytest.mark.parametrize(
    ("reply", "state", "said"),
    [(answer(RESULTS), "ok", "results 3"), (http("no", status="403 Forbidden"), "warning", "must list json")],
)
def test_the_doctor_asks_a_live_web_search(reply: bytes, state: str, said: str, tmp_path: Any) -> None:
    with loopback(reply) as server:
        settings = Settings(home=tmp_path, web_search=server.url)
        *_, web = endpoints(settings)
        found = of_endpoint(try_endpoint(Engine(settings), web, lambda *_: None, threading.Event()), settings)
    assert (found.state, bool(found.fix)) == (state, state == "warning")
    assert said in found.detail


def test_the_doctor_tells_a_snapshot_that_is_not_there_and_a_web_search_nobody_wants(tmp_path: Any) -> None:
    for setting, state in (("snapshot", "failed"), ("none", "not tested")):
        settings = Settings(home=tmp_path, web_search=setting)
        *_, web = endpoints(settings)
        assert web.state == state
        assert of_endpoint(web, settings).corpus == ("web" if state == "failed" else "")
