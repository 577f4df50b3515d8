"""Harnesses by retrievers: the routes of the cells, and figures worked out by hand."""

import threading
from itertools import product

import pytest

from core.cli import BAD_INPUT, FAILED, main
from core.domain.errors import BadInput, Cancelled
from core.domain.needs import Need
from core.domain.types import Query
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.matrix import HARNESSES, ONE_SHOT, SEEN, cell, measure, measured, planned
from core.evaluation.outcome import Outcome
from core.routes.registry import routes
from tests.fakes import FakeEngine
from tests.parcels import QUESTIONS, TEXTS, labelled, people


def test_every_cell_is_a_route_with_allowed_parameters():
    for _, _, route, parameters in planned(None, HARNESSES, ONE_SHOT, scripted=True):
        settled = routes()[route].settle(parameters)
        assert not routes()[route].asks(settled), "a scripted cell asks no model"
        assert settled.get("keep", SEEN) == SEEN, "equal budgets"
    assert routes()["read_files"].asks(routes()["read_files"].settle(cell("agent", "grep", False)[1]))


@pytest.mark.parametrize(("harness", "retriever"), [("twice", "bm25"), ("agent", "google")])
def test_an_unknown_harness_or_retriever_is_refused(harness, retriever, capsys):
    with pytest.raises(BadInput):
        cell(harness, retriever, True)
    for wrong in (["--harness", harness, "--retrievers", retriever], ["--noise", "10,x"], ["--noise", "10"]):
        assert main(["matrix", "support", *wrong]) == BAD_INPUT
    assert capsys.readouterr().out == ""


def test_agents_without_a_model_are_refused_with_a_line_that_names_scripted(monkeypatch, capsys):
    monkeypatch.setattr("core.evaluation.matrix.missing", lambda engine: {Need.LLM: "no model is set"})
    assert main(["matrix", "support", "--harness", "agent", "--retrievers", "grep"]) == FAILED
    error = capsys.readouterr().err
    assert "--scripted" in error
    assert error.count("\n") == 1


def test_figures_are_those_worked_out_by_hand():
    three = LabelledSet(
        "set",
        tuple(Question(id, Query(id)) for id in ("one", "two", "none")),
        {"one": {"a:0-1": 1}, "two": {"a:0-1": 1, "b:0-1": 1, "c:0-1": 0}},
    )
    late = [(f"x{n}:0-1", 1.0) for n in range(SEEN - 1)]
    outcomes = {
        "one": {"r": Outcome("failed", 1000.0, error="no")},
        "two": {"r": Outcome("ok", 3000.0, (("b:0-1", 2.0), *late, ("a:0-1", 0.5)), 4, 30, 10, steps=6)},
    }
    row = measured(three, outcomes, "r")
    assert (row["n"], row["failed"]) == (2, 1)
    assert row["error"] == "no"
    assert row["recall"]["mean"] == 0.25, "0 for the failed, 1 of 2 for the other: rank 10 is not seen"
    assert row["recall"]["ci95"][0] <= 0.25 <= row["recall"]["ci95"][1]
    assert row["tokens"]["ci95"][1] > 40, "tokens are not shares: their interval has no bounds"
    assert [hop["mean"] for hop in row["per_hop"]] == [0.0, 1.0]
    means = [row[name]["mean"] for name in ("complete", "tokens", "calls", "steps", "seconds")]
    assert means == [0, 20, 2, 3, 2]


def test_a_measured_matrix_has_a_row_for_each_cell_and_can_be_stopped(tmp_path):
    engine = FakeEngine(tmp_path, texts=TEXTS)
    some = labelled(people(engine.corpus("tiny")), questions=QUESTIONS[:3])
    told = []
    cells = planned(engine, HARNESSES, ONE_SHOT, scripted=True)
    rows = measure(engine, some, "tiny", cells, progress=lambda *said: told.append(said))
    assert [(row["harness"], row["retriever"]) for row in rows] == list(product(HARNESSES, ONE_SHOT))
    assert {row["n"] for row in rows} == {3}
    assert all(row["failed"] == 0 and row["recall"]["mean"] > 0 for row in rows)
    assert ("agent with grep", 3, 3) in told
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(Cancelled):
        measure(engine, some, "tiny", cells, cancel=stopped)
