"""Damaged and made-up input at every door: the project's own errors come out, and nothing is half-written.

`make test` tries a few examples of each door; `make test-fuzz` draws new ones for SECONDS a door.
"""

import json
import os
import random
import time
from contextlib import contextmanager
from functools import wraps
from inspect import Signature, signature

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.backends.external import run_files
from core.backends.sql import guard
from core.backends.sql.guard import SqlError
from core.domain import settings as settings_module
from core.domain.errors import RouteScopeError
from core.domain.external import parse_reply
from core.domain.filters import read_filters
from core.domain.types import Passage, Query
from core.evaluation import dataset
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels import exchange
from core.store import Store, otlp, traces_in
from core.store.labels import Pooled
from tests.fakes import MemoryCorpus
from tests.fakes import shop as database
from tests.runs import make_run

pytestmark = pytest.mark.trust
SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))  # a target; 0: a few examples, the same ones each time
SLOWEST = 2.0  # seconds of a processor that one input may take
MARKS = [
    b"",
    *(bytes([one]) for one in b"{}[]\",:'\n\0\xff"),
    b"NaN",
    b"1e999",
    b"-1",
    b"null",
    b"true",
    b"--",
]
MARKS += [
    b"9" * 400,
    b"[" * 3_000,
    b'{"a":' * 3_000,
    b"\\ud800",
    b"\xef\xbb\xbf",
    "\u202e\u0661".encode(),
    b"%00",
]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def fuzzed(strategy):
    """Try a test on `example`s: a few, the same each time, or new ones until the target's time is over."""
    quiet = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
    chosen = settings(max_examples=40, derandomize=not SECONDS, database=None, suppress_health_check=quiet)

    def wrap(test):
        def timed(example, **fixtures):
            used = time.process_time()
            test(example, **fixtures)
            assert time.process_time() - used < SLOWEST

        if not SECONDS:
            return chosen(given(example=strategy)(wraps(test)(timed)))

        def until_over(**fixtures):
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                chosen(given(example=strategy)(lambda example: timed(example, **fixtures)))()

        own = [one for one in signature(test).parameters.values() if one.name != "example"]
        until_over.__signature__ = Signature([one.replace(kind=one.KEYWORD_ONLY) for one in own])
        return pytest.mark.timeout(180 + SECONDS)(until_over)

    return wrap


@st.composite
def damaged(draw, seed):
    """`seed` with parts cut, doubled, moved, or replaced by marks; or JSON values of any kind."""
    data = bytearray(seed)
    chance = random.Random(draw(st.integers(0, 2**32)))
    for _ in range(draw(st.integers(1, 6))):
        a, b = sorted(chance.randrange(len(data) + 1) for _ in range(2))
        b = min(b, a + chance.choice((1, 4, 30, 300)))
        part = bytes(data[a:b])
        match draw(st.integers(0, 4)):
            case 0:
                data[a:b] = chance.choice(MARKS)
            case 1:
                del data[a:b]
            case 2:
                data[b:b] = part * chance.choice((1, 2, 50))
            case 3:
                at = chance.randrange(len(data) + 1)
                data[at:at] = part
            case 4:
                data[a:b] = bytes(byte ^ (1 << chance.randrange(8)) for byte in part)
    return bytes(data)


@contextmanager
def only(kind=RouteScopeError):
    """Let through what is raised of `kind`, if its message is no copy of the input."""
    said = ""
    try:
        yield
    except kind as error:
        said = str(error)
    assert len(said) < 5_000


def lines(*documents):
    return "\n".join(map(json.dumps, documents)).encode()


def as_json(seed):
    """A damaged seed, or JSON values, one a line."""
    return damaged(seed) | st.lists(values, max_size=3).map(lambda all: lines(*all))


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "fuzz.sqlite")
    yield made
    made.close()


@pytest.fixture(scope="module")
def shop():
    return database("shop.sqlite")


RUN = make_run(run_id="a")


def _bundle():
    from core.store.exchange import Packed, pack

    return pack([Packed(RUN, (), "")])


@fuzzed(damaged(_bundle()))
def test_bundles(example, store):
    before = store.ids()
    added = None
    with only():
        added = store.import_bundle(example)
    assert sorted(store.ids()) == sorted({*before, *(added or [])}), "all of it or nothing"
    for run in added or []:
        store.load(run)


@fuzzed(as_json(json.dumps(otlp.to_otlp(RUN)).encode()))
def test_traces(example):
    with only():
        for trace in traces_in.read(example, "traces.json").traces:
            assert trace.spans


QUESTIONS = lines(
    {"id": "q1", "text": "When?", "relevant": [{"doc": "a", "quote": "One.", "grade": 3}], "split": "dev"},
    {"id": "q2", "question": "Where?", "answers": ["x"], "history": [{"role": "user", "text": "Hi"}]},
)


@fuzzed(st.tuples(as_json(QUESTIONS), st.sampled_from([".jsonl", ".json", ".csv", ".tsv"])))
def test_label_files(example, tmp_path):
    content, ending = example
    path = tmp_path / f"questions{ending}"
    path.write_bytes(content)
    with only():
        dataset.written([path], name="fuzz")


TABLE = b"question,passage,kind,grade,annotator,note\nq1,a:0-9,grade,3,Ann,=1+1\nq1,b:0-9,cannot,,Bo,\n"


@fuzzed(damaged(TABLE))
def test_label_tables(example, store):
    if not desks.sets(store):
        desks.create(store, "set", "tiny", [Question("q1", Query("When?"))])
        passages = [Pooled(Passage(f"{id}:0-9", id, "", "One.", 0, 9)) for id in "ab"]
        desks.add_to_pool(store, "set", {"q1": passages})
    before = len(desks.load(store, "set").current)
    added = 0
    with only():
        added = exchange.import_table(store, "set", example, "labels.csv", "importer").added
    assert len(desks.load(store, "set").current) <= before + added, "all of it or nothing"


RUNS = b"q1 Q0 a:0-9 1 2.5 x\nq1 Q0 b:0-9 2 2.0 x\nq2 Q0 a:0-9 1 9 x\n"
REPLIES = lines(
    {"id": "q1", "hits": [{"id": "a:0-9", "score": 1.0}], "answer": "x"}, {"id": "q2", "hits": []}
)


@fuzzed(st.tuples(damaged(RUNS), st.just("x.run")) | st.tuples(as_json(REPLIES), st.just("x.jsonl")))
def test_run_files(example, tmp_path):
    content, name = example
    path = tmp_path / name
    path.write_bytes(content)
    with only():
        run_files.read(path, {"q1": Query("When?"), "q2": Query("Where?")}, "set")


SETTINGS = b"""llm_timeout_s = 120.0
answers = "none"
[external.mine]
url = "http://127.0.0.1:9/search"
[team.roles]
"a@example.org" = "owner"
[access.department]
hr = ["hr", "board"]
[models.other]
model = "x"
base_url = "http://127.0.0.1:9/v1"
[embedders.some]
url = "http://127.0.0.1:9/v1"
model = "m"
"""


@fuzzed(damaged(SETTINGS))
def test_settings(example, tmp_path, monkeypatch):
    monkeypatch.setenv("ROUTESCOPE_HOME", str(tmp_path))
    (tmp_path / "routescope.toml").write_bytes(example)
    with only():
        settings_module.load()


REPLY = json.dumps(
    {
        "hits": [{"id": "a", "text": "One.", "score": 1.0, "metadata": {"a": 1}}],
        "answer": "x",
        "stages": [{"name": "s", "kind": "search", "ms": 1.0, "hits": []}],
        "usage": {"prompt": 1, "completion": 2, "calls": 1},
        "rewritten": ["y"],
    }
).encode()


@fuzzed(as_json(REPLY))
def test_pipeline_replies(example):
    with only():
        parse_reply(example, "pipeline mine")


SQL = b"SELECT o.id, count(*) FROM orders o WHERE o.id IN (SELECT id FROM orders) GROUP BY 1 ORDER BY 2 -- x"


@fuzzed(damaged(SQL).map(lambda data: data.decode("utf-8", "replace")))
def test_sql(example, shop):
    with only(SqlError):
        guard.check_statement(example)
    with only():
        shop.query(example)


FILTERS = b"owner~Claims\nlast_updated>=2026\nstatus in valid|old\nnumber<5\nversion!=1.2"
HEADS = MemoryCorpus(
    {
        f"d{at}:0-9": f"Owner: Claims\nLast updated: 2026-0{at}-01\nVersion: 1.{at}\nNumber: {at}\nText."
        for at in range(1, 6)
    }
).metadata


@fuzzed(damaged(FILTERS).map(lambda data: data.decode("utf-8", "replace").split("\n")))
def test_filters(example):
    with only():
        HEADS.meeting(read_filters(example))
