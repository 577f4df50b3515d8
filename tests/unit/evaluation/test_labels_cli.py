"""`labels` on the command line: from questions to judgements in files, and what is refused."""

import json
import threading
from contextlib import contextmanager

import pytest

from core.cli import common, main
from core.corpus import catalogue
from core.corpus.chunk import WHOLE
from core.corpus.source import Source
from core.domain import settings as settings_module
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine import engine as engine_module
from core.engine.request import Request
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels import pool
from core.store import Store
from core.store.labels import Judgement
from tests.fakes import FakeEngine, ScriptedLLM


@pytest.fixture
def engine(tmp_path, monkeypatch, store_place):
    llm = ScriptedLLM({"grade": "0.9"})
    made = FakeEngine(tmp_path, llm=llm, store=Store(store_place))
    monkeypatch.setattr(engine_module, "shared_engine", lambda: made)
    monkeypatch.setattr(settings_module, "current", lambda: Settings(home=tmp_path))
    monkeypatch.setattr(catalogue, "source", lambda *_, **__: Source("tiny", "indexed", None, WHOLE))
    yield made
    made.store.close()


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.jsonl"
    asked = {"q1": "How do I send a fragile item back?", "q2": "Does customs hold a parcel?"}
    path.write_text("".join(json.dumps({"id": id, "text": text}) + "\n" for id, text in asked.items()))
    return path


def done(call, *args):
    code, out, err = call("labels", *args, "--json")
    assert (code, "error" in err) == (0, False), err
    return json.loads(out)


def test_from_questions_to_files_and_back(engine, call, questions, tmp_path):
    made = done(call, "create", "release 1", "--corpus", "tiny", "--questions", questions)
    assert made == {"set": "release 1", "corpus": "tiny", "questions": 2}
    pooled = done(call, "pool", "release 1", "--routes", "bm25,dense", "--depth", 3)
    desk = desks.load(engine.store, "release 1")
    passages = [(q, p) for q, found in desk.pool.items() for p in found]
    assert (pooled["new"], pooled["questions"], pooled["failed"]) == (len(passages), 2, {})
    desks.judge_all(
        engine.store,
        "release 1",
        [Judgement(*pair, "Ann", "person", "grade", n % 4) for n, pair in enumerate(passages)],
    )
    ours = tmp_path / "ours.qrels"
    assert done(call, "export", "release 1", "--out", ours)["judgements"] == len(passages)
    theirs = tmp_path / "theirs.qrels"
    theirs.write_text(ours.read_text().replace(" 1\n", " 0\n"))
    brought = done(call, "import", "release 1", theirs, "--annotator", "Bob")
    assert (brought["added"], brought["known"]) == (len(passages), 0)
    suggested = done(call, "suggest", "release 1")
    assert (suggested["scored"], suggested["not_scored"]) == (len(passages), 0)
    told = done(call, "agreement", "release 1")
    (pair,) = told["annotators"]
    assert (pair["first"], pair["second"], pair["n"]) == ("Ann", "Bob", len(passages))
    assert sum(map(sum, pair["confusion"])) == len(passages)
    assert {one["second"] for one in told["models"]} == {"final grade", "Ann", "Bob"}
    assert told["disagreements"] == sum(n % 4 == 1 for n in range(len(passages)))
    sheet = tmp_path / "all.csv"
    done(call, "export", "release 1", "--format", "csv", "--out", sheet)
    again = done(call, "import", "release 1", sheet)
    assert (again["added"], again["known"]) == (0, 3 * len(passages))
    (row,) = done(call, "list")["sets"]
    assert (row["set"], row["questions"], row["passages"]) == ("release 1", 2, len(passages))
    assert (row["graded"], row["annotators"]) == (len(passages), ["Ann", "Bob"])
    assert row["models"] == ["model:scripted"]


def test_for_people_in_words(engine, call, questions):
    assert "There are no label sets" in call("labels", "list")[1]
    assert (
        "next: labels pool" in call("labels", "create", "s", "--corpus", "tiny", "--questions", questions)[1]
    )
    assert (
        "passages for 2 of 2 questions, from 1 routes" in call("labels", "pool", "s", "--routes", "bm25")[1]
    )
    assert "Agreement needs two annotators" in call("labels", "agreement", "s")[1]
    code, out, err = call("labels", "list")
    assert (code, err) == (0, "")
    assert "questions" in out
    assert "tiny" in out


def test_the_questions_of_sessions(engine, call):
    engine.ask(Request(Query("Does customs hold a parcel?"), "tiny", ("bm25",)))
    assert engine.store.flush()
    assert done(call, "create", "s", "--corpus", "tiny", "--from-sessions")["questions"] == 1
    assert desks.load(engine.store, "s").questions[0].query == Query("Does customs hold a parcel?")


def test_stdout_is_the_file(engine, capsysbinary):
    desks.create(engine.store, "s", "tiny", [Question("q1", Query("Why?"))])
    assert main(["labels", "export", "s", "--format", "csv", "--out", "-"]) == 0
    assert capsysbinary.readouterr().out.startswith(b'"question_id","question"')


def test_what_is_refused_is_one_line_and_exit_code_2(engine, call, questions, tmp_path):
    file = tmp_path / "a.qrels"
    file.write_text("q1 0 fragile:0-80 7\n")
    call("labels", "create", "s", "--corpus", "tiny", "--questions", questions)
    made = ("create", "s", "--corpus", "tiny")
    for args, told in (
        (("pool", "other"), "there is no label set 'other'; there are: s"),
        (("pool", "s", "--depth", "0"), "0 is not in the range 1<=x<=100"),
        (("pool", "s", "--evaluation", "none"), "contains no evaluation"),
        (("import", "s", file), "does not name an annotator; give --annotator WHO"),
        (("import", "s", file, "--annotator", "A"), "a.qrels line 1: grade '7'; give 0, 1, 2, 3"),
        (("import", "s", "missing.csv"), "cannot read missing.csv"),
        (("export", "s", "--annotator", "Eve"), "no annotator 'Eve'; there are: none"),
        (("export", "s", "--out", file), "already exists; use another --out"),
        (("export", "s", "--format", "csv", "--annotator", "A"), "--annotator needs --format qrels"),
        (("export", "s", "--unjudged"), "--unjudged needs --format csv"),
        (("export", "s", "--json", "--out", "-"), "both write to stdout"),
        ((*made, "--questions", file, "--from-sessions"), "cannot be combined"),
        (
            (*made, "--from-sessions"),
            "no stored session asked corpus tiny a question; ask, or give --questions",
        ),
    ):
        code, out, err = call("labels", *args)
        assert (code, out) == (2, "")
        (line,) = err.splitlines()
        assert line.startswith("error: ")
        assert told in line


def test_a_pooling_that_fails_says_so(engine, call, questions, monkeypatch):
    call("labels", "create", "s", "--corpus", "tiny", "--questions", questions)
    monkeypatch.setattr(pool, "best", lambda *_: 1 / 0)
    code, _, err = call("labels", "pool", "s", "--routes", "bm25", "--json")
    assert code == 1
    assert "ZeroDivisionError" in err


def test_a_pooling_that_is_stopped_keeps_what_it_has(engine, call, questions, monkeypatch):
    asked, stopped = threading.Event(), threading.Event()
    start, cancel = FakeEngine.start, pool.Pooling.cancel

    @contextmanager
    def stoppable():
        yield asked

    def slow(self, request):
        asked.set()
        assert stopped.wait(60)
        return start(self, request)  # what ends at once is kept

    def stop(self):
        cancel(self)
        stopped.set()

    call("labels", "create", "s", "--corpus", "tiny", "--questions", questions)
    monkeypatch.setattr(pool.Pooling, "cancel", stop)
    monkeypatch.setattr(common, "stoppable", stoppable)
    monkeypatch.setattr(FakeEngine, "start", slow)
    code, out, _ = call("labels", "pool", "s", "--routes", "bm25", "--json")
    told = json.loads(out)
    assert (code, told["interrupted"], told["questions"]) == (1, True, 1)
    assert told["new"] == len(desks.load(engine.store, "s").pool["q1"]) > 0
