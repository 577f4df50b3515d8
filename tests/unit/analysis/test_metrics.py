"""Metrics against ir_measures called directly, ranx, and formulas written out."""

import json
import math
import os
import random
import subprocess
import sys

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.metrics import COMPARED, METRICS, QUALITY, UNJUDGED, by_question, titled

SAME = ("ndcg@10", "recall@10", "recall@100", "mrr@10", "map", "precision@5", "precision@10")
RANX = {**{name: name for name in SAME}, "hit@10": "hit_rate@10"}
IDS = [f"d{n}" for n in range(16)]
GRADES = st.dictionaries(st.sampled_from(IDS), st.integers(0, 3), min_size=1)
TIED = st.permutations(IDS).flatmap(  # rankings with few distinct scores, so that most are shared
    lambda ids: st.lists(st.integers(0, 3), max_size=len(ids)).map(
        lambda scores: tuple(zip(ids, map(float, sorted(scores, reverse=True)), strict=False))
    )
)


def ranx(tasks):
    """Relevant from -> metric -> question -> value, of tasks of labels and rankings by relevant from; in a
    process of its own and uncompiled: compiling takes minutes.
    """
    asked, names = [], {}
    for relevant_from, (qrels, rankings) in tasks.items():
        level = "" if relevant_from == 1 else f"-l{relevant_from}"
        names[relevant_from] = {
            ours: theirs if ours == "ndcg@10" else theirs + level for ours, theirs in RANX.items()
        }
        falling = {
            q: {id: float(len(hits) - n) for n, (id, _) in enumerate(hits)} for q, hits in rankings.items()
        }
        asked.append([qrels, falling, list(names[relevant_from].values())])
    code = (
        "import json, sys; from ranx import Qrels, Run, evaluate\n"
        "for qrels, run, names in json.load(sys.stdin):\n"
        "    run = Run(run, name='r')\n"
        "    evaluate(Qrels(qrels), run, names)\n"
        "    print(json.dumps({n: {q: float(v) for q, v in run.scores[n].items()} for n in names}))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(asked),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return {
        relevant_from: {ours: found[theirs] for ours, theirs in by.items()}
        for (relevant_from, by), found in zip(names.items(), map(json.loads, said.splitlines()), strict=True)
    }


def directly(qrels, rankings, relevant_from):
    """Metric -> question -> value by ir_measures, from rankings whose scores are their ranks."""
    rel = relevant_from
    used = {
        "ndcg@10": ir_measures.nDCG @ 10,
        "mrr@10": ir_measures.RR(rel=rel) @ 10,
        "map": ir_measures.AP(rel=rel),
        "hit@10": ir_measures.Success(rel=rel) @ 10,
        **{f"recall@{k}": ir_measures.R(rel=rel) @ k for k in (10, 100)},
        **{f"precision@{k}": ir_measures.P(rel=rel) @ k for k in (5, 10)},
        **{f"unjudged@{k}": ir_measures.Judged @ k for k in (5, 10, 100)},
    }
    judged = [ir_measures.Qrel(q, id, grade) for q, by in qrels.items() for id, grade in by.items()]
    run = [
        ir_measures.ScoredDoc(q, id, float(len(hits) - n))
        for q, hits in rankings.items()
        for n, (id, _) in enumerate(hits)
    ]
    names = {measure: name for name, measure in used.items()}
    found = {name: {} for name in used}
    for one in ir_measures.iter_calc(list(used.values()), judged, run):
        name = names[one.measure]
        found[name][one.query_id] = 1 - one.value if name.startswith("unjudged") else one.value
    return found


def written_out(labels, ids, relevant_from):
    """The metrics of one ranking by their formulas."""
    gains = [labels.get(id, 0) for id in ids]
    hits = [gain >= relevant_from for gain in gains]
    relevant = sum(grade >= relevant_from for grade in labels.values())
    best = sorted(labels.values(), reverse=True)

    def dcg(values):
        return sum(gain / math.log2(n + 2) for n, gain in enumerate(values[:10]))

    def share(depth):
        return sum(id not in labels for id in ids[:depth]) / len(ids[:depth]) if ids else 1.0

    return {
        "ndcg@10": dcg(gains) / dcg(best) if dcg(best) else 0.0,
        **{f"recall@{k}": sum(hits[:k]) / relevant if relevant else 0.0 for k in (10, 100)},
        "mrr@10": next((1 / (n + 1) for n, hit in enumerate(hits[:10]) if hit), 0.0),
        "map": sum(sum(hits[: n + 1]) / (n + 1) for n, hit in enumerate(hits) if hit) / relevant
        if relevant
        else 0.0,
        "hit@10": float(any(hits[:10])),
        **{f"precision@{k}": sum(hits[:k]) / k for k in (5, 10)},
        **{f"unjudged@{k}": share(k) for k in (5, 10, 100)},
    }


def random_task(seed, relevant_from):
    """Rankings of 0 to 130 passages with shared scores, and labels of which one at least is relevant."""
    rng = random.Random(seed)
    ids = [f"d{n}" for n in range(140)]
    qrels, rankings = {}, {}
    for n in range(40):
        drawn = rng.sample(ids, rng.randint(1, 20))
        qrels[f"q{n}"] = {id: rng.randrange(4) for id in drawn} | {drawn[0]: relevant_from}
        scores = sorted((rng.randrange(30) / 7 for _ in range(rng.randrange(1, 131))), reverse=True)
        rankings[f"q{n}"] = tuple(zip(rng.sample(ids, len(scores)), scores, strict=True))
    return qrels, rankings


def assert_same(found, theirs):
    for name, by in theirs.items():
        assert {q: found[q][name] for q in by} == pytest.approx(by, abs=1e-6), name


def test_every_metric_has_its_unjudged_share_at_its_own_depth():
    assert set(UNJUDGED) == set(QUALITY)
    assert set(UNJUDGED.values()) == set(METRICS) - set(QUALITY)
    for name in QUALITY:
        depth = UNJUDGED[name].rpartition("@")[2]
        assert name.endswith(f"@{depth}") or (name, depth) == ("map", "100")
    assert set(COMPARED) < set(QUALITY)
    assert [titled(name) for name in ("ndcg@10", "mrr@10", "map", "hit@10")] == [
        "nDCG@10",
        "MRR@10",
        "MAP",
        "hit@10",
    ]


@pytest.mark.process
def test_random_rankings_with_ties_equal_ranx_and_ir_measures():
    tasks = {relevant_from: random_task(relevant_from, relevant_from) for relevant_from in (1, 2)}
    theirs = ranx(tasks)
    for relevant_from, (qrels, rankings) in tasks.items():
        found = by_question(qrels, rankings, relevant_from=relevant_from)
        assert_same(found, directly(qrels, rankings, relevant_from))
        assert_same(found, theirs[relevant_from])


@pytest.mark.slow
@given(GRADES, TIED, st.sampled_from([1, 2]))
def test_metrics_are_what_their_formulas_give(labels, ranking, relevant_from):
    found = by_question({"q": labels}, {"q": ranking}, relevant_from=relevant_from)["q"]
    assert set(found) == set(METRICS)
    theirs = written_out(labels, [id for id, _ in ranking], relevant_from)
    assert found == pytest.approx(theirs, abs=1e-6)
