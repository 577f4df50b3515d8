"""Pipelines of one's own behind their doors: children and endpoints that misbehave, and good ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.backends.external import doors
from core.backends.external.doors import Live, PipelineRequest
from core.domain.errors import (
    BadInput,
    Cancelled,
    PipelineFailed,
    PipelineTimedOut,
    RouteScopeError,
    Unavailable,
)
from core.domain.pipelines import Pipeline, PipelineSettings, from_command, from_settings, interpreter
from core.domain.program import PROJECT
from core.domain.types import Turn
from tests.loopback import drip, hold, http, loopback
from tests.until import until

pytestmark = [pytest.mark.process, pytest.mark.trust]
PIPELINE = """
import itertools, os, sys, time, subprocess

class Document:  # as LangChain's
    def __init__(self, text, id=None, **metadata):
        self.page_content, self.metadata, self.id = text, metadata, id

class Node:  # as LlamaIndex'
    node_id, ref_doc_id, start_char_idx, end_char_idx, metadata = "n1", "faq.md", 3, 9, {"title": "FAQ"}
    def get_content(self): return "Return"

class NodeWithScore:
    node, score = Node(), 0.75

class Scored:  # as Haystack's
    id, content, meta, score = "h1", "Return it.", {"file_path": "faq.md"}, 1.5

class Retriever:
    def invoke(self, query): return [Document("Return " + query, id="p1", source="faq.md", start_index=4)]

class Index:
    def retrieve(self, query): return [NodeWithScore()]

class Component:
    def run(self, query, top_k=10): return {"documents": [Scored()] * top_k}

class Beir:
    corpus = {"d1": {"title": "FAQ", "text": "Return it."}, "d2": {"text": "Keep it."}}
    def search(self, corpus, queries, top_k, score_function):
        return {"q": {"d2": 0.1, "d1": 0.9}}

class Engine:
    def query(self, query):
        class Response:
            source_nodes = [NodeWithScore()]
            def __str__(self): return "In 30 days."
        return Response()

langchain, llamaindex, haystack, beir, engine = Retriever(), Index(), Component(), Beir(), Engine()

def plain(query, k): return [{"doc_id": i, "text": query} for i in range(k)]
def one(question): return [("faq", 0.5)]
def everything(query, *, top_k=3, history, filters, trace_id):
    return [{"doc_id": "x", "text": f"{top_k} {history} {filters} {trace_id}"}]
async def awaited(query, k): return [{"doc_id": "async", "text": query}]
def generated(query, k): yield from plain(query, k)
def printing(query, k):
    print("hello", flush=True); os.system("echo from a shell"); os.write(1, b"raw bytes\\n")
    return plain(query, k)
def rubbish(query, k): return "nothing of use"
def nan(query, k): return [{"doc_id": "a", "score": float("nan")}]
def very_many(query, k): return plain(query, 100_000)
def endless(query, k): return ({"doc_id": n} for n in itertools.count())
def large(query, k): return [{"doc_id": "a", "text": "x" * 17_000_000}]
def circle(query, k):
    stage = {"name": "a", "hits": []}; stage["inner"] = stage
    return {"hits": [], "stages": [stage]}
def hang(query, k): time.sleep(600)
def leave(query, k): print("going now", file=sys.stderr); os._exit(7)
def flood(query, k):
    for _ in range(3000): print("x" * 1000, file=sys.stderr)
    print("the last line", file=sys.stderr)
    return plain(query, k)
def wrong(query, k): raise ValueError("no index at /data")
def reads_stdin(query, k): return [{"doc_id": "a", "text": repr(sys.stdin.read())}]
def secret(query, k): raise ValueError("key " + os.environ["MY_API_KEY"])
def variables(query, k): return [{"doc_id": "a", "text": ",".join(os.environ)}]
def speaks_protocol(query, k):
    for fd in range(3, 20):
        try: os.write(fd, b'{"id": 999, "reply": []}\\n')
        except OSError: pass
    return plain(query, k)
def needs(query, k, region): return []
def child(query, k):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]); time.sleep(600)
number = 3
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("theirs") / "my_rag.py"
    path.write_text(PIPELINE)
    return path


@pytest.fixture
def live(file: Path, tmp_path: Path) -> Iterator[Any]:
    """Make a pipeline of a function, in a file of its own where a text is given."""
    made: list[Live] = []

    def open_(function: str, text: str = "", python: str = sys.executable, **more: Any) -> Live:
        if text:
            (tmp_path / "my.py").write_text(text)
        target = f"{tmp_path / 'my.py' if text else file}:{function}"
        made.append(Live(Pipeline("mine", "function", target, python, **more)))
        return made[-1]

    yield open_
    for one in made:
        one.stop()


def ask(live: Live, query: str = "why?", k: int = 3, timeout: float = 20.0, **more: Any) -> doors.Called:
    return live.ask(PipelineRequest(query, k, **more), timeout=timeout, cancel=threading.Event())


@pytest.mark.parametrize(
    ("function", "kind", "first"),
    [
        ("plain", "function", {"doc_id": "0", "text": "why?"}),
        ("one", "function", {"doc_id": "faq", "score": 0.5}),
        ("awaited", "function", {"doc_id": "async", "text": "why?"}),
        ("generated", "function", {"doc_id": "0"}),
        ("langchain", "LangChain .invoke", {"doc_id": "faq.md", "id": "p1", "start": 4, "end": 15}),
        (
            "llamaindex",
            "LlamaIndex .retrieve",
            {"id": "n1", "start": 3, "end": 9, "title": "FAQ", "score": 0.75},
        ),
        ("haystack", "Haystack .run", {"doc_id": "faq.md", "id": "h1", "text": "Return it.", "score": 1.5}),
        ("beir", "BEIR .search", {"doc_id": "d1", "text": "Return it.", "title": "FAQ", "score": 0.9}),
        ("engine", "LlamaIndex .query", {"doc_id": "faq.md", "id": "n1"}),
        ("reads_stdin", "function", {"text": "''"}),
    ],
)
def test_what_an_object_offers_decides_how_it_is_asked(
    live: Any, function: str, kind: str, first: dict[str, Any]
) -> None:
    pipeline = live(function)
    reply = ask(pipeline).reply
    assert {name: getattr(reply.hits[0], name) for name in first} == first
    assert pipeline.state.kind == kind
    assert reply.answer == ("In 30 days." if function == "engine" else None)


def test_function_gets_what_it_takes(live: Any) -> None:
    given = ask(
        live("everything"), k=7, history=(Turn("user", "hi"),), filters={"lang": "en"}, trace_id="run 1"
    )
    assert given.reply.hits[0].text == "7 [{'role': 'user', 'text': 'hi'}] {'lang': 'en'} run 1"


def test_prints_do_not_break_the_protocol_and_are_kept(live: Any) -> None:
    pipeline = live("printing")
    assert len(ask(pipeline).reply.hits) == 3
    assert len(ask(pipeline).reply.hits) == 3
    until(lambda: all(text in pipeline.state.stderr for text in ("hello", "from a shell", "raw bytes")))
    assert (pipeline.state.starts, pipeline.state.calls, pipeline.state.failed) == (1, 2, 0)


@pytest.mark.parametrize(
    ("function", "error", "said"),
    [
        ("rubbish", BadInput, "its reply is a text; expected a list of hits"),
        ("nan", BadInput, "hits.0.score: expected a finite number"),
        ("very_many", BadInput, "hits: at most 1,000 are allowed; return fewer"),
        ("endless", BadInput, "hits: at most 1,000"),
        ("large", PipelineFailed, "its reply is larger than 16 MiB"),
        ("circle", PipelineFailed, "the reply contains itself: it goes in a circle"),
        ("leave", PipelineFailed, "ended during the call (exit code 7); it printed last: 'going now'"),
        ("wrong", PipelineFailed, "failed: ValueError: no index at /data"),
        ("speaks_protocol", PipelineFailed, "its process said what is no reply"),
        ("needs", Unavailable, "needs has a parameter 'region' without a default"),
        ("number", Unavailable, "int is nothing to ask; expected a function (query, k)"),
        ("Retriever", Unavailable, "Retriever is a class; name a function, or an object"),
        ("absent", Unavailable, "my_rag.py has no 'absent'; it has: Document"),
    ],
)
def test_each_fault_is_one_clear_message_and_the_next_call_works(
    live: Any, function: str, error: type[RouteScopeError], said: str
) -> None:
    pipeline = live(function)
    for _ in range(2):  # a process that died is started again
        with pytest.raises(error) as raised:
            ask(pipeline)
        assert said in str(raised.value)
        assert str(raised.value).startswith("pipeline mine")
        assert "\n" not in str(raised.value)
    assert pipeline.state.error == str(raised.value)
    assert pipeline.state.failed == 2


def test_flood_of_stderr_keeps_its_end(live: Any) -> None:
    pipeline = live("flood")
    assert len(ask(pipeline).reply.hits) == 3
    until(lambda: pipeline.state.stderr.endswith("the last line\n"))
    assert len(pipeline.state.stderr) <= 64 << 10


def test_a_hang_ends_at_the_deadline_with_all_it_started(live: Any) -> None:
    pipeline = live("child")
    with pytest.raises(PipelineTimedOut, match=r"gave no reply within 0\.5 s; its process was ended"):
        ask(pipeline, timeout=0.5)
    assert not pipeline.state.running


def test_stop_ends_a_hang(live: Any) -> None:
    pipeline, cancel = live("hang"), threading.Event()
    threading.Timer(0.6, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        pipeline.ask(PipelineRequest("why?", 3), timeout=60, cancel=cancel)
    assert time.monotonic() - began < 10
    assert not pipeline.state.running


def test_process_is_started_once_and_again_after_it_died(live: Any) -> None:
    pipeline = live("plain")
    ask(pipeline)
    child = pipeline._way._child._process
    os.kill(child.pid, 9)
    child.wait()
    assert len(ask(pipeline).reply.hits) == 3
    assert pipeline.state.starts == 2


@pytest.mark.parametrize(
    ("text", "python", "said"),
    [
        ("import not_a_library\n", sys.executable, "No module named 'not_a_library'"),
        ("import time; time.sleep(600)\n", sys.executable, "loading its file took more than 1 s"),
        *((PIPELINE, python, "pipeline mine") for python in ("/bin/cat", "/bin/false", "/bin/ls")),
    ],
)
def test_loading_that_fails_or_takes_too_long_shows_why(live: Any, text: str, python: str, said: str) -> None:
    pipeline = live("search", text, python, start_timeout_s=20.0 if "library" in said else 1.0)
    with pytest.raises(Unavailable) as raised:
        ask(pipeline)
    assert said in str(raised.value)
    assert ("Traceback" in pipeline.state.stderr) == ("library" in said)


def test_its_process_has_the_variables_that_were_named(
    live: Any, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {"OPENAI_API_KEY", "ROUTESCOPE_LLM_API_KEY", "DATABASE_URL"}
    for name in ("MY_API_KEY", *others):
        monkeypatch.setenv(name, "sk-very-secret-0123456789")
    with pytest.raises(PipelineFailed, match="use --env MY_API_KEY"):
        ask(live("secret"))
    told = live("secret", env=("MY_API_KEY",))
    with pytest.raises(PipelineFailed) as raised:
        ask(told)
    until(lambda: "ValueError" in told.state.stderr)
    assert "very-secret" not in str(raised.value) + told.state.stderr
    names = set(ask(live("variables", env=("MY_API_KEY",))).reply.hits[0].text.split(","))
    assert {"MY_API_KEY", "PATH"} <= names
    assert not names & others
    with pytest.raises(Unavailable, match="NOT_SET_AT_ALL"):
        ask(live("plain", env=("NOT_SET_AT_ALL",)))
    with pytest.raises(BadInput, match="ROUTESCOPE_LLM_API_KEY"):
        from_command(f"mine={file}:plain", env=["ROUTESCOPE_LLM_API_KEY"])


SPY = """
import glob, json
def search(query, k):
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            if b"sk-canary-0123456789" in open(path, "rb").read():
                found.append(path)
        except OSError:
            pass
    return [{"doc_id": "found", "text": " ".join(found)}]
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems show no process's variables in /proc")
def test_a_pipeline_finds_no_key_in_the_variables_of_any_process(tmp_path: Path) -> None:
    (tmp_path / "spy.py").write_text(SPY)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Returns are free for thirty days.")
    keys = dict.fromkeys(("OPENAI_API_KEY", "ROUTESCOPE_LLM_API_KEY"), "sk-canary-0123456789")
    own = {"ROUTESCOPE_HOME": str(tmp_path / "home"), "PYTHONPATH": str(PROJECT)}
    routes = ["--corpus", "docs", "--routes", "bm25", "--route", "spy=spy.py:search", "--json"]
    command = [sys.executable, "-m", "core", "ask", "Are returns free?", *routes]
    asked = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **keys, **own}, stdout=subprocess.PIPE, check=True
    )
    results = {one["route"]: one for one in json.loads(asked.stdout)["results"]}
    assert results["bm25"]["hits"]
    (hit,) = results["spy"]["hits"]
    assert "canary" not in asked.stdout.decode()
    assert "/proc/" not in json.dumps(hit)


FORGERS = """
import glob, multiprocessing, os, subprocess, sys
LINE = b'{"id": %s, "ms": 1, "reply": {"hits": []}}\\n'
def write(fds):
    for fd in fds:
        for id in (b"1", b'"1"', b"null"):
            try: os.write(fd, LINE % id)
            except OSError: pass
def search(query, k):
    if not (child := os.fork()):
        write(range(3, 50))
        os._exit(0)
    os.waitpid(child, 0)
    one = multiprocessing.get_context("fork").Process(target=write, args=(range(3, 50),))
    one.start(); one.join()
    subprocess.run([sys.executable, "-c", "import my; my.write(range(3, 50))"], close_fds=False)
    return [{"doc_id": "a", "text": os.environ["MY_API_KEY"]}]
def by_proc(query, k):
    script = "import my, os; my.write(os.open(one, os.O_WRONLY) for one in my.pipes(os.getppid()))"
    subprocess.run([sys.executable, "-c", script])
    return [{"doc_id": "a", "text": ""}]
def pipes(pid):
    for one in glob.glob(f"/proc/{pid}/fd/*"):
        if os.readlink(one).startswith("pipe"):
            yield one
"""


def test_a_reply_repeats_no_secret_and_nothing_it_starts_can_reply(
    live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-0123456789")
    (hit,) = ask(live("search", FORGERS, env=("MY_API_KEY",))).reply.hits
    assert (hit.doc_id, hit.text) == ("a", "[key]")
    # The system lets a process of the same user open the pipe anew: what it writes there is no reply.
    with pytest.raises(PipelineFailed, match="said what is no reply"):
        ask(live("by_proc", FORGERS))


DAEMONS = """
import os, subprocess, sys, time
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)", "door-canary"]
def search(query, k):
    subprocess.Popen(SLEEP)
    subprocess.Popen(SLEEP, start_new_session=True)
    if not (child := os.fork()):  # a daemon: its parent ends, and its session is its own
        os.setsid()
        subprocess.Popen(SLEEP, start_new_session=True)
        os._exit(0)
    os.waitpid(child, 0)
    if query == "die": os._exit(3)
    if query == "hang": time.sleep(600)
    return []
"""


def canaries() -> list[int]:
    return [
        one.pid for one in psutil.process_iter(["cmdline"]) if "door-canary" in (one.info["cmdline"] or ())
    ]


linux = pytest.mark.skipif(
    sys.platform != "linux", reason="other systems have no subreaper and limit no data"
)


@linux
@pytest.mark.parametrize("query", ["die", "hang", "stop"])
def test_all_that_it_started_ends_with_it(live: Any, query: str) -> None:
    pipeline = live("search", DAEMONS)
    if query == "stop":
        ask(pipeline, query)
        assert len(canaries()) == 3
        pipeline.stop()
    else:
        with pytest.raises((PipelineFailed, PipelineTimedOut)):
            ask(pipeline, query, timeout=2 if query == "hang" else 20)
    assert canaries() == []


@linux
def test_all_that_it_started_ends_with_a_killed_program(tmp_path: Path) -> None:
    (tmp_path / "daemons.py").write_text(DAEMONS)
    script = (
        "import sys, threading, time\n"
        "from core.backends.external.doors import Live, PipelineRequest\n"
        "from core.domain.pipelines import Pipeline\n"
        f"live = Live(Pipeline('mine', 'function', '{tmp_path}/daemons.py:search', sys.executable))\n"
        "live.ask(PipelineRequest('stay', 3), timeout=20, cancel=threading.Event())\n"
        "print('asked', flush=True); time.sleep(600)\n"
    )
    asking = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=PROJECT)
    assert asking.stdout is not None
    with asking.stdout:
        assert asking.stdout.readline() == b"asked\n"
        assert len(canaries()) == 3
        asking.kill()
        asking.wait()
    until(lambda: not canaries())


GREEDY = """
import subprocess, sys, time
def alone(query, k): return [{"doc_id": "a", "text": str(len(bytearray(800 << 20)))}]
def together(query, k):
    script = "import time; kept = bytearray(b'x') * (200 << 20); time.sleep(600)"
    for _ in range(4): subprocess.Popen([sys.executable, "-c", script])
    time.sleep(600)
def numpy(query, k):
    import numpy
    return [{"doc_id": "a", "text": str(int(numpy.ones((2000, 2000)).sum()))}]
"""


@linux
@pytest.mark.parametrize(
    ("function", "memory_mb", "said"),
    [
        ("alone", 500, "MemoryError"),
        ("together", 500, "took more than 500 MB"),
        ("alone", 2000, ""),
        ("numpy", 0, ""),
    ],
)
def test_memory_is_limited_for_each_process_and_for_all(
    live: Any, function: str, memory_mb: int, said: str
) -> None:
    pipeline = live(function, GREEDY, memory_mb=memory_mb)
    if said:
        with pytest.raises(PipelineFailed, match=said):
            ask(pipeline)
    else:
        assert ask(pipeline).reply.hits


def test_time_is_measured_here_and_starting_left_out(live: Any) -> None:
    slow = "import time; time.sleep(0.5)\ndef search(query, k):\n    time.sleep(0.05)\n    return []\n"
    called = ask(live("search", slow))
    assert called.inside_ms is not None
    assert 50 <= called.inside_ms <= called.ms < 400


# HTTP.


def endpoint(url: str, **more: Any) -> Live:
    return Live(Pipeline("mine", "http", url, **more))


def test_endpoint_is_sent_the_question_and_its_headers_and_repeats_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    headers = (("Authorization", "Bearer ${MY_TOKEN}"), ("X-Tenant", "acme"))
    with loopback(http(json.dumps([{"doc_id": "a", "text": "key=sesame-0123456789"}]))) as server:
        one = endpoint(f"{server.url}/search", headers=headers)
        with pytest.raises(Unavailable, match="the environment variable MY_TOKEN of a header is not set"):
            ask(one)
        monkeypatch.setenv("MY_TOKEN", "sesame-0123456789")
        called = ask(endpoint(one.pipeline.target, headers=headers), filters={"lang": "en"}, trace_id="run 1")
    head, _, body = server.requests[0].decode().partition("\r\n\r\n")
    assert head.startswith("POST /search ")
    assert "authorization: Bearer sesame-0123456789" in head
    assert "x-tenant: acme" in head
    asked = {"query": "why?", "history": [], "k": 3, "filters": {"lang": "en"}, "trace_id": "run 1"}
    assert json.loads(body) == asked
    (hit,) = called.reply.hits
    assert (hit.doc_id, hit.text) == ("a", "key=[key]")


AWAY = http("", status="302 Found", more="Location: http://127.0.0.1:1/\r\n")


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (AWAY, PipelineFailed, "redirects elsewhere (302), which is not followed"),
        (http("<!doctype html><p>Sign in", kind="text/html"), PipelineFailed, "a web page instead of JSON"),
        (http("no access", status="401 Unauthorized"), PipelineFailed, "refused the request (401)"),
        (http("{]"), BadInput, "its reply is not JSON"),
        (http('{"results": []}'), BadInput, "no field hits; it has: results"),
        (http(b" " * (17 << 20)), PipelineFailed, "larger than 16 MiB"),
        (b"not http at all", PipelineFailed, "pipeline mine"),
    ],
)
def test_each_fault_of_an_endpoint(answer: bytes, error: type[RouteScopeError], said: str) -> None:
    with loopback(answer) as server, pytest.raises(error) as raised:
        ask(endpoint(f"{server.url}/search"))
    assert said in str(raised.value)
    assert str(raised.value).startswith("pipeline mine")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("reply", [hold, drip])
def test_slow_endpoint_ends_at_the_deadline(reply: Any) -> None:
    with loopback(reply) as server, pytest.raises(PipelineTimedOut, match=r"gave no reply within 0\.4 s"):
        ask(endpoint(f"{server.url}/search"), timeout=0.4)


def test_endpoint_that_is_not_there() -> None:
    with pytest.raises(PipelineFailed, match="cannot be reached"):
        ask(endpoint("http://127.0.0.1:9/search"))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://169.254.169.254/latest", "never called"),
        ("http://metadata.google.internal/x", "never called"),
        ("http://user:hunter2@127.0.0.1/x", "give what is secret as a header"),
        ("http://127.0.0.1/x?key=hunter2", "give what is secret as a header"),
        ("ftp://127.0.0.1/x", "an endpoint's address is"),
    ],
)
def test_address_that_is_not_called(url: str, said: str) -> None:
    with pytest.raises(BadInput) as raised:
        endpoint(url)
    assert said in str(raised.value)
    assert "hunter2" not in str(raised.value)


# As they are named.


def test_route_option_that_cannot_be_read() -> None:
    for given, said in (("Mine=x.py:f", "'Mine' cannot be a route's name"), ("mine=x.py:f()", "cannot read")):
        with pytest.raises(BadInput, match=said):
            from_command(given)


def test_interpreter_may_be_an_environments_folder(tmp_path: Path) -> None:
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "python").symlink_to(sys.executable)
    assert interpreter("env", tmp_path, "here") == str(tmp_path / "env" / "bin" / "python")
    assert interpreter("", tmp_path, "here") == sys.executable
    with pytest.raises(BadInput, match="here: no Python interpreter at"):
        interpreter("absent", tmp_path, "here")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "give either function"),
        ({"function": "x.py:f", "url": "http://x/"}, "give either function"),
        ({"function": "x.py:f", "headers": {"A": "b"}}, "headers go with url"),
        ({"url": "http://x/", "python": "python3"}, "python goes with function"),
    ],
)
def test_table_that_is_wrong(table: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"\[external\.mine\]") as raised:
        from_settings("mine", PipelineSettings(**table), tmp_path)
    assert said in str(raised.value)


def test_replies_are_kept_by_question() -> None:
    pipeline = Pipeline("mine", "http", "http://x/")
    first = PipelineRequest("why?", 3, trace_id="run 1").key(pipeline)
    assert first == PipelineRequest("why?", 3, trace_id="run 2").key(pipeline)
    assert first != PipelineRequest("why?", 4).key(pipeline)
    assert first != PipelineRequest("why?", 3, (Turn("user", "hi"),)).key(pipeline)
