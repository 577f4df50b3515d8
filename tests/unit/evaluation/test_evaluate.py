"""Figures of an evaluation, the files it writes for other tools, and runs that stop and go on."""

import json
import random
import re
from dataclasses import replace
from statistics import fmean

import ir_measures
import numpy as np
import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.metrics import COMPARED, METRICS, UNJUDGED, by_question, measures
from core.domain import ranked
from core.domain.errors import BadInput
from core.domain.format import number
from core.domain.types import Query
from core.evaluation import report, statistics, summary, verdict
from core.evaluation import text as sentences
from core.evaluation.comparison import against, differences
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.outcome import JOURNAL, Journal, Outcome
from core.evaluation.runner import Plan, run
from tests.fakes import FakeEngine, ScriptedLLM


def random_task(seed, questions):
    rng = random.Random(seed)
    qrels = {
        f"q{n}": {f"d{d}": rng.randrange(4) for d in rng.sample(range(300), 12)} | {"d300": 3}
        for n in range(questions)
    }
    drawn = {q: rng.sample(range(301), 150) for q in qrels}
    return qrels, {q: tuple((f"d{d}", 200.0 - n) for n, d in enumerate(own)) for q, own in drawn.items()}


def test_an_empty_ranking_found_nothing_and_an_unjudged_question_counts_not():
    nothing = {name: 1.0 if name.startswith("unjudged") else 0.0 for name in METRICS}
    assert by_question({"q": {"a": 1}}, {"q": (), "r": (("a", 1.0),)}) == {"q": nothing}


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=40))
def test_scores_of_a_run_file_fall_strictly(scores):
    moved = np.float32(ranked.strict(sorted(scores, key=lambda s: -s if s == s else 0)))
    assert (np.diff(moved) < 0).all()


def test_scores_that_fall_already_stay():
    assert ranked.strict([3.0, 2.5, 0.25]) == [3.0, 2.5, 0.25]


def small_set():
    """Three answered questions, one without a relevant passage."""
    asked = {
        "q1": ("How do I send something back for a refund?", "returns:0-90", "plain"),
        "q2": ("Is a fragile vase shipped double boxed?", "fragile:0-80", "plain"),
        "q3": ("How long are keys stored?", "keys:0-80", "abstract"),
        "q4": ("What is the meaning of life?", None, "no_answer"),
    }
    questions = tuple(Question(id, Query(text), mode) for id, (text, _, mode) in asked.items())
    return LabelledSet("small", questions, {id: {hit: 1} for id, (_, hit, _) in asked.items() if hit})


PLAN = Plan("tiny", ("bm25", "dense", "hyde"))


def outcomes_of(scores):
    """Outcomes by {question: {route: hit ids, or None for a failure}}."""
    return {
        question: {
            route: Outcome("failed", 9e9, error="broken <b>")
            if ids is None
            else Outcome("ok", 10.0, tuple((id, 1.0 - n / 10) for n, id in enumerate(ids)), calls=2)
            for route, ids in routes.items()
        }
        for question, routes in scores.items()
    }


def test_failed_questions_are_counted_beside_the_mean_and_never_as_zero():
    labelled = LabelledSet("s", tuple(Question(q, Query("x")) for q in "abc"), {q: {"d": 1} for q in "ab"})
    found = {"a": {"one": ["d"], "two": ["d"]}, "b": {"one": ["x", "d"], "two": None}}
    outcomes = outcomes_of(found | {"c": {"one": ["x"], "two": ["x"]}})
    figures = summary.summarise(labelled, outcomes, ["one", "two"])
    one, two = figures["routes"]["one"], figures["routes"]["two"]
    assert (one["mrr@10"], one["n"], one["failed"]) == (0.75, 2, 0)
    assert (two["mrr@10"], two["n"], two["failed"]) == (1.0, 1, 1)
    assert (figures["queries"], figures["labelled"], figures["unlabelled"]) == (3, 2, 1)
    assert two["p95_ms"] == 10.0  # a failure's time is no latency
    assert (two["errors"], two["llm_calls"]) == (["broken <b>"], 4)
    apart = two["vs_baseline"]["mrr@10"]  # over question a alone, where both ended well
    assert (apart["delta"], apart["n"], apart["verdict"]) == (0.0, 1, "no difference shown")
    assert "vs_baseline" not in one


def test_a_route_that_never_ended_well_has_no_figures():
    labelled = LabelledSet("s", (Question("a", Query("x")),), {"a": {"d": 1}})
    row = summary.summarise(labelled, outcomes_of({"a": {"one": None}}), ["one"])["routes"]["one"]
    assert [row[name] for name in METRICS] == [None] * len(METRICS)
    assert (row["p50_ms"], row["ci95"]["ndcg@10"], row["failed"]) == (None, None, 1)


def test_p_values_are_adjusted_over_all_comparisons():
    labelled, outcomes = asked()
    names = ["base", "good", "asks"]
    figures = summary.summarise(labelled, outcomes, names, baseline="good")
    found = {route: figures["routes"][route]["vs_baseline"] for route in ("base", "asks")}
    assert set(found["base"]) == set(found["asks"]) == set(COMPARED)
    for metric in COMPARED:
        adjusted = statistics.holm({route: by[metric]["p"] for route, by in found.items()})
        assert {route: by[metric]["p_holm"] for route, by in found.items()} == adjusted
    assert set(figures["by_mode"]) == {"m0", "m1"}
    mine = figures["by_mode"]["m0"]["base"]
    assert (mine["n"], set(mine["vs_baseline"])) == (12, {"ndcg@10", "recall@10"})
    with pytest.raises(BadInput, match="baseline 'x' is not among the routes: base, good, asks"):
        summary.summarise(labelled, outcomes, names, baseline="x")


def test_what_a_run_finds_is_what_asking_finds(tmp_path):
    engine = FakeEngine(tmp_path, llm=ScriptedLLM({"hyde": "keys are stored for 24 hours"}))
    labelled = small_set()
    outcomes, whole = run(engine, labelled, PLAN)
    assert whole
    assert list(outcomes) == ["q1", "q2", "q3", "q4"]
    from core.engine.request import Request

    asked = engine.ask(Request(labelled.questions[0].query, "tiny", PLAN.routes))
    for result in asked.results:
        assert outcomes["q1"][result.route].hits == tuple((h.passage.id, h.score) for h in result.hits)
    assert outcomes["q3"]["hyde"].calls == 1
    assert outcomes["q3"]["hyde"].prompt_tokens == 10
    assert outcomes["q3"]["bm25"].calls == 0


def test_the_questions_own_passage_is_no_result(tmp_path):
    """BEIR's rule, needed for ArguAna; a judged passage stays whatever its name."""
    engine = FakeEngine(tmp_path, texts={"q1": "send it back", "r": "send it", "q2": "send"})
    questions = (Question("q1", Query("send it")), Question("q2", Query("send")))
    labelled = LabelledSet("s", questions, {"q1": {"r": 1}, "q2": {"q2": 1}}, drop_self=True)
    outcomes, _ = run(engine, labelled, Plan("tiny", ("bm25",)))
    assert [id for id, _ in outcomes["q1"]["bm25"].hits] == ["r", "q2"]
    assert "q2" in dict(outcomes["q2"]["bm25"].hits)


class Interrupting(FakeEngine):
    """Ctrl-C while the nth question is under way."""

    left = 2

    def start(self, request):
        job = super().start(request)
        self.left -= 1
        if self.left < 0:

            def stop(timeout=None):
                raise KeyboardInterrupt

            job.wait, self.stopped = stop, job
        return job


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    labelled, conditions = small_set(), {"routes": list(PLAN.routes)}
    engine = Interrupting(tmp_path)
    with Journal.open(tmp_path / "out", conditions) as journal:
        outcomes, whole = run(engine, labelled, PLAN, journal=journal)
    assert (list(outcomes), whole) == (["q1", "q2"], False)
    assert engine.stopped._cancel.is_set()
    with (tmp_path / "out" / JOURNAL).open("a") as file:
        file.write('{"question": "q3", "rou')  # what a killed process leaves
    engine.left, said = 99, []
    with Journal.open(tmp_path / "out", conditions) as journal:
        resumed, whole = run(engine, labelled, PLAN, journal=journal, progress=lambda *at: said.append(at))
    assert whole
    assert engine.left == 97  # two questions were asked, not four
    assert said == [(2, 4), (3, 4), (4, 4)]
    assert {q: resumed[q] for q in outcomes} == outcomes
    with Journal.open(tmp_path / "out", conditions) as journal:
        assert run(engine, labelled, PLAN, journal=journal)[0] == resumed
    assert engine.left == 97


def test_what_is_written_is_read_by_other_tools_to_the_same_figures(tmp_path):
    qrels, rankings = random_task(7, questions=8)
    evil = '<img src="http://evil.example/x.png">'
    labelled = LabelledSet(evil, tuple(Question(q, Query("x"), evil) for q in qrels), qrels, relevant_from=2)
    outcomes = {
        q: {
            "one": Outcome("ok", 5.0, tuple((f"{id} %", score // 7) for id, score in hits)),
            "two": Outcome("failed", 1.0, error=evil) if q == "q0" else Outcome("ok", 5.0, hits),
        }
        for q, hits in rankings.items()
    }
    labelled.qrels.update({q: {f"{id} %": grade for id, grade in by.items()} for q, by in qrels.items()})
    figures = summary.summarise(labelled, outcomes, ["one", "two"])
    report.write(tmp_path, figures, labelled, outcomes)
    assert json.loads((tmp_path / "metrics.json").read_text()) == figures
    used = {name: ir_measures.parse_measure(figures["measures"][name]) for name in COMPARED}
    assert used == {name: measures(2)[name] for name in COMPARED}
    assert figures["measures"]["unjudged@10"] == "1 - Judged@10"
    theirs = ir_measures.calc_aggregate(
        list(used.values()),
        list(ir_measures.read_trec_qrels(str(tmp_path / "qrels.txt"))),
        list(ir_measures.read_trec_run(str(tmp_path / "one.run"))),
    )
    for name in COMPARED:
        assert theirs[used[name]] == pytest.approx(figures["routes"]["one"][name], abs=1e-9), name
    ranks = [line.split() for line in (tmp_path / "one.run").read_text().splitlines()]
    assert all(len(row) == 6 for row in ranks)
    assert [row[3] for row in ranks[:3]] == ["1", "2", "3"]
    times = json.loads((tmp_path / "latency.json").read_text())["routes"]
    assert times["two"].keys() == qrels.keys() - {"q0"}
    html = (tmp_path / "report.html").read_text()
    elements = BeautifulSoup(html, "html.parser").find_all()
    drawn = "html meta title style body h1 h2 p b div table thead tbody tr th td small span ul li"
    assert {one.name for one in elements} <= set(drawn.split())
    assert not any({"src", "href", "style", "onclick"} & one.attrs.keys() for one in elements)
    assert "no difference shown" in html
    assert not re.search(r"url\(|@import", html)


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
