"""The ladder: which rungs are taken, skipped, reached and not needed, by hand and as a property."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.domain.types import Query
from core.evaluation import summary
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.experiment_store import Evaluation
from core.evaluation.outcome import Outcome
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import decide
from core.evaluation.release.measured import of_evaluation
from core.evaluation.release.report import OWN, RUNGS, climb
from core.evaluation.templating import sentences
from core.routes.registry import routes

pytestmark = pytest.mark.slow

COST = {"bm25": 1, "dense": 5, "hybrid_rrf": 10, "rewrite": 100, "crag": 200, "iterative": 400}


def measured(ranks, alike=False):
    """An evaluation in which each route finds the one relevant passage of question n at ranks[route][n], 0:
    not at all.
    """
    ids = [f"q{n}" for n in range(len(next(iter(ranks.values()))))]
    questions = tuple(Question(id, Query(f"question {id}")) for id in ids)
    labelled = LabelledSet("made", questions, {id: {"gold": 1} for id in ids})

    def outcome(route, rank):
        cost, hits = COST[route], _hits(rank, "" if alike else route)
        asks = cost >= 100
        return Outcome("ok", float(cost), hits, calls=int(asks), prompt_tokens=cost if asks else 0)

    outcomes = {id: {route: outcome(route, at[n]) for route, at in ranks.items()} for n, id in enumerate(ids)}
    figures = summary.summarise(labelled, outcomes, list(ranks))
    return of_evaluation(Evaluation("made", Path("made"), {}, labelled, outcomes, figures))


def _hits(rank, route):
    ids = [f"{route} other{n}" for n in range(1, 12)]
    if rank:
        ids.insert(rank - 1, "gold")
    return tuple((id, 1 / at) for at, id in enumerate(ids, 1))


LOOSE = {"margin": 0.9, "min_questions": 1}  # so that 8 questions ship a route


def ladder(ranks, minimum, metric="mrr@10", **sure):
    found = measured(ranks)
    return climb(found, decide(found, Criteria(metric, minimum=minimum, **sure))), found


def states(found):
    return [rung.state for rung in found.rungs]


HALF = [1, 0] * 40  # half of the questions answered
MORE = [1, 1, 1, 0] * 20
ALL = [1] * 80


@pytest.mark.slow
def test_the_ladder_by_hand():
    found, said = ladder({"bm25": HALF, "hybrid_rrf": MORE, "rewrite": ALL, "crag": ALL}, 0.9)
    assert states(found) == ["taken", "taken", "reached", "not needed", "not measured"]
    assert found.reached == "rewrite"
    assert [rung.route for rung in found.taken] == ["bm25", "hybrid_rrf", "rewrite"]
    assert found.rungs[1].gain.delta == pytest.approx(0.25)
    assert (found.rungs[1].below, found.rungs[2].below) == ("bm25", "hybrid_rrf")
    assert [rung.answered for rung in found.rungs] == [0.5, 0.75, 1.0, 1.0, None]
    words = sentences("ladder.rungs", found, said)
    assert (
        words[-1] == "The ladder to the route that ships is BM25, then Hybrid (RRF), then Rewrite + hybrid."
    )
    found, _ = ladder({"bm25": HALF, "hybrid_rrf": HALF, "rewrite": ALL}, 0.9)
    assert states(found) == ["taken", "skipped", "reached", "not measured", "not measured"]
    assert found.rungs[2].below == "bm25"
    assert found.rungs[2].gain.delta == pytest.approx(0.5)
    found, _ = ladder({"bm25": ALL, "hybrid_rrf": ALL}, 0.5)
    assert states(found)[:2] == ["reached", "not needed"]
    found, _ = ladder({"bm25": HALF, "iterative": MORE}, 0.99)
    assert found.reached is None
    assert states(found) == ["taken", "not measured", "not measured", "not measured", "taken"]
    found, _ = ladder({"bm25": MORE, "dense": ALL}, 0.7)
    assert (found.rungs[0].route, found.rungs[0].others) == ("dense", ("bm25",)), "it ships"
    found, _ = ladder({"bm25": HALF, "dense": MORE}, 0.9)
    assert (found.rungs[0].route, found.rungs[0].others) == ("dense", ("bm25",))
    found = measured({"bm25": ALL, "hybrid_rrf": ALL}, alike=True)
    decision = decide(found, Criteria("mrr@10", minimum=0.5))
    rungs = climb(found, decision)
    assert states(rungs)[:2] == ["reached", "equal"]
    assert (
        "Hybrid (RRF) returned the same rankings as a route on another rung"
        in sentences("ladder.rungs", rungs, found)[1]
    )


def test_every_family_stands_on_one_rung():
    families = [family for _, those in (*RUNGS, OWN) for family in those]
    assert len(families) == len(set(families))
    assert {route.family for route in routes().values()} <= set(families)


@pytest.mark.slow
@given(
    st.dictionaries(
        st.sampled_from(sorted(COST)), st.lists(st.integers(0, 3), min_size=8, max_size=8), min_size=1
    ),
    st.sampled_from([0.1, 0.4, 0.7, 1.0]),
)
@settings(max_examples=max(10, settings().max_examples // 2))
def test_the_ladder_ends_at_the_route_that_ships(ranks, minimum):
    found, said = ladder(ranks, minimum, **LOOSE)
    assert found.reached == decide(said, Criteria("mrr@10", minimum=minimum, **LOOSE)).chosen
    assert states(found).count("reached") == (found.reached is not None)
    taken = [rung.answered for rung in found.taken]
    assert taken == sorted(taken)
    for rung in found.rungs:
        if rung.state == "taken" and rung.below is not None:
            assert rung.gain.low > 0
    assert len(sentences("ladder.rungs", found, said)) == len(RUNGS) + 1
