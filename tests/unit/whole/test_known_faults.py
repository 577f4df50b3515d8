"""Faults seen in other tools of this kind: none of them may come in here."""

import itertools
import math
from functools import partial

import pytest

from core.domain.fusion import linear, rrf
from core.domain.types import Hit, Passage, Query
from core.engine.request import Request
from core.evaluation import outcome, runner, summary
from core.evaluation.dataset import LabelledSet, Question
from core.routes.registry import routes
from core.steps.fuse import union
from tests.fakes import TEXTS, FakeEngine

NORMS = ("z", "min_max", "dbsf")


def ranking(*entries):
    return tuple(Hit(Passage(id, id, id, f"text of {id}"), float(score)) for id, score in entries)


A, B = ranking(("x", 9), ("y", 5)), ranking(("y", 0.9), ("z", 0.2))


def scores(hits):
    return {hit.passage.id: hit.score for hit in hits}


@pytest.mark.parametrize(
    "fuse",
    [rrf, *(partial(linear, norm=norm) for norm in NORMS), union],
    ids=("rrf", *NORMS, "union"),
)
def test_a_repeat_inside_one_list_counts_once(fuse):
    twice = ranking(("x", 9), ("y", 8), ("y", 7), ("y", 6), ("z", 1))
    once = ranking(("x", 9), ("y", 8), ("z", 1))
    other = ranking(("z", 3), ("x", 2))
    assert scores(fuse([twice, other])) == scores(fuse([once, other]))


@pytest.mark.parametrize("fuse", [rrf, linear, union])
def test_a_merged_passage_is_one_object_whatever_the_order_of_lists(fuse):
    for lists in itertools.permutations([A, B, ranking(("z", 1))]):
        assert {hit.passage.id: hit.passage.text for hit in fuse(list(lists))} == {
            id: f"text of {id}" for id in "xyz"
        }


def test_failed_questions_are_left_out_of_the_mean_and_counted(tmp_path):
    questions = (Question("1", Query("a")), Question("2", Query("b")))
    labelled = LabelledSet("two", questions, {"1": {"p": 1}, "2": {"p": 1}})
    outcomes = {
        "1": {"r": outcome.Outcome("ok", 1.0, (("p", 1.0),))},
        "2": {"r": outcome.Outcome("failed", 1.0, error="broken")},
    }
    row = summary.summarise(labelled, outcomes, ["r"])["routes"]["r"]
    assert (row["ndcg@10"], row["failed"], row["n"]) == (1.0, 1, 1)
    assert not any(isinstance(value, float) and math.isnan(value) for value in row.values())


def test_page_command_line_evaluation_and_import_run_one_function(tmp_path):
    """The engine's run, an evaluation's, and a direct call of the route agree hit by hit."""

    engine = FakeEngine(tmp_path, web={"page:0-9": "web"})
    query = Query("How long is the refund?")
    labelled = LabelledSet("one", (Question("1", query),), {"1": {"returns:90-180": 1}})
    for name in ("bm25", "hybrid_rrf", "hybrid_linear", "rerank", "mmr", "parent"):
        asked = engine.ask(Request(query, "tiny", (name,))).results[0].hits
        outcomes, _ = runner.run(engine, labelled, runner.Plan("tiny", (name,)))
        direct = (
            routes()[name].run(query, engine.steps(engine.corpus("tiny")), routes()[name].settle({})).hits
        )
        assert asked == direct
        assert outcomes["1"][name].hits == tuple((hit.passage.id, hit.score) for hit in direct)


def test_labels_hang_on_passages_that_keep_their_ids(tmp_path):
    first, second = (FakeEngine(tmp_path / str(n)) for n in range(2))
    ids = [
        {h.passage.id for h in e.ask(Request(Query("box"), "tiny", ("dense",))).results[0].hits}
        for e in (first, second)
    ]
    assert ids[0] == ids[1] == set(TEXTS)
