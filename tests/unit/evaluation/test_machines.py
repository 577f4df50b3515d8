"""On which machines times were measured: written down with each, told in reports, and minded by a release."""

import json
from dataclasses import replace

import pytest

from core.cli import main
from core.domain.errors import BadInput
from core.domain.machine import here
from core.domain.settings import load
from core.evaluation import costs, experiment_store, report
from core.evaluation.costs import MachineKind
from core.evaluation.experiment import Prepared, perform
from core.evaluation.outcome import JOURNAL
from core.evaluation.release.criteria import Criteria, command
from core.evaluation.release.gate import decide
from core.evaluation.release.measured import find, of_evaluation
from core.evaluation.release.report import limits
from core.evaluation.release.report import report as release_report
from core.evaluation.runner import Plan
from core.evaluation.spec import Spec
from tests.fakes import FakeEngine
from tests.released import evaluation, labelled, outcome

FAST, SLOW = "Fast CPU, 64 cores, 256 GiB, Linux x86_64, Python 3.11.7", "Slow CPU, 2 cores, 8 GiB, Linux"


def on(kind, host="a", **given):
    return replace(outcome(1, **given), machine=kind, host=host)


def mixed(folder):
    """30 questions on fast machines, 10 on a slow one."""
    many = [on(FAST, f"f{n % 2}") for n in range(30)] + [on(SLOW, "s", ms=90.0) for _ in range(10)]
    found = evaluation(folder, {"one": many, "two": many})
    return evaluation(folder, {"one": many, "two": many}, more=costs.machine_figures(found.outcomes.values()))


def test_the_kinds_of_machine_are_counted(tmp_path):
    outcomes = mixed(tmp_path).outcomes.values()
    assert costs.machine_kinds(outcomes) == (MachineKind(FAST, 2, 30), MachineKind(SLOW, 1, 10))
    stored = costs.machine_figures(outcomes)["machines"]
    assert tuple(MachineKind(**one) for one in stored) == costs.machine_kinds(outcomes)
    alike = [{"one": on(FAST, f"f{n % 3}")} for n in range(6)]
    said = costs.machine_sentences(costs.machine_figures(alike))
    assert said == [f"Times were measured on 3 machines of one kind: {FAST}."]
    assert costs.machine_sentences(costs.machine_figures(alike[:1])) == []
    assert costs.machine_kinds([{"one": outcome(1)}]) == (MachineKind(costs.UNKNOWN, 1, 1),), "not recorded"


def test_every_outcome_says_where_its_time_was_measured(tmp_path):
    ready = Prepared(Spec("tiny", ("bm25",)), labelled(2), Plan("tiny", ("bm25",)), "bm25", (), None)
    figures, _, outcomes = perform(FakeEngine(tmp_path / "home"), ready, out=tmp_path)
    assert {(one.machine, one.host) for by in outcomes.values() for one in by.values()} == {
        (here().kind, here().host)
    }
    line = json.loads((tmp_path / JOURNAL).read_text().splitlines()[1])
    assert line["routes"]["bm25"]["machine"] == here().kind
    assert experiment_store.opened(tmp_path).outcomes == outcomes
    assert figures["machines"] == [{"kind": here().kind, "machines": 1, "questions": 2}]
    assert figures["machine"] == here().kind


def test_a_report_says_on_how_many_machines_of_what_kind(tmp_path):
    page = report.page(mixed(tmp_path).figures)
    assert "Times were measured on unlike machines and do not compare" in page
    assert f"30 questions on 2 machines ({FAST})" in page


def test_a_release_decision_refuses_times_of_unlike_machines_and_says_why(tmp_path):
    measured = of_evaluation(mixed(tmp_path / "whole"))
    strict = Criteria(max_p95_ms=1000.0, margin=0.1)
    decision = decide(measured, strict)
    assert decision.verdict.decision == "undecided"
    (check,) = [one for one in decision.candidates[0].checks if one.name == "p95"]
    assert check.state == "cannot be told"
    assert "its times are of unlike machines: 30 questions on 2 machines (Fast CPU" in check.told
    assert "--allow-unlike-machines" in check.told
    assert decision.candidates[0].p50_ms is None
    assert any("No time counts" in one for one in limits(measured, decision))
    assert "unlike machines" in release_report(measured, decision, None, kind="markdown")
    allowed = replace(strict, unlike_machines=True)
    assert decide(measured, allowed).chosen is not None
    assert any("count all the same" in one for one in limits(measured, decide(measured, allowed)))
    assert decide(measured, Criteria(margin=0.1)).chosen is not None, "it asks for no time"
    (tmp_path / "metrics.json").write_bytes((tmp_path / "whole" / "metrics.json").read_bytes())
    alone = find(load(home=tmp_path), str(tmp_path / "metrics.json"))
    assert alone.evaluation is None
    assert decide(alone, strict).verdict.decision == "undecided"
    many = [on(FAST, f"f{n % 2}") for n in range(40)]
    alike = of_evaluation(evaluation(tmp_path / "alike", {"one": many, "two": many}))
    assert (alike.unlike, decide(alike, strict).chosen is not None) == ("", True)


def test_the_gate_from_the_command_line(tmp_path, capsys):
    mixed(tmp_path)
    args = ["gate", str(tmp_path), "--max-p95-ms", "1000", "--margin", "0.1"]
    assert main(args) == 1
    assert "unlike machines" in " ".join(capsys.readouterr().out.split())
    assert main([*args, "--allow-unlike-machines"]) == 0
    for unlike in (True, False):
        assert ("--allow-unlike-machines" in command("x", Criteria(unlike_machines=unlike))) is unlike
    with pytest.raises(BadInput, match="unlike_machines='yes'"):
        Criteria(unlike_machines="yes")
