"""`--route` and `--python` of `ask` and `eval`, as they are used from outside."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import core.engine.engine as engine_module
import core.evaluation.runner  # noqa: F401 - subclasses Engine, which tests replace
from core.backends.external import doors
from core.cli import corpora, main
from core.domain import settings as settings_module
from core.domain.settings import Settings
from core.evaluation.outcome import Outcome
from core.evaluation.scoring import outside_remarks
from core.routes import registry
from tests.fakes import TEXTS, FakeEngine
from tests.loopback import http, loopback

PIPELINE = """
def search(query, k):
    words = set(query.lower().split())
    best = sorted(TEXTS.items(), key=lambda one: -len(words & set(one[1].lower().split())))
    return [{"doc_id": id.split(":")[0], "text": text} for id, text in best][:k]
def strangers(query, k):
    return [{"doc_id": "x", "text": "Words that stand in no passage of this corpus."}, *search(query, 1)]
def fails(query, k): raise ValueError("no index")
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = FakeEngine(tmp_path)
    monkeypatch.setattr(engine_module, "shared_engine", lambda: made)
    monkeypatch.setattr(settings_module, "current", lambda: Settings(home=tmp_path))
    (tmp_path / "rag.py").write_text(f"TEXTS = {dict(TEXTS)!r}\n{PIPELINE}")
    yield made
    registry.forget_given()
    doors.stop_all()


@pytest.fixture
def call(engine: FakeEngine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """`ask` or `eval` where rag.py is."""
    monkeypatch.chdir(engine.settings.home)

    def run(*args: object) -> tuple[int, str, str]:
        code = main([str(arg) for arg in args])
        return code, *capsys.readouterr()

    return run


ASK = ("ask", "box arrived crushed", "--corpus", "tiny")


def test_ask_takes_functions_and_an_endpoint_beside_routes_and_one_that_fails_costs_the_others_nothing(
    call: Any,
) -> None:
    id, text = next(iter(TEXTS.items()))
    with loopback(http(json.dumps([{"doc_id": id.split(":")[0], "text": text}]))) as server:
        routes = [f"service={server.url}/search", "mine=rag.py:search", "broken=rag.py:fails"]
        given = [part for route in routes for part in ("--route", route)]
        code, out, _ = call(*ASK, "--routes", "bm25", *given, "--python", sys.executable, "--json")
    assert code == 0
    results = {one["route"]: one for one in json.loads(out)["results"]}
    assert list(results) == ["bm25", "service", "mine", "broken"]
    assert [one["status"] for one in results.values()] == ["ok", "ok", "ok", "failed"]
    assert results["broken"]["error"] == "pipeline broken failed: ValueError: no index"
    assert [hit["id"] for hit in results["service"]["hits"]] == [id]
    assert results["mine"]["hits"]
    registry.forget_given()
    _, out, _ = call(*ASK, "--route", "mine=rag.py:search", "--json")  # without --routes: a first visit's
    asked = {one["route"] for one in json.loads(out)["results"]}
    assert asked == {"mine", *(one.name for one in registry.ours().values() if one.first)}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--route", "mine"], "cannot read --route 'mine'; write NAME=FILE.py:FUNCTION"),
        (["--route", "mine=absent.py:f"], "absent.py does not exist"),
        (["--route", "bm25=rag.py:search"], "is the name of a route of RouteScope"),
        (["--route", "mine=rag.py:search", "--python", "/not/there"], "no Python interpreter at /not/there"),
        (["--python", "python3"], "--python needs --route"),
    ],
)
def test_what_cannot_be_read_is_one_line(call: Any, options: list[str], said: str) -> None:
    code, out, err = call(*ASK, *options)
    assert (code, out) == (2, "")
    (line,) = [line for line in err.splitlines() if line]
    assert said in line


def test_eval_measures_it_and_tells_strangers(
    engine: FakeEngine, call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": id, "text": text} for id, text in TEXTS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": "box arrived crushed"}))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tcrushed:0-80\t1\n")
    engine.fakes["tiny"].name = "tiny"
    monkeypatch.setattr(engine_module, "Engine", lambda settings: engine)
    monkeypatch.setattr(corpora, "ensure", lambda source, settings: None)
    own = ("--route", "mine=rag.py:search", "--route", "odd=rag.py:strangers")
    code, out, _ = call("eval", folder, "--routes", "bm25", *own, "--json")
    assert code == 0
    figures = json.loads(out)
    assert list(figures["routes"]) == ["bm25", "mine", "odd"]
    assert figures["routes"]["mine"]["statuses"]["ok"] == 1
    assert "mine, odd: a pipeline of your own, whose time is measured from outside" in figures["warnings"]
    (told,) = [line for line in figures["warnings"] if line.startswith("odd:")]
    assert "50.0% of its first 10 passages are not in the corpus; 0 of 1 are labelled" in told


def test_labelled_strangers_are_counted() -> None:
    outcomes = {"q": {"mine": Outcome("ok", 1.0, (("unmatched:a", 1.0), ("b", 0.5)))}}
    (told,) = outside_remarks(outcomes, ["mine", "bm25"], {"q": {"unmatched:a": 2}})
    assert "1 of 1 are labelled" in told
    assert outside_remarks({"q": {"mine": Outcome("ok", 1.0, (("b", 0.5),))}}, ["mine"], {}) == []
