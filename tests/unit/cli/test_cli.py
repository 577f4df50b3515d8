"""The command line: one JSON document, one line of error, the right exit code."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from shlex import split

import pytest
from jsonschema import Draft202012Validator

from core.cli import ask, cli, common, corpora, declared_commands, main
from core.domain import settings as settings_module
from core.domain.errors import BadInput, ModelFailed, Unavailable
from core.domain.settings import PROJECT, Settings
from core.domain.types import Turn
from core.engine import engine as engine_module
from core.evaluation import runner  # noqa: F401 - subclasses Engine, which is replaced below
from core.routes import registry
from core.routes.registry import routes
from core.store import Store
from scripts import cli_docs, schemas
from tests.fakes import TEXTS, FakeEngine, MemoryCorpus, ScriptedLLM

ROW = "ndcg@10 recall@10 recall@100 mrr@10 map p50_ms p95_ms unjudged@10 failed ci95"
ROUTE = "name title family needs available why_not parameters paper"
SPAN = "id parent name kind start_ms ms inputs output hits shared_with cached error tokens"


@pytest.fixture
def using(tmp_path, monkeypatch):
    """Make an engine that every command gets."""

    def use(engine):
        monkeypatch.setattr(engine_module, "shared_engine", lambda: engine)
        monkeypatch.setattr(settings_module, "current", lambda: Settings(home=tmp_path))
        return engine

    return use


@pytest.fixture
def engine(tmp_path, using):
    """The real engine over in-memory backends."""
    return using(FakeEngine(tmp_path, llm=ScriptedLLM({"hyde": "photos of all six sides"})))


@pytest.fixture
def call(capsys):
    """Run one command line in this process: (exit code, stdout, stderr)."""

    def run(*args):
        code = main([str(arg) for arg in args])
        return code, *capsys.readouterr()

    return run


def one_error(err):
    """The one line of error that was written."""
    (line,) = [line for line in err.splitlines() if line]
    assert line.startswith("error: ")
    return line


def test_ask_json_has_the_promised_shape(engine, call):
    asked = split("ask 'My box arrived crushed' --corpus tiny --routes bm25,hybrid_rrf,hyde --json")
    code, out, err = call(*asked)
    assert (code, err) == (0, "")
    run = json.loads(out)
    assert {"run_id", "query", "corpus", "wall_ms", "results"} <= run.keys()
    assert (run["query"], run["corpus"]) == ("My box arrived crushed", "tiny")
    assert [result["route"] for result in run["results"]] == ["bm25", "hybrid_rrf", "hyde"]
    for result in run["results"]:
        assert {"route", "status", "ms", "hits", "answer", "citations", "spans", "error"} <= result.keys()
        assert result["status"] == "ok"
        assert {"id", "score", "title"} <= result["hits"][0].keys()
        for span in result["spans"]:
            assert set(SPAN.split()) <= span.keys()
    found = engine.job(run["run_id"]).snapshot()
    for result, own in zip(run["results"], found.results, strict=True):
        assert [(h["id"], h["score"]) for h in result["hits"]] == [(h.passage.id, h.score) for h in own.hits]
    calls = [span["calls"] for span in run["results"][2]["spans"]]
    assert sum(calls) == 1


def test_ask_json_says_where_arguments_come_from_and_what_steps_came_to(engine, call):
    asked = "ask box --corpus tiny --routes hybrid_rrf,hyde --answers all --parameter hybrid_rrf.k=7"
    code, out, _ = call(*split(asked), "--json")
    assert code == 0
    hybrid, hyde = json.loads(out)["results"]
    steps = {span["name"]: span for span in hybrid["spans"] if span["parent"] is None}
    fused, words = steps["fuse by reciprocal rank"], steps["search BM25"]
    assert fused["links"] == [
        {"arg": f"lists[{at}]", "span": span["id"], "start": 0, "size": len(span["hits"])}
        for at, span in enumerate((words, steps["search vectors"]))
    ]
    assert (fused["args"], fused["output"]) == (
        {"k": 7, "weights": [1.0, 1.0]},
        {"type": "fusion", "method": "rrf"},
    )
    assert fused["set_by"] == {"k": "k", "weights.0": "bm25_weight", "weights.1": "dense_weight"}
    assert words["output"] == {"type": "search", "texts": ["box"]}
    assert hybrid["origin"] == {"arg": "hits", "span": fused["id"], "start": 0, "size": len(hybrid["hits"])}
    for result in (hybrid, hyde):
        assert (result["answer_status"], result["answer_error"]) == ("written", None)
        wrote = next(span for span in result["spans"] if span["id"] == result["answer_span"])
        assert (wrote["output"]["type"], wrote["output"]["text"]) == ("written", result["answer"])
        assert all("type" in span["output"] for span in result["spans"])
        assert all(span["inputs"] == {**span["args"], **span["attributes"]} for span in result["spans"])


def test_ask_json_says_that_the_answer_failed_and_what_a_route_made_by_hand(engine, call, monkeypatch):
    def by_hand(do, **_):
        found = do.sparse(do.question)
        return do.answer(do.question, do.rrf((found[1:2], tuple(reversed(found)), ())))

    monkeypatch.setitem(routes(), "bm25", replace(routes()["bm25"], function=by_hand))
    engine.fake_llm.replies = {"answer": ModelFailed("it gave HTML"), "evidence": "0.90"}
    asked = "ask 'shipping a crushed box' --corpus tiny --routes bm25 --answers all --json"
    code, out, _ = call(*split(asked))
    assert code == 0
    (result,) = json.loads(out)["results"]
    assert (result["status"], result["answer"], result["answer_status"]) == ("ok", None, "failed")
    assert "it gave HTML" in result["answer_error"]
    found, fused = (span for span in result["spans"] if span["hits"] is not None)
    assert fused["links"] == [
        {"arg": "lists[0]", "span": found["id"], "start": 1, "size": 1},
        {"arg": "lists[1]", "span": None, "start": 0, "size": len(found["hits"])},
        {"arg": "lists[2]", "span": None, "start": 0, "size": 0},
    ]


def test_ask_for_people_compares_and_tells_how_to_open_the_run(engine, call):
    code, out, _ = call(*split("ask 'crushed box' --corpus tiny --routes bm25,dense,hyde --answers all"))
    assert code == 0
    assert "crushed:0-80" not in out, "a passage is named, not by its characters"
    assert "photos of all six sides" in out  # what hyde searched with
    assert "answer: an answer of five words" in out
    last = out.rstrip().splitlines()[-1]
    assert "http://localhost:8501/?run=" in last
    assert "python -m core serve" in last


def test_ask_prints_what_passages_say_and_the_whole_text_on_request(engine, call):
    out = call(*ASK, "--routes", "bm25,dense", "--hits", "2")[1]
    assert TEXTS["crushed:0-80"][:20] in out
    assert "more passages among the first 10 of some route: --hits " in out
    assert TEXTS["crushed:0-80"] in call(*ASK, "--routes", "bm25", "--text")[1]
    (line,) = [line for line in out.splitlines() if "more passages" in line]
    every = call(*ASK, "--routes", "bm25,dense", "--hits", line.split()[-1])[1]
    assert "more passage" not in every
    assert len(every[every.index("Rank of") :].split("\n\n")[0].splitlines()) == 3 + len(TEXTS)
    assert "0 is not in the range" in one_error(call(*ASK, "--hits", "0")[2])


def test_a_route_without_a_result_says_what_to_do_in_full(tmp_path, using, monkeypatch, call):
    remedy = "run python -m core models pull and set an address " + "that is long " * 20 + "to the end"
    using(FakeEngine(tmp_path, llm=ScriptedLLM(missing=remedy)))
    monkeypatch.setenv("COLUMNS", "80")
    out = call(*ASK, "--routes", "hyde,bm25,step_back")[1]
    assert f"hyde, step_back: unavailable, {remedy}" in out.splitlines()


def test_many_routes_are_told_in_few_lines(engine, call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    many = "bm25,dense,hybrid_rrf,hybrid_linear,mmr,dedupe,compress,rerank,multi_query,rag_fusion,hyde"
    code, out, _ = call(*ASK, "--routes", many)
    assert code == 0
    assert "Rank of each passage by route (# as above)" in out
    assert len([line for line in out.split("\n\nhyde\n")[0].splitlines() if line.strip()]) <= 40
    table = out[out.index("Rank of") :].split("\n\n")[0].splitlines()
    assert max(map(len, table)) <= 100


def test_ask_takes_a_path_as_eval_does(engine, call, tmp_path, monkeypatch):
    built = []
    monkeypatch.setattr(corpora, "ensure", lambda source, settings: built.append((source.name, source.path)))
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "a.txt").write_text("words")
    assert call("ask", "box", "--corpus", folder, "--routes", "bm25")[0] == 0
    assert built == [("tiny", folder)]
    empty = tmp_path / "empty"
    empty.mkdir()
    for place, told in (("no such/place", "no such/place"), (empty, "no readable document")):
        assert told in one_error(call("ask", "box", "--corpus", place, "--routes", "bm25")[2])


@pytest.mark.trust
def test_hostile_text_steers_no_terminal(tmp_path, using, call):
    evil = "red \x1b[31m box \x07 \u202egnp.exe \u009b2J crushed"
    using(FakeEngine(tmp_path, texts={f"d{evil}": evil}))
    for extra in ([], ["--text"], ["--json"]):
        code, out, err = call("ask", "crushed \x1b[31m box", "--corpus", "tiny", "--routes", "bm25", *extra)
        assert code == 0
        assert not any(c in out + err for c in "\x1b\x07\u202e\u009b")


def test_a_follow_up_comes_with_its_history(engine, call, tmp_path):
    plain, as_json = tmp_path / "h.txt", tmp_path / "h.json"
    plain.write_text("user: My box arrived crushed.\nIt is wet too.\nAssistant: Sorry.\n")
    as_json.write_text(
        '[{"role": "user", "text": "My box arrived crushed.\\nIt is wet too."},'
        ' {"role": "assistant", "text": "Sorry."}]'
    )
    expected = (Turn("user", "My box arrived crushed.\nIt is wet too."), Turn("assistant", "Sorry."))
    assert ask.read_history(plain) == ask.read_history(as_json) == expected
    code, out, _ = call(*ASK, "--routes", "bm25", "--history", plain, "--json")
    assert code == 0
    assert [turn["role"] for turn in json.loads(out)["history"]] == ["user", "assistant"]


ASK = ("ask", "box", "--corpus", "tiny")


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("ask", "", "--corpus", "tiny"), "the question is empty"),
        (("ask", "x" * 10_001, "--corpus", "tiny"), "10,001 characters; at most 10,000"),
        ((*ASK, "--routes", "bm25,nope"), "unknown route 'nope'; known: all, "),
        ((*ASK, "--routes", ","), "no route given; known: all, "),
        ((*ASK, "--parameter", "hybrid_rrf.k=x"), "hybrid_rrf.k: 'x' is not allowed; expected a"),
        ((*ASK, "--routes", "bm25", "--parameter", "k=5"), "write ROUTE.NAME=VALUE"),
        ((*ASK, "--routes", "bm25", "--parameter", "dense.k=5"), "not one of the chosen routes: bm25"),
        ((*ASK, "--routes", "bm25", "--answers", "selected"), "must be given together"),
        ((*ASK, "--routes", "bm25", "--answers", "none", "--answered", "bm25"), "must be given together"),
        ((*ASK, "--timing", "quick"), "'quick' is not one of 'shared', 'isolated'"),
        ((*ASK, "--history", "nowhere.txt"), "cannot read history nowhere.txt"),
        ((*ASK, "--history", __file__), "line 1: start the line with"),
        (("ask",), "Missing argument 'QUESTION'"),
        (("ask", "x", "--rotes", "a"), "No such option '--rotes'"),
        (("nope",), "unknown command 'nope'; known: ask, audit, audit-access"),
        (("eval", "no/such/folder"), "unknown corpus 'no/such/folder'; known: support"),
        (("eval", str(PROJECT / "data" / "vectors")), "no questions; give a BEIR folder"),
        (("eval", "support", "--routes", "bm25", "--baseline", "dense"), "'dense' is not among"),
        (("eval", "support", "--queries", "0"), "0 is not in the range"),
        (("eval", "support", "--fresh"), "need --out DIR"),
        (("eval", "support", "--qrels", "x"), "no relevance judgements: looked for x"),
        (("index", "no/such/folder"), "unknown corpus 'no/such/folder'"),
        (("models", "pull", "nope"), "unknown model 'nope'; known: qwen2.5-coder-1.5b"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(engine, call, args, told):
    code, out, err = call(*args)
    assert (code, out) == (2, "")
    assert told in one_error(err)


def test_a_run_in_which_no_route_ends_well_fails_and_is_shown(tmp_path, using, call):
    using(FakeEngine(tmp_path, llm=ScriptedLLM(missing="no model; run this")))
    code, out, _ = call(*ASK, "--routes", "hyde", "--json")
    assert (code, json.loads(out)["results"][0]["status"]) == (1, "unavailable")
    assert json.loads(out)["results"][0]["error"] == "no model; run this"
    code, out, _ = call(*ASK, "--routes", "hyde,bm25", "--json")
    assert code == 0


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (Unavailable("corpus x is not built"), 1, "error: corpus x is not built"),
        (BadInput("bad\nthing \x1b[31m"), 2, "error: bad thing [31m"),
        (ZeroDivisionError("oh"), 1, "error: ZeroDivisionError: oh (add --debug for the traceback)"),
        (KeyboardInterrupt(), 1, "error: stopped by the user"),
    ],
)
def test_every_exception_is_one_line(engine, call, monkeypatch, error, code, told):
    def fail(request):
        raise error

    monkeypatch.setattr(engine, "start", fail)
    found, out, err = call(*ASK)
    assert (found, out, err.strip()) == (code, "", told)
    assert "Traceback" in call(*ASK, "--debug")[2]


def test_ctrl_c_keeps_what_is_done(tmp_path, using, monkeypatch, call):
    made = using(FakeEngine(tmp_path, llm=ScriptedLLM(delay=3600)))
    start = made.start

    def begin(request):
        job = start(request)
        wait, left = job.wait, [KeyboardInterrupt]

        def interrupted(timeout=None):
            if left:
                while len(job.snapshot().results) < 2:
                    time.sleep(0.01)
                raise left.pop()
            return wait(timeout)

        job.wait = interrupted
        return job

    monkeypatch.setattr(made, "start", begin)
    code, out, err = call(*ASK, "--routes", "bm25,hyde,dense", "--json")
    statuses = {result["route"]: result["status"] for result in json.loads(out)["results"]}
    assert (code, statuses) == (1, {"bm25": "ok", "hyde": "cancelled", "dense": "ok"})
    assert "finished work is saved" in err


class Shelf(MemoryCorpus):
    """A corpus in memory with the documents that labels are placed in."""

    def by_ids(self, ids):
        return super().by_ids([id for id in ids if id in TEXTS])

    def document(self, id):
        raise BadInput(f"corpus {self.name} has no document {id!r}")


@pytest.fixture
def beir(tmp_path, monkeypatch, engine):
    """A BEIR folder over the texts of the fake engine, which counts as indexed."""
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": id, "text": text} for id, text in TEXTS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    asked = ("box arrived crushed", "how long are keys stored", "fragile items double boxed")
    rows = [{"_id": f"q{at}", "text": text} for at, text in enumerate(asked, 1)]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\tcrushed:0-80\t1\nq2\tkeys:0-80\t1\nq3\tfragile:0-80\t1\n"
    )
    engine.fakes["tiny"] = Shelf(TEXTS)
    monkeypatch.setattr(engine_module, "Engine", lambda settings: engine)
    monkeypatch.setattr(corpora, "ensure", lambda source, settings: None)
    return folder


def test_eval_fails_and_says_so_first_if_a_route_failed_too_often(beir, call, tmp_path):
    own = tmp_path / "own.py"
    own.write_text("def search(query, k):\n    raise RuntimeError('no such service')\n")
    asked = ("eval", beir, "--routes", "bm25", "--route", f"mine={own}:search")
    code, text_out, _ = call(*asked)
    first, *rest = text_out.splitlines()
    assert code == 1
    assert first.startswith("FAILED: mine failed on 3 of 3 questions")
    verdict = next(line for line in rest if "failed on" in line)
    assert "mine failed on 3" in verdict, "no verdict without the routes that failed"
    assert call(*asked, "--max-failed", "1")[0] == 0
    assert call(*asked, "--json")[0] == 1


def test_each_route_has_the_prices_of_its_own_model_of_the_day_it_was_begun(
    beir, call, tmp_path, engine, monkeypatch
):
    monkeypatch.setattr(registry, "_models", {"a", "b"})
    own = {"a": {"model": "m", "price_prompt": 1.0, "price_completion": 2.0}, "b": {"model": "m"}}
    default = {"llm_price_prompt": 20.0, "llm_price_completion": 40.0}
    out, routes = tmp_path / "priced", "hyde,hyde@a,hyde@b"
    engine.settings = Settings(home=tmp_path, models=own, **default)

    def stored():
        rows = json.loads((out / "metrics.json").read_text())["routes"]
        return {name: row["prices"] for name, row in rows.items()}

    code, _, err = call("eval", beir, "--routes", routes, "--out", out, "--max-failed", "1")
    assert code == 0, err
    assert stored() == {"hyde": [20.0, 40.0], "hyde@a": [1.0, 2.0], "hyde@b": [None, None]}
    engine.settings = Settings(home=tmp_path, models=own, llm_price_prompt=9, llm_price_completion=9)
    then = stored()
    resumed = call("eval", beir, "--routes", routes, "--out", out, "--max-failed", "1")
    assert resumed[0] == 0, "nothing is asked again"
    assert stored() == then


def test_eval_json_has_the_promised_shape(beir, call, tmp_path):
    out = tmp_path / "out"
    code, text_out, err = call("eval", beir, "--routes", "bm25,dense,hyde", "--json", "--out", out)
    assert code == 0
    assert "questions: 3 of 3" in err
    figures = json.loads(text_out)
    Draft202012Validator(json.loads(schemas.document("metrics"))).validate(figures)
    assert (figures["dataset"], figures["queries"], figures["warnings"]) == ("tiny", 3, [])
    for name, row in figures["routes"].items():
        assert set(ROW.split()) <= row.keys()
        assert row["ci95"]["ndcg@10"][0] <= row["ndcg@10"] <= row["ci95"]["ndcg@10"][1]
        if name != "bm25":
            assert {"delta", "p", "p_holm"} <= row["vs_baseline"]["map"].keys()
    assert figures["routes"]["bm25"]["mrr@10"] == 1.0
    assert figures["routes"]["hyde"]["llm_calls"] == 3
    assert json.loads((out / "metrics.json").read_text()) == figures
    files = "metrics.json bm25.run dense.run hyde.run qrels.txt latency.json report.html"
    assert {file.name for file in out.iterdir()} >= set(files.split())


def test_eval_goes_on_and_refuses_to_mix(beir, call, tmp_path, engine, monkeypatch):
    out = tmp_path / "out"
    first = call("eval", beir, "--routes", "bm25", "--out", out, "--queries", "2", "--json")[1]
    assert json.loads(first)["sample"] == {"of": 3, "seed": 13}
    begun = []
    start = engine.start
    monkeypatch.setattr(engine, "start", lambda request: begun.append(request) or start(request))
    code, told, _ = call("eval", beir, "--routes", "bm25", "--out", out)
    assert (code, len(begun)) == (0, 1)
    assert "report.html" in told
    code, _, err = call("eval", beir, "--routes", "bm25,dense", "--out", out)
    assert code == 2
    assert "another evaluation (routes: ['bm25'] there, ['bm25', 'dense'] now)" in one_error(err)


def test_eval_measures_answers_without_a_model(beir, call, tmp_path, engine):
    out, extract = tmp_path / "out", ("--answers", "all", "--answer-by", "extract")
    with (beir / "queries.jsonl").open("a") as file:
        file.write('\n{"_id": "q4", "text": "who is the mayor", "metadata": {"answerable": false}}\n')
    code, text_out, _ = call("eval", beir, "--routes", "bm25,dense", "--out", out, "--json", *extract)
    assert code == 0
    assert engine.fake_llm.requests == []
    figures = json.loads(text_out)
    assert (figures["queries"], figures["labelled"]) == (4, 3)
    assert figures["answering"]["by"] == "extract"
    for row in figures["routes"].values():
        assert row["answers"].keys() >= {"n", "answered", "abstained", "correct", "ci95"}
        assert row["supported_accuracy"] == row["answers"]["supported_accuracy"]
    lines = (out / "answers.jsonl").read_text().splitlines()
    assert len(lines) == sum(row["answers"]["n"] for row in figures["routes"].values()) == 8
    code, told, _ = call("eval", beir, "--routes", "bm25,dense", "--out", out, *extract)
    assert code == 0
    assert "abst R" in told
    assert "Answers against bm25" in told
    code, _, err = call("eval", beir, "--routes", "bm25,dense", "--out", out)
    assert code == 2
    assert "another evaluation (answers: {'by': 'extract'" in one_error(err)


def test_answer_options_say_how_answers_are_written(beir, call, engine):
    code, _, err = call("eval", beir, "--routes", "bm25", "--answer-by", "extract")
    assert code == 2
    assert "--answers all" in one_error(err)
    engine.fake_llm.replies = {"evidence": "0.9", "answer": "Within 48 hours [5]."}
    question = "If the box arrived crushed take photos of all six sides and report it"
    ask_it = ("ask", question, "--corpus", "tiny", "--routes", "dense", "--answers", "all", "--json")
    first = json.loads(call(*ask_it)[1])["results"][0]
    assert first["citations"] == [first["hits"][4]["id"]]
    both = json.loads(call(*ask_it, "--answer-order", "best at both ends")[1])["results"][0]
    assert both["citations"] == [both["hits"][1]["id"]]
    engine.fake_llm.missing = "no model"
    copied = json.loads(call(*ask_it, "--answer-by", "extract")[1])["results"][0]
    assert copied["status"] == "ok"
    assert copied["answer"].startswith("If the box arrived crushed")


def test_eval_tells_a_broken_set_before_it_builds_an_index(beir, call, monkeypatch):
    monkeypatch.setattr(corpora, "ensure", lambda *_: pytest.fail("an index was built"))
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\n")
    code, _, err = call("eval", beir, "--routes", "bm25")
    assert code == 2
    assert "test.tsv line 2" in one_error(err)
    for args, told in [
        (("--parameter", "dense.k=1"), "not one of the chosen routes: bm25"),
        (("--mode", "plain"), "has no questions of mode 'plain'; it has: none"),
        (("--split", "dev"), "there are: test, all"),
    ]:
        (beir / "qrels" / "test.tsv").write_text("q1\tcrushed:0-80\t1\n")
        code, _, err = call("eval", beir, "--routes", "bm25", *args)
        assert code == 2
        assert told in one_error(err)


def test_eval_fails_when_no_route_ends_well_and_shows_why(beir, call, engine):
    engine.fake_llm.missing = "no model; run this"
    code, out, _ = call("eval", beir, "--routes", "hyde")
    assert code == 1
    assert "hyde: no model; run this" in out
    row = json.loads(call("eval", beir, "--routes", "bm25,hyde", "--json")[1])["routes"]["hyde"]
    assert (row["failed"], row["ndcg@10"], row["statuses"]["unavailable"]) == (3, None, 3)


def test_a_run_is_exported_and_imported_byte_for_byte(tmp_path, monkeypatch, call):
    homes = [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        home.mkdir()
    stores = [Store(home / "routescope.sqlite") for home in homes]
    monkeypatch.setattr(settings_module, "current", lambda: Settings(home=tmp_path))
    here, there = (FakeEngine(home, store=store) for home, store in zip(homes, stores, strict=True))
    monkeypatch.setattr(engine_module, "shared_engine", lambda: here)
    run_id = json.loads(call(*ASK, "--routes", "bm25,dense", "--json")[1])["run_id"]
    first, second = tmp_path / "a.zip", tmp_path / "b.zip"
    code, out, _ = call("export", run_id, "--out", first, "--json")
    assert (code, json.loads(out)["bytes"]) == (0, first.stat().st_size)
    assert "already exists" in one_error(call("export", run_id, "--out", first)[2])
    code, out, _ = call("export", run_id, "--format", "trec", "--out", "-")
    assert next(line.split()[3] for line in out.splitlines() if line.endswith(" bm25")) == "1"
    monkeypatch.setattr(engine_module, "shared_engine", lambda: there)
    assert json.loads(call("import", first, "--json")[1]) == {"imported": [run_id]}
    assert json.loads(call("import", first, "--json")[1]) == {"imported": []}
    assert call("export", run_id, "--out", second)[0] == 0
    assert first.read_bytes() == second.read_bytes()
    for args, told in [
        (("export", "nope", "--out", tmp_path / "c"), "nope"),
        (("import", __file__), "not a session bundle"),
        (("import", "nowhere.zip"), "cannot read nowhere.zip"),
    ]:
        code, out, err = call(*args)
        assert (code, out) == (2, "")
        assert told in one_error(err)


@pytest.mark.slow
def test_every_command_is_documented():
    assert cli_docs.PAGE.read_text(encoding="utf-8") == cli_docs.page(), "run: python -m scripts.cli_docs"
    for name, (_, summary) in declared_commands().items():
        assert f"## `python -m core {name}`" in cli_docs.page()
        assert cli.get_command(None, name).get_short_help_str(300) == summary


def environment(tmp_path):
    return {**os.environ, "ROUTESCOPE_HOME": str(tmp_path), "ROUTESCOPE_MODELS_DIR": str(tmp_path / "models")}


def core(tmp_path, *args, **more):
    command, env = [sys.executable, "-m", "core", *args], environment(tmp_path) | more
    return subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, text=True)


@pytest.mark.process
def test_listing_routes_is_quick_and_needs_nothing(tmp_path):
    def worked() -> float:  # seconds of processor time, which other programs' load changes least
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    ratios = []
    for _ in range(3):  # both beside the same load: how fast a processor is changes from minute to minute
        before = worked()
        subprocess.run([sys.executable, "-c", "import numpy, pydantic"], check=True)
        between = worked()
        done = core(tmp_path, "routes", "--json")
        ratios.append((worked() - between) / (between - before))
        if ratios[-1] < 8:
            break
    assert (done.returncode, done.stderr) == (0, "")
    by_name = {route["name"]: route for route in json.loads(done.stdout)["routes"]}
    assert by_name["bm25"].keys() >= set(ROUTE.split())
    assert by_name["bm25"]["available"]
    assert "models pull" in by_name["hyde"]["why_not"]
    assert min(ratios) < 14  # 6 on a quiet machine (1.2 s), over 10 beside other work


@pytest.fixture
def empty_home(tmp_path, monkeypatch):
    """The real engine over a home without anything, as every command gets it."""
    there = Settings(home=tmp_path, models_dir=tmp_path / "models")
    made = engine_module.Engine(there, Store(tmp_path / "routescope.sqlite"))
    monkeypatch.setattr(settings_module, "current", lambda: there)
    monkeypatch.setattr(engine_module, "shared_engine", lambda: made)
    yield made
    made.store.close()


def test_lists_are_there_before_anything_is_built(empty_home, call):
    corpora = json.loads(call("corpora", "--json")[1])["corpora"]
    states = {one["name"]: one["state"] for one in corpora}
    assert (states["support"], states["pydocs"]) == ("not built", "not built")
    models = json.loads(call("models", "--json")[1])
    assert [model["present"] for model in models["models"]] == [False] * 3
    code, out, err = call("ask", "x", "--routes", "bm25", "--corpus", "pydocs")
    assert (code, out) == (1, "")
    assert "run python -m core index pydocs" in one_error(err)


@pytest.mark.slow
def test_documents_that_come_with_the_program_are_indexed_when_they_are_asked(empty_home, call):
    code, out, _ = call("ask", "What is a webhook?", "--routes", "bm25", "--corpus", "web", "--json")
    assert (code, json.loads(out)["results"][0]["status"]) == (0, "ok")


@pytest.mark.process
def test_the_doctor_says_what_to_do_and_tells_no_secret(tmp_path):
    secret = {"ROUTESCOPE_LLM_API_KEY": "sk-very-secret", "ROUTESCOPE_LLM_BASE_URL": "http://127.0.0.1:9/v1"}
    done = core(tmp_path, "doctor", "--quick", "--json", **secret)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 0
    assert {"python", "sessions", "disk for home", "corpus support", "browser for tests"} <= checks.keys()
    assert "index support" in checks["corpus support"]["fix"]
    assert "sk-very-secret" not in done.stdout + done.stderr


def test_a_setting_that_cannot_be_is_bad_input(monkeypatch, call):
    monkeypatch.setenv("ROUTESCOPE_TIMING", "slow")
    settings_module.current.cache_clear()
    try:
        code, out, err = call("routes")
    finally:
        settings_module.current.cache_clear()
    assert (code, out) == (2, "")
    assert "setting timing" in one_error(err)


@pytest.mark.process
def test_ctrl_c_stops_an_index_at_a_safe_point(tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "d{n}", "text": "passage number {n} about things"}}\n' for n in range(60_000))
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "core", "index", str(folder), "--json"],
        cwd=PROJECT,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list(tmp_path.glob("indexes/many/.new-*/passages.sqlite")):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (1, "")
    assert "error: indexing was stopped" in err
    assert "Traceback" not in err


def test_tables_align_wide_letters_and_cut_the_last_column(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    lines = common.table(("a", "n", "b"), [("字字", 1, "x" * 60), ("abc", 22, "y")]).splitlines()
    assert lines[2].startswith("字字   1  xxx")
    assert lines[2].endswith("…")
    assert lines[3] == "abc   22  y"
