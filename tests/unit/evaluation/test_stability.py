"""How much figures vary between rounds, and what an evaluation says: by hand, and through summarise."""

import random
from dataclasses import replace
from statistics import fmean

import pytest

from core.analysis.metrics import COMPARED, UNJUDGED, by_question
from core.domain.format import number
from core.domain.types import Query
from core.evaluation import summary, verdict
from core.evaluation import text as sentences
from core.evaluation.comparison import against, differences
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.outcome import Outcome

M = "ndcg@10"


def table(**columns):
    return {
        route: {f"q{n}": {M: value} for n, value in enumerate(values) if value is not None}
        for route, values in columns.items()
    }


FIRST = table(base=[0.2, 0.2, 0.2, 0.2], asks=[0.4, 0.6, 0.4, None], once=[1.0, 1.0, 1.0, 1.0])
LATER = [table(asks=[0.4, 0.3, 0.5, 0.9]), table(asks=[0.4, 0.6, 0.6, 0.9])]


def stability(*rounds):
    return summary.stability(rounds, "base")["routes"]


def test_stability_by_hand():
    """Means over q0 to q2: 1.4/3, 1.2/3, 1.6/3; their sample deviation is .2/3. q1 and q2 changed."""
    found = stability(FIRST, *LATER)
    assert list(found) == ["asks"]
    assert list(found["asks"]) == [M]
    assert found["asks"][M] == {
        "n": 3,
        "means": pytest.approx([1.4 / 3, 1.2 / 3, 1.6 / 3]),
        "sd": pytest.approx(0.2 / 3),
        "changed": pytest.approx(2 / 3),
        "paired": 3,
        "deltas": pytest.approx([0.8 / 3, 0.6 / 3, 1 / 3]),
        "varies": pytest.approx(0.4 / 3),
        "larger": True,  # the least difference, .2, is more than .133
    }


def test_a_difference_that_rounds_could_make_is_no_larger():
    one = stability(table(base=[0.2, 0.2], asks=[0.3, 0.3]), table(asks=[0.1, 0.1]))["asks"][M]
    assert one["deltas"] == pytest.approx([0.1, -0.1])
    assert one["larger"] is False
    same = stability(FIRST, FIRST)
    assert set(same) == {"base", "asks", "once"}
    assert [same["base"][M][name] for name in ("deltas", "larger", "varies")] == [[], None, None]
    assert [same["once"][M][name] for name in ("sd", "changed", "larger")] == [0.0, 0.0, True]


def test_a_baseline_that_was_asked_again_counts_as_it_then_was():
    found = stability(table(base=[0.2], asks=[0.3]), table(base=[0.5], asks=[0.4]))
    assert found["asks"][M]["deltas"] == pytest.approx([0.1, -0.1])


def test_nothing_is_stable_without_a_question_scored_in_every_round():
    assert stability(FIRST, table(asks=[None, None, None, 0.5])) == {}
    assert sentences.rounds({}) == []
    (said,) = sentences.rounds({"stability": {"rounds": 2, "routes": {}}})
    assert said.startswith("No question was scored in every one of")


def test_stability_in_words():
    block = summary.stability([FIRST, *LATER], "base")
    (said,) = sentences.rounds({"stability": block, "baseline": "base"}, str.title)
    assert said == (
        "Asks over 3 rounds: mean nDCG@10 0.400 to 0.533 (standard deviation 0.067); the value changed on "
        "67% of 3 questions. Its difference from Base was +0.200 to +0.333, larger than its variation."
    )
    assert sentences.rounds({"stability": block, "baseline": "base"}, metric="map") == []


def asked(count=30, seed=3):
    """A set of which every fifth question has no label, and what three routes found; one failed twice."""
    rng = random.Random(seed)
    ids = [f"q{n}" for n in range(count)]
    questions = tuple(Question(id, Query("x"), f"m{n % 2}") for n, id in enumerate(ids))
    labelled = LabelledSet("s", questions, {id: {"d": 2, "e": 1} for n, id in enumerate(ids) if n % 5})

    def ranking(route):
        found = rng.sample("abcdefghijkl", 12)
        found = ["d", *(one for one in found if one != "d")] if route == "good" else found
        return Outcome("ok", 5.0, tuple((one, 1.0 - n / 20) for n, one in enumerate(found)))

    outcomes = {id: {route: ranking(route) for route in ("base", "good", "asks")} for id in ids}
    for id in ("q1", "q5"):
        outcomes[id]["asks"] = Outcome("failed", 9.0, error="gone")
    return labelled, outcomes


def test_an_evaluation_tells_all_of_it():
    labelled, outcomes = asked()
    again = {q: {"asks": by["asks"]} for q, by in asked(seed=4)[1].items()}
    again["q2"]["asks"] = Outcome("timeout", 9.0)
    figures = summary.summarise(labelled, outcomes, ["base", "good", "asks"], again=[again])
    rows = figures["routes"]
    counts = [(row["scored"], row["not_scored"], row["failed"]) for row in rows.values()]
    assert counts == [(24, 6, 0), (24, 6, 0), (23, 5, 2)]
    values = {}
    for route in rows:
        ended = {q: by[route].hits for q, by in outcomes.items() if by[route].status == "ok"}
        values[route] = by_question(labelled.qrels, {q: ended[q] for q in labelled.qrels if q in ended})
    assert {r: row["vs_baseline"] for r, row in rows.items() if r != "base"} == against(
        values, "base", COMPARED
    )
    assert figures["unjudged"] == UNJUDGED
    assert rows["good"]["unjudged@5"] == pytest.approx(
        fmean(by["unjudged@5"] for by in values["good"].values())
    )
    assert figures["decision"]["best_so_far"]["route"] == "good"
    assert set(figures["decision"]["behind"]) == {"base", "asks"}
    assert rows["good"]["vs_baseline"][M]["delta"] == pytest.approx(
        fmean(differences(values, "good", "base", M))
    )
    assert figures["detectable"][M]["comparisons"] == 2
    assert figures["oracle"]["regret"]["good"]["mean"] < figures["oracle"]["regret"]["base"]["mean"]
    stable = figures["stability"]
    assert (stable["rounds"], stable["baseline"], list(stable["routes"])) == (2, "base", ["asks"])
    assert stable["routes"]["asks"][M]["n"] == 22  # q1 failed in one round and q2 in the other
    assert len(set(stable["routes"]["asks"][M]["means"])) == 2
    assert "stability" not in summary.summarise(labelled, outcomes, ["base", "good"])


def test_what_is_said_of_an_evaluation():
    labelled, outcomes = asked()
    figures = summary.summarise(labelled, outcomes, ["base", "good", "asks"])
    said = sentences.found(figures, lambda route: f"<{route}>")
    found = figures["decision"]
    headline = verdict.headline(found, lambda route: f"<{route}>", "nDCG@10", figures["dataset"])
    details = verdict.details(found, lambda route: f"<{route}>")
    assert said[0].startswith(headline), "followed by the routes that failed"
    assert said[1 : len(details) + 1] == details
    *against_base, detectable = said[len(details) + 1 :]
    better = "is better for <good>; no difference found for 1 route."
    assert against_base == [
        "<asks> failed on 2 questions, such as: gone.",
        *(f"Compared with <base>, {name} {better}" for name in ("nDCG@10", "MRR@10", "MAP")),
        "No difference from <base> found in recall@10 and recall@100.",
    ]
    smallest = figures["detectable"][M]
    assert f"below {number(smallest['median_holm'])} could not have been detected" in detectable
    assert f"{number(smallest['median'])} for a single comparison, power 80%" in detectable
    counts = sentences.counted(figures, lambda route: f"<{route}>")
    assert len(sentences.counted(figures, asked=31)) == len(counts) + 1
    assert counts[:2] == [
        "30 questions asked, 24 with a relevant passage; the other 6 count only towards time and answers.",
        "Failed and excluded from all means: <asks> 2.",
    ]
    assert "means cover different questions" in counts[2]
    shares = sorted(row["unjudged@10"] for row in figures["routes"].values())
    assert f"{shares[0]:.0%} to {shares[-1]:.0%}, by route, are unjudged" in counts[3]
    rows = figures["routes"]
    worse = {r: {**row, "vs_baseline": {M: {"verdict": "worse"}}} for r, row in rows.items() if r != "base"}
    every = {**figures, "routes": {**rows, **worse}}
    assert "Compared with base, nDCG@10 is worse for good and asks." in sentences.found(every)
    alone = summary.summarise(labelled, outcomes, ["base"])
    assert sentences.found(alone)[0].startswith("Not enough evidence")
    assert sentences.counted(alone)[1] == "No route failed on any question."
    grades = {q: {**dict.fromkeys("abcdefghijkl", 0), **by} for q, by in labelled.qrels.items()}
    judged = summary.summarise(replace(labelled, qrels=grades), outcomes, ["base"])
    assert not any("unjudged" in one for one in sentences.counted(judged)), "where all is judged"


def test_answers_of_further_rounds_are_compared_too():
    """Without labels there are answers alone, and they are what is stable or not."""
    questions = tuple(Question(f"q{n}", Query("x"), answers=("Paris",), answerable=True) for n in range(4))
    labelled = LabelledSet("s", questions, {})
    base = Outcome("ok", 5.0, answer="Rome")
    first, later = (
        {f"q{n}": {"asks": replace(base, answer=text), "base": base} for n, text in enumerate(texts)}
        for texts in (("Paris", "Rome", "Paris", "Paris"), ("Paris", "Paris", "Paris", "Rome"))
    )
    again = {q: {"asks": by["asks"]} for q, by in later.items()}
    figures = summary.summarise(labelled, first, ["base", "asks"], again=[again])
    one = figures["stability"]["routes"]["asks"]["correct"]
    assert (one["means"], one["sd"], one["changed"], one["deltas"]) == ([0.75, 0.75], 0.0, 0.5, [0.75, 0.75])
    assert M not in figures["stability"]["routes"]["asks"]
    assert figures["decision"]["best_so_far"] is None
    assert sentences.rounds(figures)[0].startswith("asks over 2 rounds: mean")
