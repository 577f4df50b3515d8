"""Routes that returned the same are one result: in figures, in the gate, in the report, in words."""

from dataclasses import replace

import pytest

from core.cli.figures import figures_text
from core.domain.errors import BadInput
from core.evaluation import comparison, leaderboard, statistics, text
from core.evaluation.comparison import differences
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import decide
from core.evaluation.release.measured import of_evaluation, of_figures
from core.evaluation.release.report import climb, report
from core.evaluation.release.snapshot import compare, read, snapshot
from core.evaluation.report import page
from tests.released import evaluation, failed, figures_of, outcome

OPEN = Criteria(max_failed=None, no_loss=False)
N = 40


def ranks(ms, *, steps=3, calls=0):
    return [replace(outcome(1 + n % 3, ms=ms, calls=calls), steps=steps) for n in range(N)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kept") / "twins"


@pytest.fixture(scope="module")
def twins(folder):
    """dense and mmr return the same, as do bm25 (the baseline) and parent; rerank is better than all."""
    second = [outcome(2 + n % 2) for n in range(N)]
    return evaluation(
        folder,
        {
            "bm25": [replace(one, ms=9.0, steps=2) for one in second],
            "mmr": ranks(20.0, steps=4),
            "dense": ranks(30.0),
            "parent": [replace(one, ms=5.0, steps=2) for one in second],
            "rerank": [outcome(1, ms=90.0) for _ in range(N)],
        },
        alike=True,
    )


def test_equal_routes_are_found_and_the_simplest_stands_for_them(twins):
    found = comparison.equal_routes(twins.outcomes, twins.routes)
    assert [(one.route, one.others, one.questions) for one in found] == [
        ("parent", ("bm25",), N),  # as many steps: the lower median time
        ("dense", ("mmr",), N),  # fewer steps, though slower
    ]
    assert found[0].depth == 11 or found[0].depth == 10
    assert comparison.standing_for(found, "bm25") == {"parent": "bm25", "mmr": "dense"}


def test_calls_go_before_steps_and_the_name_comes_last():
    outcomes = {
        f"q{n}": {
            "b": replace(outcome(1, calls=1), steps=1),
            "a": replace(outcome(1), steps=5),
            "c": replace(outcome(1), steps=5),
        }
        for n in range(3)
    }
    (found,) = comparison.equal_routes(outcomes, ["b", "c", "a"])
    assert found.routes == ("a", "c", "b")


@pytest.mark.parametrize(
    "bend",
    [
        lambda one: replace(one, hits=(one.hits[1], one.hits[0], *one.hits[2:])),
        lambda one: replace(one, hits=one.hits[:-1]),
        lambda one: replace(one, answer="another"),
        lambda one: replace(one, said={"sql": "SELECT 1"}),
        lambda one: failed(),
    ],
    ids=["order", "depth", "answer", "sql", "failed"],
)
def test_one_question_on_which_they_differ_is_enough(bend):
    outcomes = {f"q{n}": {"a": outcome(2), "b": outcome(2)} for n in range(5)}
    assert comparison.equal_routes(outcomes, ["a", "b"])
    outcomes["q3"]["b"] = bend(outcomes["q3"]["b"])
    assert comparison.equal_routes(outcomes, ["a", "b"]) == ()


def test_routes_that_found_nothing_are_not_called_equal():
    outcomes = {"q": {"a": replace(outcome(1), hits=()), "b": replace(outcome(1), hits=())}}
    assert comparison.equal_routes(outcomes, ["a", "b"]) == ()


def test_the_correction_counts_them_once(twins):
    """The distinct challengers alone are the family of each metric."""
    rows, values = twins.figures["routes"], twins.values
    for name in rows["dense"]["vs_baseline"]:
        alone = statistics.compare({r: differences(values, r, "bm25", name) for r in ("dense", "rerank")})
        for route, one in alone.items():
            assert rows[route]["vs_baseline"][name]["p_holm"] == one.p_holm
    assert rows["mmr"]["vs_baseline"] == rows["dense"]["vs_baseline"]
    assert (rows["mmr"]["same_as"], rows["parent"]["same_as"]) == ("dense", "bm25")
    assert rows["parent"]["vs_baseline"]["ndcg@10"]["delta"] == 0
    assert rows["parent"]["vs_baseline"]["ndcg@10"]["p_holm"] == 1
    assert {one["other"] for one in twins.figures["decision"]["pairs"]} == {"bm25", "dense"}


def test_they_are_one_row_and_one_sentence_in_figures_terminal_and_report(twins):
    assert leaderboard.distinct(twins.figures, "ndcg@10") == ["rerank", "dense", "bm25"]
    told = " ".join(text.found(twins.figures))
    assert "mmr returned the same rankings as dense on all 40 questions (compared to depth 10)" in told
    assert "no difference found for 1 route." not in told
    printed = figures_text(twins.figures, None).splitlines()
    # the sentence that names it, and its times and calls, which were measured
    assert sum(line.startswith("mmr ") for line in printed) == 2
    drawn = page(twins.figures)
    assert "returned the same rankings as dense" in drawn
    assert ">mmr<" not in drawn


def test_the_gate_ships_the_simpler_and_names_the_other(twins, folder):
    measured = of_evaluation(twins)
    decision = decide(measured, Criteria(max_p95_ms=60.0, max_failed=None, no_loss=True))
    assert [one.route for one in decision.candidates] == ["dense", "parent", "rerank"]
    assert decision.baseline == "parent"  # it stands for bm25
    assert {loss.route for loss in decision.losses} == {"dense", "rerank"}
    assert decision.nearest in ("dense", "parent")
    assert len(decision.verdict.pairs) <= 1
    assert decision.document()["equal"][1]["others"] == ("mmr",)
    assert "is the candidate, the simplest by fewer model calls" in " ".join(decision.sentences)
    assert "returned the same rankings" in report(measured, decision, kind="markdown")
    assert "mmr" not in [rung.route for rung in climb(measured, decision).rungs]
    open_ = decide(measured, OPEN)
    before = read(snapshot(measured, open_))
    assert set(before.routes) == {"dense", "parent", "rerank"}
    assert compare(before, measured, open_).then == open_.nearest
    alone = decide(of_figures(figures_of(folder), "bare"), OPEN)  # by its figures alone
    assert [one.route for one in alone.candidates] == ["dense", "parent", "rerank"]


def test_a_planned_comparison_is_with_the_baseline_alone(twins):
    measured = of_evaluation(twins).planned(["rerank"])
    decision = decide(measured, Criteria(max_failed=None))
    assert [one.route for one in decision.candidates] == ["bm25", "rerank"]
    assert decision.planned == ("rerank",)
    assert {loss.route for loss in decision.losses} == {"rerank"}
    assert "Planned comparison: Hybrid + rerank with BM25." in " ".join(decision.sentences)
    for wrong in ([], ["nobody"]):
        with pytest.raises(BadInput, match="was not measured; there are: bm25, mmr"):
            of_evaluation(twins).planned(wrong)
