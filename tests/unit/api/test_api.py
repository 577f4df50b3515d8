"""RouteScope from Python: plain arguments, records with tables, one error for each wrong argument."""

import re
import threading
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from core.analysis.diagnosis import headline
from core.api import (
    BadInput,
    Comparison,
    Unavailable,
    compare,
    comparing,
    evaluate,
    evaluation,
    evaluations,
    gate,
    why,
)
from core.api.arguments import reporting
from core.api.html import table
from core.backends.external import doors
from core.domain import settings as settings_module
from core.domain.program import PROJECT
from core.domain.settings import Settings
from core.engine import engine as engine_module
from core.evaluation.release.measured import find
from core.evaluation.release.snapshot import snapshot
from core.routes import registry
from tests.fakes import TEXTS
from tests.standing import ASKED, Shelf, stand_in

QUESTION = ASKED["q1"]
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> $\\href{javascript:x}{y}$"


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """The engine of the process, over `tiny`."""
    made = stand_in(tmp_path, monkeypatch)
    yield made
    made.store.close()


def broken(do, **_):
    raise RuntimeError("it broke")


def spoil(monkeypatch, name, function):
    known = registry.routes()
    monkeypatch.setitem(known, name, replace(known[name], function=function))


def test_compare_gives_the_run_that_is_stored(engine):
    found = compare(QUESTION, "tiny", ["bm25", "dense"])
    assert isinstance(found, Comparison)
    assert [one.route for one in found.results] == ["bm25", "dense"]
    assert comparing.as_comparison(engine.store.load(found.id)) == found
    assert compare(QUESTION, "tiny", "bm25,dense").results[1].route == "dense"
    with pytest.raises(BadInput):
        engine.store.load(compare(QUESTION, "tiny", ["bm25"], stored=False).id)


def test_without_routes_those_run_that_need_no_model(engine):
    ran = {one.route for one in compare(QUESTION, "tiny").results}
    assert {"bm25", "dense", "hybrid_rrf"} <= ran
    assert not ran & {"hyde", "rewrite", "text_to_sql"}


def test_the_frame_has_the_rank_of_each_passage_in_each_route(engine):
    found = compare(QUESTION, "tiny", ["bm25", "dense"])
    frame = found.to_frame(depth=3)
    assert list(frame.columns) == ["title", "bm25", "dense"]
    for result in found.results:
        order = [hit.passage.id for hit in result.hits]
        for id, rank in frame[result.route].items():
            assert (pd.isna(rank) and id not in order) or order[rank - 1] == id
        assert set(order[:3]) <= set(frame.index)


def test_hostile_text_is_text_in_a_notebook(engine):
    engine.fakes["tiny"] = Shelf({f"{HOSTILE}:0-9": f"crushed {HOSTILE}"}, titles={f"{HOSTILE}:0-9": HOSTILE})
    found = compare(f"crushed {HOSTILE}", "tiny", ["bm25"], answers=True)
    for shown in (found, why(found, f"{HOSTILE}:0-9")):
        page = BeautifulSoup(shown._repr_html_(), "html.parser")
        elements = page.find_all()
        assert {one.name for one in elements} <= {"div", "table", "thead", "tbody", "tr", "th", "td"}
        assert not [name for one in elements for name in one.attrs if name.startswith("on")]
        assert HOSTILE in page.get_text()
        assert "mathjax_ignore" in shown._repr_html_()  # no $...$ is drawn as a formula
    made = table(("a",), [(HOSTILE,)], above=[HOSTILE], below=[HOSTILE])
    assert (type(made), "<script>" in made) == (str, False)


def test_a_pipeline_of_ones_own_is_asked_and_measured_beside_the_others(engine, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "TEXTS = "
        + repr(TEXTS)
        + """
def search(query, k):
    return [{"doc_id": id, "text": text} for id, text in TEXTS.items() if "crushed" in text][:k]
def other(query, k):
    return []
"""
    )
    try:
        own = {"mine": f"{mine}:search"}
        found = compare(QUESTION, "tiny", ["bm25"], own=own)
        assert [(one.route, one.status) for one in found.results] == [("bm25", "ok"), ("mine", "ok")]
        assert [hit.passage.id for hit in found.results[1].hits] == ["crushed:0-80"]
        measured = evaluate("tiny", ["bm25"], own=own, progress=False)
        assert measured.figures["routes"]["mine"]["hit@10"] == pytest.approx(1 / 3)
        changed = compare(QUESTION, "tiny", ["bm25"], own={"mine": f"{mine}:other"})
        assert changed.results[1].hits == ()
        for given in ({"mine": 3}, {"bm25": f"{mine}:search"}, {"a": "no/such.py:f"}, {"Not a name": "x"}, 3):
            with pytest.raises(BadInput):
                compare(QUESTION, "tiny", ["bm25"], own=given)
    finally:
        registry.forget_given()
        doors.stop_all()


def test_the_gate_of_the_documentation_is_a_test_of_five_lines(engine, tmp_path, monkeypatch):
    page = (PROJECT / "docs" / "using.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (example,) = (block for block in blocks if "max_broken" in block)
    defined = {}
    exec(example.replace('"support"', '"tiny"'), defined)
    assert sum(line.startswith((" ", "def")) for line in example.splitlines()) == 4
    monkeypatch.chdir(tmp_path)
    decision = gate(evaluate("tiny", "bm25,hybrid_rrf", keep="release"))
    release = snapshot(find(Settings(home=tmp_path), "release"), decision)
    Path("release.json").write_text(release, encoding="utf-8")
    defined["test_retrieval_can_be_shipped"]()

    for name in ("bm25", "hybrid_rrf"):
        spoil(monkeypatch, name, broken)
    with pytest.raises(AssertionError, match="Nothing passes") as told:
        defined["test_retrieval_can_be_shipped"]()
    assert re.search("Broke: q1 “.*: rank 1, now not ranked. The route failed: .*it broke", str(told.value))


def test_the_frame_of_an_evaluation_is_its_figures(engine):
    measured = evaluate("tiny", ["bm25", "dense"], baseline="dense")
    frame = measured.to_frame()
    assert set(frame.index) == {"bm25", "dense"}
    for route, row in measured.figures["routes"].items():
        assert frame.loc[route, "ndcg@10"] == row["ndcg@10"]
        assert [frame.loc[route, f"ndcg@10 {end}"] for end in ("low", "high")] == row["ci95"]["ndcg@10"]
        assert frame.loc[route, "questions"] == 3
    against = measured.figures["routes"]["bm25"]["vs_baseline"]
    assert frame.loc["bm25", "ndcg@10 delta"] == against["ndcg@10"]["delta"]
    assert pd.isna(frame.loc["dense", "ndcg@10 delta"])
    assert "bm25" in measured._repr_html_()
    assert measured.values["bm25"]["q1"]["ndcg@10"] == 1.0


def test_a_kept_evaluation_is_opened_by_name_and_goes_on(engine, tmp_path, monkeypatch):
    first = evaluate("tiny", ["bm25", "dense"], keep="mine", queries=2)
    assert evaluations() == ["mine"]
    opened = evaluation("mine")
    assert opened.why("q2").grades == {"keys:0-80": 1}
    with pytest.raises(BadInput, match="no question 'q9'; it has for example: q"):
        opened.why("q9")
    assert (opened.figures, opened.outcomes) == (first.figures, first.outcomes)
    assert evaluation(tmp_path / "evaluations" / "mine").figures == first.figures
    asked = []
    monkeypatch.setattr(engine_module.Engine, "start", lambda *_: asked.append(1))
    assert evaluate("tiny", ["bm25", "dense"], keep="mine", queries=2).outcomes == first.outcomes
    assert asked == []


def test_the_gate_is_that_of_the_command_and_holds_against_a_release(engine, tmp_path):
    measured = evaluate("tiny", ["bm25", "dense"], keep="mine")
    by_name, by_value = gate("mine", min_quality=0.2), gate(measured, min_quality=0.2)
    assert by_name == by_value
    assert not by_name, "two questions ship nothing"
    assert gate(measured, min_questions=1, margin=1.0).chosen in measured.routes
    assert not gate(measured, min_quality=1.5)
    file = tmp_path / "before.json"
    file.write_text(snapshot(find(Settings(home=tmp_path), "mine"), by_name))
    decision = gate("mine", min_quality=0.2, against=file)
    assert (decision.ok, decision.against.regression) == (True, "undecided")
    frame = decision.to_frame()
    assert list(frame.index) == ["bm25", "dense"]
    assert bool(frame.loc[decision.nearest, "passes"])
    assert decision.nearest in decision._repr_html_()


def test_why_judges_by_the_labels_of_the_corpus(engine):
    found = compare(QUESTION, "tiny", ["bm25", "dense"])
    told = why(found)
    assert told.grades == {"crushed:0-80": 1}
    assert str(told).splitlines()[0] == headline(told.diagnoses, 10)
    assert [one.best for one in told.diagnoses] == [1, 1]
    assert why(found.id, "keys:0-80", route="bm25").lines[1].endswith("[keys:0-80]")
    assert "1 of 1 routes" in str(why(found, route="bm25", depth=1))


def test_without_labels_why_judges_no_route_and_asks_for_the_expected_passage(engine):
    found = compare("customs invoice", "tiny", ["bm25", "dense"])
    unlabelled = why(found)
    assert (unlabelled.diagnoses, unlabelled.passages) == ((), {})
    assert "no labels" in str(unlabelled)
    judged = why(found, grades={"customs:0-80": 3})
    assert judged.diagnoses[0].of == 1


WRONG = (
    (lambda: compare(" ", "tiny"), "question=' '; give a text"),
    (lambda: compare(3, "tiny"), "question=3; give a text"),
    (lambda: compare("x", "tiny", "nope"), "unknown route 'nope'; known: all, adaptive"),
    (lambda: compare("x", "tiny", [3]), "routes=[3]; give names of routes"),
    (lambda: compare("x", "tiny", []), "no route given; known: all"),
    (lambda: compare("x", "tiny", "bm25", parameters={"bm25": 3}), "parameters="),
    (lambda: compare("x", "tiny", "bm25", parameters={"bm25": {"z": 3}}), "no parameter 'z'"),
    (lambda: compare("x", "tiny", "bm25", parameters={"dense": {}}), "not among the routes"),
    (lambda: compare("x", "tiny", history="said"), "a history is a list"),
    (lambda: compare("x", "tiny", history=[{"role": "robot", "text": ""}]), "a turn is"),
    (lambda: compare("x", "tiny", answers="all"), "answers='all'; give True or False"),
    (lambda: compare("x", "tiny", stored=1), "stored=1; give True or False"),
    (lambda: compare("x", "tiny", build=None), "build=None; give True or False"),
    (lambda: compare("x", "tiny", progress=3), "progress=3; give True, False or a function"),
    (lambda: why("x", depth=0), "depth=0; give a whole number, 1 to 1000"),
    (lambda: why("nope"), "no run 'nope'"),
    (lambda: evaluate("tiny", keep="a", out="b"), "keep and out cannot be combined"),
    (lambda: evaluate("tiny", keep="../a"), "evaluation '../a': give up to 80 letters"),
    (lambda: evaluate("tiny", fresh=True), "fresh and retry_failed need out or keep"),
    (lambda: evaluate("tiny", labels="a", questions="b"), "labels cannot be combined"),
    (lambda: evaluate("tiny", "bm25", labels="a"), "no label set 'a'"),
    (lambda: evaluate("tiny", "bm25", baseline="dense"), "'dense' is not among the routes: bm25"),
    (lambda: evaluate("tiny", "bm25", queries=0), "queries=0; give a whole number, 1 or more"),
    (lambda: evaluate("tiny", "bm25", repeats=99), "repeats=99; give a whole number, 1 to 20"),
    (lambda: evaluate("tiny", "bm25", split="zz"), "zz"),
    (lambda: evaluate("tiny", timing="slow"), "timing='slow'; give shared or isolated"),
    (lambda: evaluate("tiny", questions=[3]), "questions=3; give a path"),
    (lambda: gate("nope"), "'nope' is not a folder, a file or a saved evaluation"),
    (lambda: gate(3), "measured=3; give a path"),
    (lambda: gate("nope", max_failed=2), "max_failed=2; give 0 to 1"),
    (lambda: gate("nope", against="no/such.json"), "'no/such.json' cannot be read: No such file"),
    (lambda: evaluation("nope"), "no saved evaluation and no folder of one; saved are: none"),
    (lambda: evaluation(Path("no/such")), "contains no evaluation"),
)


def test_a_wrong_argument_is_one_clear_error(engine):
    for call, told in WRONG:
        with pytest.raises(BadInput) as raised:
            call()
        assert told in str(raised.value)
        assert "\n" not in str(raised.value)


def test_what_why_is_not_asked_of_is_named(engine):
    found = compare(QUESTION, "tiny", ["bm25"])
    for given, told in (
        ({"passage": "nope"}, "have no passage 'nope'"),
        ({"route": "dense"}, "has no route 'dense'; it has: bm25"),
        ({"labels": "nope"}, "no label set 'nope'"),
    ):
        with pytest.raises(BadInput, match=re.escape(told)):
            why(found, **given)


def test_an_index_that_is_missing_is_built_or_told(tmp_path, monkeypatch):
    settings = Settings(home=tmp_path)
    monkeypatch.setattr(settings_module, "current", lambda: settings)
    monkeypatch.setattr(engine_module, "shared_engine", lambda: engine_module.Engine(settings))
    with pytest.raises(Unavailable, match="corpus support is not built: run python -m core index support"):
        compare("x", "support", ["bm25"], build=False)
    with pytest.raises(BadInput, match="unknown corpus"):
        compare("x", str(tmp_path), ["bm25"], build=False)
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "returns.md").write_text("# Returns\n\nAsk for a return within 30 days.\n")
    told = []
    found = compare("return", folder, ["bm25"], progress=lambda *one: told.append(one))
    assert [hit.passage.doc_id for hit in found.results[0].hits] == ["returns.md"]
    assert any(what.startswith("notes: ") for what, _, _ in told)


def test_ctrl_c_ends_the_run_and_goes_on(engine, monkeypatch):
    waiting = threading.Event()

    def endless(do, **_):
        waiting.set()
        while True:
            do.sparse(do.question, k=1 + time.monotonic_ns() % 50)  # each step looks whether it was stopped
            time.sleep(0.01)

    spoil(monkeypatch, "dense", endless)

    def interrupt(what, done, total):
        if waiting.is_set():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(QUESTION, "tiny", ["bm25", "dense"], progress=interrupt)
    engine.store.flush()
    (listed,) = engine.store.ids()
    stored = engine.store.load(listed)
    assert [one.status for one in stored.results] == ["ok", "cancelled"]


def test_an_evaluation_that_was_stopped_raises_and_goes_on(engine, tmp_path):
    def interrupt(what, done, total):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate("tiny", ["bm25"], keep="mine", progress=interrupt)
    assert len(evaluate("tiny", ["bm25"], keep="mine", progress=False).outcomes) == 3


def test_progress_in_a_log_is_a_line_now_and_then(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("core.domain.format.time.monotonic", lambda: now[0])
    with reporting(True) as report:
        for second in range(50):
            now[0] = float(second)
            report("questions", second, 1_000)
    assert (
        capsys.readouterr().err
        == "questions: 20 of 1,000 about 980 s left\nquestions: 40 of 1,000 about 960 s left\n"
    )
