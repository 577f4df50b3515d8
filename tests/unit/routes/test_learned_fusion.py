"""Weights fitted on labels: the truth is recovered, unseen questions stay unseen, what is fitted is used."""

from __future__ import annotations

import json
import os
import re
import threading
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from core.analysis.what_if.fusion import fusions, recompute, shares
from core.backends import fusion_weights as files
from core.backends.fusion_weights import FEATURES, FittedWeights
from core.cli import main
from core.domain.errors import BadInput, Cancelled, Unavailable
from core.domain.fusion import linear
from core.domain.needs import Need
from core.domain.types import Hit, Passage, Query
from core.engine import engine as engine_module
from core.engine.availability import missing
from core.engine.request import Request
from core.evaluation import finding
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.tuning import fusion_weights, learn
from core.evaluation.tuning.fusion_weights import Wanted
from core.evaluation.tuning.learn import (
    EQUAL,
    LEAST_QUESTIONS,
    LEAST_RELEVANT,
    Collected,
    collect,
    counts,
    pairs,
)
from core.steps.fitted_fusion import features, ordered, parts
from tests.asking import ask, scores
from tests.fakes import FakeEngine, some_weights

TRUE = ((2.0, 0.0, 0.0), (8.0, 0.0, 0.0))  # of two lists: the second's score counts four times as much


def ranked(scores):
    found = [Hit(Passage(id, "d", "", ""), float(score)) for id, score in scores.items()]
    return tuple(sorted(found, key=lambda hit: (-hit.score, hit.passage.id)))


def synthetic(count=120, size=40, seed=3, true=TRUE):
    """Questions with two random lists, and labels drawn with the log-odds that `true` gives."""
    draw = np.random.default_rng(seed)
    lists, qrels = {}, {}
    for number in range(count):
        question = f"q{number}"
        ids = [f"{question}-{n}" for n in range(size)]
        found = [ranked(dict(zip(ids, draw.uniform(0, 1, size), strict=True))) for _ in true]
        score = {id: sum(one) for id, one in parts(found, true).items()}
        chance = {id: 1 / (1 + np.exp(-(value - 8))) for id, value in score.items()}
        qrels[question] = {id: int(draw.uniform() < chance[id]) for id in ids}
        qrels[question][ids[0]] = 1  # at least one
        lists[question] = dict(zip(("bm25", "dense"), found, strict=True))
    asked = tuple(Question(id, Query(id), split="dev" if n % 4 else "test") for n, id in enumerate(lists))
    return Collected(LabelledSet("synthetic", asked, qrels), "tiny", "f1", "hash", lists)


@pytest.fixture(scope="module")
def material():
    return synthetic()


@pytest.fixture(scope="module")
def fitted(material):
    return learn.learned(material, "known", ("bm25", "dense"), list(material.lists))


@pytest.fixture
def two_strengths(monkeypatch):
    """What fitting takes grows with the strengths it chooses from."""
    monkeypatch.setattr(learn, "STRENGTHS", (0.01, 1.0))


def test_features_by_hand():
    ranking = ranked({"a": 9, "b": 5, "c": 1})
    assert features(ranking) == {"a": (1, 1, 1), "b": (0.5, 1, 1 / 2), "c": (0, 1, 1 / 3)}
    assert features(ranking + ranking[:1]) == features(ranking), "a repeat counts once, at its best rank"
    assert features(()) == {}
    found = parts((ranking, ranked({"b": 1, "d": 0})), ((1, 10, 100), (2, 20, 200)))
    assert found["a"] == (111, 0), "a list that lacks a passage gives nothing"
    assert found["b"] == (0.5 + 10 + 50, 222)
    assert [hit.passage.id for hit in ordered((ranking, ranked({"b": 1, "d": 0})), found)] == list("bdac")
    assert set(parts((ranking,), ((1, 1, 1),), 2)) == {"a", "b"}
    assert parts((ranking,), ((1, 1, 1),), 2)["b"] == parts((ranking,), ((1, 1, 1),))["b"]
    with pytest.raises(BadInput, match="expected 3 per list"):
        parts((ranking,), ((1, 1),))


@pytest.mark.slow
def test_the_truth_is_recovered(fitted):
    """Labels drawn with the second list's score counting four times the first's."""
    score = {name: row[0] for name, row in zip(fitted.lists, fitted.weights, strict=True)}
    assert 2.7 < score["dense"] / score["bm25"] < 6
    (first, _), _ = fusion_weights.most(fitted)
    assert first == files.LISTS["dense"]
    against = fitted.made["out of fold"]["against"]
    assert against[EQUAL]["verdict"] == against["bm25"]["verdict"] == "better"


def test_it_is_scikit_learns_regression(material):
    found = pairs(material, list(material.lists), ("bm25", "dense"))
    rows = np.arange(len(found.passages))
    ours = learn.regression(found, rows, 0.1)
    weights = learn._shares(found.relevant, found.of)
    scaler = StandardScaler().fit(found.x)
    theirs = LogisticRegression(C=0.1, solver="lbfgs", max_iter=5000, tol=1e-10)
    theirs.fit(scaler.transform(found.x), found.relevant, sample_weight=weights)
    decision = theirs.decision_function(scaler.transform(found.x))
    np.testing.assert_allclose(ours.scores(found.x) + ours.intercept, decision, atol=1e-3)


def test_each_question_weighs_the_same_and_half_of_it_is_relevant():
    of = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    relevant = np.array([1, 0, 0, 0, 1, 0, 0, 0], bool)
    weights = learn._shares(relevant, of)
    assert weights[:4].sum() == pytest.approx(weights[4:6].sum())
    assert weights[0] == pytest.approx(weights[1:4].sum())
    assert weights[6:].sum() == 0, "without a relevant passage there is nothing to put in order"
    assert weights.sum() == pytest.approx(len(of))


@pytest.mark.slow
def test_no_fold_sees_its_own_questions(material, two_strengths):
    """Other labels for the questions of one fold change nothing of what is predicted for them."""
    found = pairs(material, list(material.lists), ("bm25", "dense"))
    scores, folds = learn.out_of_fold(found, learn.chosen)
    assert len(folds) == learn.FOLDS
    assert sorted(id for ids, _ in folds for id in ids) == sorted(found.questions)
    held = {found.questions.index(id) for id in folds[2][0]}
    mine = np.array([of in held for of in found.of])
    turned = replace(found, relevant=np.where(mine, ~found.relevant, found.relevant))
    again, _ = learn.out_of_fold(turned, learn.chosen)
    np.testing.assert_array_equal(again[mine], scores[mine])
    assert not np.array_equal(again[~mine], scores[~mine]), "the other folds do learn from them"


@pytest.mark.slow
def test_noise_is_worth_nothing_out_of_fold(two_strengths):
    """Labels that no list knows anything of: in sample some weights fit, out of fold none do."""
    noise = synthetic(seed=5)
    draw = np.random.default_rng(0)
    qrels = {
        q: {id: int(draw.uniform() < 0.1) for id in labels} for q, labels in noise.labelled.qrels.items()
    }
    for labels in qrels.values():
        labels[next(iter(labels))] = 1
    drawn = replace(noise, labelled=replace(noise.labelled, qrels=qrels))
    found = learn.learned(drawn, "noise", ("bm25", "dense"), list(noise.lists))
    assert found.made["out of fold"]["against"][EQUAL]["verdict"] == "no difference shown"


@pytest.mark.parametrize(
    ("questions", "relevant", "lists", "said"),
    [
        (LEAST_QUESTIONS - 1, 500, 2, "39 labelled questions, but at least 40 are needed"),
        (LEAST_QUESTIONS, LEAST_RELEVANT - 1, 2, "99 relevant passages that the lists found, but at"),
        (200, 119, 4, "at least 120 are needed for 4 lists.*fuse fewer lists"),
        (1, 1, 1, "1 labelled questions.*; 1 relevant passages.*needed for 1 list"),
    ],
)
def test_too_few_labels_are_refused_with_the_numbers(questions, relevant, lists, said):
    assert re.search(said, learn.refusal(questions, relevant, lists))
    assert learn.refusal(LEAST_QUESTIONS, LEAST_RELEVANT, 3) is None
    assert learn.refusal(LEAST_QUESTIONS, 120, 4) is None


def test_pairs_count_what_is_judged_and_what_is_not(material):
    labelled = replace(
        material.labelled,
        relevant_from=2,
        qrels={**material.labelled.qrels, "q0": {"q0-1": 2, "q0-2": 1, "elsewhere": 3}},
    )
    changed = replace(material, labelled=labelled)
    found = pairs(changed, ["q0"], ("bm25", "dense"))
    assert [p for p, good in zip(found.passages, found.relevant, strict=True) if good] == ["q0-1"]
    own = replace(changed, labelled=replace(material.labelled, drop_self=True))
    assert [id for id, _ in own.scored("q0", ranked({"q0": 3, "other": 2}))] == ["other"]
    there = counts(changed, found)
    assert (there.questions, there.relevant, there.labelled) == (1, 1, 2)
    assert (there.passages, there.unjudged) == (40, 38)
    said = fusion_weights.labels(there)
    assert "1 are in no list" in said
    assert "38 of the found passages are unjudged and count as not relevant" in said


def test_it_is_compared_with_what_the_routes_do(material):
    """The rivals are made by the very functions of the routes, over all questions and no others."""
    lists = ("bm25", "dense")
    found = learn.by_hand(material, "q1", lists)
    assert found[EQUAL] == linear(tuple(material.lists["q1"][name] for name in lists))
    three = replace(material, lists={"q1": {**material.lists["q1"], "maxsim": material.lists["q1"]["bm25"]}})
    assert learn.by_hand(three, "q1", (*lists, "maxsim"))[EQUAL] != found[EQUAL]


@pytest.mark.slow
def test_held_out_questions_are_told_apart_from_those_fitted_on(material, two_strengths):
    split, parts = fusion_weights.divided(material.labelled)
    chosen, rest = parts.chosen_on, parts.held_out
    assert (split, len(chosen), len(rest)) == ("dev", 90, 30)
    rivals = {"some_route": dict.fromkeys(material.lists, 0.0)}
    found = learn.learned(material, "split", ("bm25", "dense"), chosen, rest, rivals=rivals)
    assert found.made["questions"] == list(chosen)
    assert (found.made["out of fold"]["n"], found.made["held out"]["n"]) == (90, 30)
    beaten = found.made["held out"]["measured"]["some_route"]
    assert beaten["delta"] == pytest.approx(found.made["held out"]["ndcg@10"])
    low, high = found.made["held out"]["ci95"]
    assert low <= found.made["held out"]["ndcg@10"] <= high
    assert fusion_weights.splits(material.labelled) == ["dev", "test", "all"]
    with pytest.raises(BadInput, match="there are: dev, test, all"):
        fusion_weights.divided(material.labelled, "train")


@pytest.mark.slow
def test_what_is_served_is_what_was_fitted(tmp_path, material, fitted):
    """The route's scores are the model's decision function less its constant, for the lists of its run."""
    engine = FakeEngine(tmp_path)
    fingerprint = engine.corpus("tiny").fingerprint
    mine = replace(fitted, fingerprint=fingerprint)
    files.write(tmp_path, mine)
    result = ask(tmp_path, "learned_fusion", "send a fragile box back", engine=engine)[0]
    assert result.status == "ok"
    labelled = LabelledSet(
        "t", (Question("a", Query("send a fragile box back")),), {"a": {"crushed:0-80": 1}}
    )
    found = pairs(collect(engine, labelled, "tiny", mine.lists), ["a"], mine.lists)
    scaler = StandardScaler()
    scaler.mean_, scaler.scale_ = np.array(mine.made["means"]), np.array(mine.made["scales"])
    standardised = np.array(mine.made["standardised"]).ravel()
    bias = mine.intercept + np.array(mine.weights).ravel() @ scaler.mean_
    decision = scaler.transform(found.x) @ standardised + bias
    served = {hit.passage.id: hit.score + mine.intercept for hit in result.hits}
    assert served == pytest.approx(dict(zip(found.passages, decision, strict=True)))
    span = result.spans[-1]
    assert span.args["called"] == "known"
    assert span.output.names == tuple([files.LISTS[name] for name in mine.lists])
    assert span.args["fitted"] == [list(row) for row in mine.weights]
    for id, some in span.output.shares.items():
        assert sum(some) == pytest.approx(dict(span.hits)[id], abs=1e-3)
    assert "note" not in span.attributes


def test_the_fusion_of_a_stored_run_can_be_tried_again(tmp_path):
    engine = FakeEngine(tmp_path)
    result = ask(tmp_path, "learned_fusion", "send a fragile box back", engine=engine)[0]
    (fusion,) = fusions(result)
    assert (fusion.method, fusion.lack) == ("fitted", "")
    assert recompute(fusion, {}) == fusion.span.hits
    only = recompute(fusion, {f"weights.{n}": 0.0 for n in range(1, 5)})
    bm25 = [hit.passage.id for hit in fusion.lists[0]]
    assert [id for id, _ in only if id in bm25] == bm25
    doubled = shares(fusion, {"weights.0": 2.0})
    for id, some in shares(fusion, {}).items():
        assert doubled[id] == pytest.approx((2 * some[0], *some[1:]))
    all_ = scores(result)
    one = scores(ask(tmp_path, "learned_fusion", "send a fragile box back", engine=engine, candidates=1)[0])
    assert 0 < len(one) < len(all_)
    assert one == {id: all_[id] for id in one}


def test_without_weights_it_is_unavailable_with_the_way_to_get_some(tmp_path, monkeypatch):
    monkeypatch.setattr(FakeEngine, "weights", lambda self, *given: super(FakeEngine, self).weights(*given))
    engine = FakeEngine(tmp_path)
    result = ask(tmp_path, "learned_fusion", "send", engine=engine)[0]
    assert result.status == "unavailable"
    assert "python -m core fit tiny" in result.error
    assert "python -m core fit tiny" in missing(engine, "tiny")[Need.WEIGHTS]
    files.write(tmp_path, some_weights())
    assert "the fitted weights some of tiny need token vectors" in missing(engine, "tiny")[Need.WEIGHTS]
    files.write(tmp_path, replace(some_weights(name="plain"), lists=("bm25",), weights=((1.0, 1.0, 1.0),)))
    assert Need.WEIGHTS not in missing(engine, "tiny"), "the newest need nothing"
    used = ask(tmp_path, "learned_fusion", "send", engine=engine)[0]
    assert "another state of the corpus" in used.spans[-1].attributes["note"]
    refused = ask(tmp_path, "learned_fusion", "send", engine=engine, weights="../../etc/passwd")[0]
    assert refused.status == "failed"
    assert "there are no fitted weights '../../etc/passwd' for tiny; there are: plain, some" in refused.error


def test_files_come_back_as_written_and_the_newest_is_first(tmp_path, fitted):
    for at, name in enumerate(("b", "a", "c")):
        path = files.write(tmp_path, replace(fitted, name=name))
        os.utime(path, ns=(10**9 * (5 - at), 10**9 * (5 - at)))
    assert files.names(tmp_path, "tiny") == ["b", "a", "c"]
    assert files.read(tmp_path, "tiny") == replace(fitted, name="b", made=json.loads(json.dumps(fitted.made)))
    assert files.remove(tmp_path, "tiny", "b").name == "b"
    assert files.names(tmp_path, "tiny") == ["a", "c"]
    assert not [one for one in path.parent.iterdir() if one.suffix != ".json"], "nothing half written is left"
    with pytest.raises(BadInput, match="give a name of 1 to 80 letters"):
        files.write(tmp_path, replace(fitted, name="../up"))
    with pytest.raises(BadInput, match="there are no fitted weights 'z'"):
        files.remove(tmp_path, "tiny", "z")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"weights": [[1, 2]]}, "another shape than 5 lists x 3"),
        ({"weights": [[1, 2, "x"]] * 5}, "weights"),
        ({"intercept": 1e999}, "not a finite number"),
        ({"lists": ["bm25", "bm25", "dense", "maxsim", "children"]}, "each once"),
        ({"lists": ["os.system"]}, "wanted some of"),
        ({"features": ["score"]}, "its features are"),
        ({"version": 7}, "version 7, not 1"),
        ({"corpus": "another"}, "fitted for corpus 'another'"),
        ({"made": None}, "made: "),
    ],
)
def test_damaged_weights_are_refused_with_words(tmp_path, change, said):
    path = files.write(tmp_path, some_weights())
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(Unavailable, match=said) as caught:
        files.read(tmp_path, "tiny")
    assert "python -m core fit tiny" in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "[" * 100_000])
def test_files_that_are_no_weights_are_refused(tmp_path, text):
    files.write(tmp_path, some_weights()).write_text(text)
    with pytest.raises(Unavailable, match="cannot be used"):
        files.read(tmp_path, "tiny")
    assert files.remove(tmp_path, "tiny", "some") is None
    assert files.names(tmp_path, "tiny") == []


def asked(count=60):
    topics = ("fragile box", "refund item", "express parcel", "customs invoice", "crushed photos")
    wanted = ("fragile:0-80", "returns:90-180", "express:0-80", "customs:0-80", "crushed:0-80")
    questions = tuple(
        Question(f"q{n}", Query(f"{topics[n % 5]} {n}"), split="dev" if n % 6 else "test")
        for n in range(count)
    )
    qrels = {q.id: {wanted[n % 5]: 1, "returns:0-90": 1, "keys:0-80": 1} for n, q in enumerate(questions)}
    return LabelledSet("asked", questions, qrels)


@pytest.fixture
def labelled_engine(tmp_path, monkeypatch, two_strengths):
    labelled = asked()
    monkeypatch.setattr(fusion_weights, "_origin", lambda *_: (labelled, {}, "the questions of a test"))
    return FakeEngine(tmp_path)


@pytest.mark.slow
def test_fitting_in_the_background_ends_with_kept_weights(labelled_engine):
    wanted = Wanted("tiny", "mine", ("bm25", "dense"))
    running = fusion_weights.begin(labelled_engine, wanted)
    assert fusion_weights.under_way(labelled_engine, "tiny") is running
    assert running.wait(30)
    assert (running.error, running.cancelled, running.finished, running.total) == (None, False, 60, 60)
    home = labelled_engine.settings.home
    assert files.read(home, "tiny", "mine").lists == ("bm25", "dense")
    assert running.fitted.made["counts"]["questions"] == 50
    request = Request(Query("fragile box"), "tiny", ("learned_fusion",))
    result = labelled_engine.ask(request).results[0]
    assert result.spans[-1].args["called"] == "mine"


def test_fitting_is_stopped_and_keeps_nothing(labelled_engine):
    seen, wanted = threading.Event(), Wanted("tiny", "mine", ("bm25", "dense"))

    def stop(done, _of):
        if done == 3:
            seen.set()

    with pytest.raises(Cancelled):
        fusion_weights.perform(labelled_engine, wanted, stop, ended=seen.is_set)
    with pytest.raises(Cancelled):
        fusion_weights.perform(labelled_engine, wanted, stage=lambda _: seen.set(), ended=seen.is_set)
    assert files.names(labelled_engine.settings.home, "tiny") == []


@pytest.mark.slow
def test_the_command_line_fits_and_tells(labelled_engine, monkeypatch, capsys):
    monkeypatch.setattr(engine_module, "shared_engine", lambda: labelled_engine)
    given = ["fit", "tiny", "--evaluation", "mine", "--lists", "bm25, dense", "--name", "said"]
    assert main(given) == 0
    said = capsys.readouterr().out
    found = files.read(labelled_engine.settings.home, "tiny", "said")
    assert said.startswith("said: the questions of a test, questions of split dev: 50 questions")
    assert finding.number(found.made["held out"]["ndcg@10"]) in said
    assert "measure it on others" in said
    assert main([*given, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["weights"] == [list(row) for row in found.weights]
    assert main(["fit", "tiny", "--evaluation", "a", "--labels", "b"]) == 2
    assert main([*given[:-1], "../up"]) == 2
    assert "give a name of 1 to 80 letters" in capsys.readouterr().err


def test_what_cannot_be_fused_is_refused_before_anything_is_searched(labelled_engine):
    with pytest.raises(BadInput, match="there is no list 'nothing'; there are: bm25, dense"):
        fusion_weights.begin(labelled_engine, Wanted("tiny", "mine", ("nothing",)))
    with pytest.raises(Unavailable, match="the list maxsim cannot be searched: "):
        fusion_weights.begin(labelled_engine, Wanted("tiny", "mine", ("maxsim",)))
    with pytest.raises(BadInput, match="give a name"):
        fusion_weights.begin(labelled_engine, Wanted("tiny", "", ("bm25",)))
    there = fusion_weights.available(labelled_engine, "tiny")
    assert [name for name, why in there.items() if why is None] == ["bm25", "dense"]
    assert fusion_weights.chosen_lists(labelled_engine, Wanted("tiny", "mine")) == ("bm25", "dense")


def test_the_lists_of_fitting_are_those_of_the_route(tmp_path):
    """No list is searched twice, and every kind of list is found as the route finds it."""
    engine = FakeEngine(tmp_path)
    mine = some_weights()
    labelled = LabelledSet("t", (Question("a", Query("fragile box")),), {"a": {"crushed:0-80": 1}})
    found = collect(engine, labelled, "tiny", mine.lists)
    result = engine.ask(Request(Query("fragile box"), "tiny", ("learned_fusion",))).results[0]
    (fusion,) = fusions(result)
    scored = [tuple((hit.passage.id, hit.score) for hit in found.lists["a"][name]) for name in mine.lists]
    assert [tuple((hit.passage.id, hit.score) for hit in one) for one in fusion.lists] == scored
    names = [span.name for span in result.spans if span.parent is None]
    assert len(names) == len(set(names))


def test_words_say_what_the_figures_say(fitted):
    (line,) = fusion_weights.worth(fitted)
    assert finding.number(fitted.made["out of fold"]["ndcg@10"]) in line
    assert "120 questions" in line
    found = fusion_weights.rivals(fitted, "out of fold")
    assert {one.baseline for one in found} == {
        fusion_weights.called(n) for n in ("bm25", "hybrid_rrf", EQUAL)
    }
    for one in found:
        assert one.estimate == pytest.approx(fitted.made["out of fold"]["ndcg@10"] - one.before)
    for one in (*found, *fusion_weights.left_out(fitted)):
        assert one.interval[0] <= one.estimate <= one.interval[1], "the interval is of the difference"
    assert next(one for one in found if one.baseline == "BM25").verdict == "better"
    empty = FittedWeights("n", "c", "f", ("bm25",), ((1.0, -0.5, 0.0),), 0.0)
    assert fusion_weights.worth(empty) == []
    assert "Negative weights: BM25 for being in the list" in fusion_weights.weights(empty)
    assert len(FEATURES) == len(empty.weights[0])
