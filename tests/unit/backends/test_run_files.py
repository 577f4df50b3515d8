"""Replies from files: a route of an evaluation that is never asked. The figures are those of ir_measures."""

from __future__ import annotations

import json
from pathlib import Path

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.external import run_files
from core.domain.errors import BadInput
from core.domain.ranked import run_lines
from core.domain.text import composed
from core.domain.types import Query, Turn
from core.evaluation import experiment_store
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import decide
from core.evaluation.release.measured import of_evaluation
from core.evaluation.release.report import climb
from core.evaluation.spec import Spec
from core.routes import registry
from tests.unit.cli.test_cli import beir, call, engine, one_error, using  # noqa: F401 - fixtures

QUESTIONS = {"q1": Query("box arrived crushed")}
TREC = """\
q1 Q0 keys:0-80 1 2.5 theirs
q1 Q0 crushed:0-80 2 2.0 theirs
q2 Q0 keys:0-80 1 9 theirs
"""


def forget():
    """Forget routes and files, as a new process would."""
    registry.forget_given()
    run_files._files.clear()


@pytest.fixture(autouse=True)
def as_before():
    """A route that was added is one of its own test alone."""
    yield
    forget()


def written(tmp_path: Path, text: str, name: str = "theirs.run") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def asked(file: run_files.RunFile, query: Query):
    turns = [{"role": turn.role, "text": turn.text} for turn in query.history]
    text, ms = file.ask({"query": query.text, "history": turns}, 1.0, None)
    return json.loads(text), ms


def figures(call, *args):  # noqa: F811
    code, out, err = call("eval", *args, "--json")
    assert code == 0, err
    return json.loads(out)


def test_a_run_file_has_the_figures_that_ir_measures_gives_it(beir, call, tmp_path):  # noqa: F811
    path = written(tmp_path, TREC)
    found = figures(call, beir, "--routes", "bm25", "--run", f"theirs={path}")
    row = found["routes"]["theirs"]
    qrels = {"q1": {"crushed:0-80": 1}, "q2": {"keys:0-80": 1}, "q3": {"fragile:0-80": 1}}
    run = ir_measures.read_trec_run(str(path))
    theirs = ir_measures.calc_aggregate([ir_measures.nDCG @ 10, ir_measures.RR @ 10], qrels, run)
    assert row["ndcg@10"] == pytest.approx(theirs[ir_measures.nDCG @ 10])
    assert row["mrr@10"] == pytest.approx(theirs[ir_measures.RR @ 10])
    assert (row["n"], row["failed"]) == (3, 0), "a question without a line was asked, and nothing was found"


def test_it_says_that_it_was_not_asked_nor_timed(beir, call, tmp_path):  # noqa: F811
    path = written(tmp_path, TREC)
    out = tmp_path / "out"
    found = figures(call, beir, "--routes", "bm25", "--run", f"theirs={path}", "--out", out)
    row = found["routes"]["theirs"]
    assert (row["p50_ms"], row["p95_ms"], row["source"]["file"]) == (None, None, "theirs.run")
    assert any("theirs was not asked" in one and "not measured" in one for one in found["warnings"])
    assert "1 questions have no line in it and count as nothing found" in " ".join(found["warnings"])
    assert "theirs was not asked" in (out / "report.html").read_text()
    assert "NaN" not in (out / "latency.json").read_text()
    decided = json.loads(
        call("gate", out, "--max-p95-ms", "1000", "--json", "--report", tmp_path / "r.md")[1]
    )
    assert decided["chosen"] != "theirs", "a criterion without a figure is not met"
    assert "theirs was not asked: its replies are from theirs.run" in (tmp_path / "r.md").read_text()
    evaluation = experiment_store.opened(out)
    (result,) = [r for r in evaluation.run("q1").results if r.route == "theirs"]
    assert result.spans[0].attributes["time"] == "not measured: the reply is from a file"
    assert Spec.read(evaluation.spec).runs == ("theirs=theirs.run",)
    assert str(tmp_path) not in json.dumps(evaluation.spec["runs"])
    forget()
    measured = of_evaluation(experiment_store.opened(out))
    assert measured.title("theirs") == result.title == "theirs (replies from theirs.run)"
    rung = climb(measured, decide(measured, Criteria())).rungs[-1]
    assert (rung.title, rung.route) == ("your own pipelines", "theirs")
    assert "theirs" not in registry.routes(), "Compare offers what is among the routes"


def test_replies_with_texts_times_and_stages(beir, call, tmp_path):  # noqa: F811
    crushed = "If the box arrived crushed take photos of all six sides and report it within 48 hours."
    lines = [
        {
            "question_id": "q1",
            "ms": 40,
            "hits": [{"doc_id": "x", "text": crushed}],
            "answer": "Take photos.",
            "stages": [{"name": "search", "kind": "retrieve", "hits": [{"doc_id": "x", "text": crushed}]}],
        },
        {"question": "how long are keys stored", "ms": 60, "hits": []},
    ]
    path = written(tmp_path, "\n".join(map(json.dumps, lines)), "theirs.jsonl")
    out = tmp_path / "out"
    found = figures(
        call, beir, "--run", f"theirs={path}", "--routes", "bm25", "--out", out, "--max-failed", "1"
    )
    row = found["routes"]["theirs"]
    assert (row["p50_ms"], row["failed"], row["n"]) == (50.0, 1, 2), "q3 has no reply, and failed"
    assert row["mrr@10"] == 0.5
    result = next(r for r in experiment_store.opened(out).run("q1").results if r.route == "theirs")
    assert [hit.passage.id for hit in result.hits] == ["crushed:0-80"], "matched by its text"
    assert result.answer == "Take photos."
    assert "search" in [span.name for span in result.spans]


def test_another_file_is_another_evaluation(beir, call, tmp_path):  # noqa: F811
    path, out = written(tmp_path, TREC), tmp_path / "out"
    figures(call, beir, "--routes", "bm25", "--run", f"theirs={path}", "--out", out)
    as_it_was = figures(call, beir, "--routes", "bm25", "--run", f"theirs={path}", "--out", out)
    assert as_it_was["routes"]["theirs"]["n"] == 3
    path.write_text(TREC.replace("2.5", "1.5"))
    forget()
    code, _, err = call("eval", beir, "--routes", "bm25", "--run", f"theirs={path}", "--out", out)
    assert code == 2
    assert "holds another evaluation" in err


def test_it_cannot_be_asked_again_without_its_file(beir, engine):  # noqa: F811
    from core.evaluation.experiment import prepare

    with pytest.raises(BadInput, match=r"route 'theirs' is the file a\.run, which cannot be asked"):
        prepare(engine, Spec("tiny", ("bm25", "theirs"), runs=("theirs=a.run",)))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.run", "q9 Q0 keys:0-80 1 2.5 x\n", "line 1: question 'q9' is not among the 3 questions of tiny"),
        ("a.run", TREC + "q1 Q0 keys:0-80 3 1 x\n", "line 4: passage 'keys:0-80' stands there twice"),
        ("a.run", "q1 Q0 keys:0-80 1 nan x\n", "line 1: score 'nan' is no number"),
        ("a.run", "q1 Q0 keys:0-80 1 1\n", "line 1: 5 columns; a TREC run has 6"),
        ("a.run", "", "no reply in it"),
        ("a.run", "q1 Q0 nowhere 1 1 x\n", "none of the 1 ids in a.run is of a passage or document"),
        ("a.jsonl", '{"question_id": "q1", "hits": []}\n' * 2, "line 2: question 'q1' stands there twice"),
        ("a.jsonl", '{"question": "never asked", "hits": []}', "line 1: tiny does not ask 'never asked'"),
        ("a.jsonl", '{"hits": []}', "line 1: no question_id and no question"),
        ("a.jsonl", '{"question_id": "q1"}', "line 1: its reply has no field hits"),
        ("a.jsonl", '{"question_id": "q1", "hits": [{"doc_id": "a", "score": NaN}]}', "NaN is no number"),
        ("a.jsonl", '{"question_id": "q1", "hits": [], "ms": -1}', "line 1: ms is -1"),
        ("a.jsonl", '{"question_id": "q1", "hits"', "line 1: not JSON"),
        ("a.zip", "", "cannot tell its kind by its ending"),
    ],
)
def test_a_bad_file_is_one_message_that_names_the_line(beir, call, tmp_path, name, text, message):  # noqa: F811
    path = written(tmp_path, text, name)
    code, out, err = call("eval", beir, "--routes", "bm25", "--run", f"theirs={path}")
    assert (code, out) == (2, "")
    assert message in one_error(err)


def test_bytes_and_sizes_that_are_none(beir, call, tmp_path):  # noqa: F811
    path = tmp_path / "a.run"
    path.write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8 text (byte 0)" in call("eval", beir, "--run", f"theirs={path}")[2]
    registry.forget_given()
    with path.open("wb") as file:
        file.truncate(200 * 10**6)
    code, _, err = call("eval", beir, "--run", f"theirs={path}")
    assert (code, err.count("\n")) == (2, 1)
    assert "at most 128 MiB are read" in err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("theirs", "cannot read --run 'theirs'"),
        ("=a.run", "cannot read --run"),
        ("theirs=no.run", "does not exist"),
        ("Their s=a.run", "cannot be a route's name"),
        ("bm25={file}", "is the name of a route of RouteScope"),
    ],
)
def test_a_name_or_file_that_cannot_be(beir, call, tmp_path, given, message):  # noqa: F811
    given = given.format(file=written(tmp_path, TREC))
    code, _, err = call("eval", beir, "--run", given)
    assert (code, message in err) == (2, True), err


def test_equal_scores_stand_in_the_order_of_ranks(tmp_path):
    path = written(tmp_path, "q1 Q0 b 2 1 x\nq1 Q0 a 1 1 x\nq1 Q0 c 3 7 x\n")
    reply, _ = asked(run_files.read(path, QUESTIONS, "tiny"), QUESTIONS["q1"])
    assert [hit["id"] for hit in reply["hits"]] == ["c", "a", "b"]


def test_equal_questions_that_are_answered_differently_are_refused(tmp_path):
    twice = {"a": Query("Who?"), "b": Query("Who?"), "c": Query("Who?", (Turn("user", "Hello"),))}
    path = written(tmp_path, "a Q0 x 1 1 x\nb Q0 y 1 1 x\n")
    with pytest.raises(BadInput, match="questions 'a' and 'b' ask the same"):
        run_files.read(path, twice, "tiny")
    path.write_text("a Q0 x 1 1 x\nb Q0 x 1 1 x\nc Q0 z 1 1 x\n")
    file = run_files.read(path, twice, "tiny")
    assert asked(file, twice["c"])[0]["hits"][0]["id"] == "z"
    assert asked(file, twice["b"])[0]["hits"][0]["id"] == "x"


ids = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(
    lambda id: composed(id) == id  # others are read as the ids of a corpus are, composed
)


@given(st.dictionaries(ids, st.lists(ids, min_size=1, max_size=5, unique=True), min_size=1, max_size=4))
def test_what_routescope_writes_is_read_back(tmp_path_factory, rankings):
    ranked = {q: tuple((id, 1.0) for id in found) for q, found in rankings.items()}
    path = tmp_path_factory.mktemp("runs") / "a.run"
    path.write_text("".join(run_lines("theirs", ranked)), encoding="utf-8")
    queries = {id: Query(f"question {n}") for n, id in enumerate(rankings)}
    file = run_files.read(path, queries, "set")
    for id, query in queries.items():
        reply, _ = asked(file, query)
        assert [hit["doc_id"] for hit in reply["hits"]] == rankings[id]
