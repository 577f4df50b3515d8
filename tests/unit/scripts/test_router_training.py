"""Training a router: against scikit-learn, against brute force, and on sets made by hand."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.backends.question_classifier import DEFAULT_ROUTE
from core.corpus import catalogue
from core.corpus.chunk import WHOLE
from core.corpus.source import Source
from core.domain.errors import BadInput
from core.domain.types import Query, Turn
from core.evaluation.dataset import Question
from core.evaluation.oracle import mistakes, standing
from core.steps.question_features import FEATURES
from scripts.router_cases import Case, cases, check, kind_of
from scripts.router_training import (
    STRENGTH,
    above_chance,
    against,
    allowed,
    candidates,
    fit,
    held_out,
    judge,
    report,
    train,
    without,
)
from tests.fakes import FakeEngine
from tests.released import evaluation, labelled, outcome

MARKS = {
    "complex": "comparing words",
    "conversational": "conversation before",
    "structured": "value with a sum",
}


def case(at, name, kind, values=None, shown=None, noise=0.0):
    """A question whose feature says what it is."""
    drawn = random.Random(f"{name}{at}")
    features = {feature: drawn.random() * noise for feature in FEATURES}
    features |= dict.fromkeys(MARKS.values(), 0.0)
    if kind in MARKS:
        features[MARKS[kind]] = 1.0
    features["tables"] = float(kind == "structured")
    shown = {other: {**features, "tables": 1.0} for other in shown or ()}
    return Case(name, f"{name}-{at}", f"text {at}", kind, features, values or {}, shown)


def a_set(name, kinds, gain, count=12, **more):
    """`count` questions of each kind; "dense" is better by `gain` of the kind's."""
    return [
        case(
            f"{kind}{at}",
            name,
            kind,
            {DEFAULT_ROUTE: 0.5, "dense": 0.5 + gain.get(kind, -0.2), "bm25": 0.4},
            **more,
        )
        for kind in kinds
        for at in range(count)
    ]


def three(gain):
    return [one for name in ("a", "b", "c") for one in a_set(name, ("plain", "complex"), gain, 60, noise=0.3)]


@pytest.mark.parametrize("kinds", [("plain", "complex"), ("plain", "complex", "exact")])
def test_the_coefficients_are_scikit_learns(kinds):
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    found = [one for name in ("a", "b") for one in a_set(name, kinds, {}, noise=1.0)]
    values = np.array([[one.features[name] for name in FEATURES] for one in found])
    scaled = StandardScaler().fit_transform(values)  # every group is as large, so that all weigh the same
    model = LogisticRegression(C=STRENGTH, max_iter=5000, tol=1e-8).fit(scaled, [one.kind for one in found])
    ours = fit(found, kinds)
    order = [list(model.classes_).index(name) for name in ours.classes]
    assert ours.probabilities(values) == pytest.approx(model.predict_proba(scaled)[:, order], abs=1e-3)


def test_a_route_earns_a_class_that_sets_held_out_tell():
    classifier = train(three({"complex": 0.3}))
    assert [one.route for one in classifier.routes["complex"]] == ["dense"]
    assert classifier.routes["complex"][0].gain == pytest.approx(0.3)
    assert set(classifier.routes) == {"complex"}
    judged, rows, routes = report(three({"complex": 0.3}))
    assert {one.taken == one.case.kind for one in judged} == {True}
    assert routes == {name: ["complex: dense"] for name in "abc"}
    for row in rows:
        assert row.standing.gain.mean == pytest.approx(0.15)
        assert row.given == {DEFAULT_ROUTE: 60, "dense": 60}
        assert row.standing.oracle_regret.mean == pytest.approx(0)


def test_a_route_that_loses_on_one_set_is_refused():
    found = three({"complex": 0.3})
    worse = [
        replace(one, values={**one.values, "dense": 0.4}) if one.set == "c" and one.kind == "complex" else one
        for one in found
    ]
    judged = held_out(worse, ("plain", "complex"))
    tried = {
        one.candidate.route: one for one in allowed({"complex": candidates(judged, "complex")})["complex"]
    }
    assert tried["dense"].refused == "the router would lose 0.050 a question on c"
    assert "interval" in tried["bm25"].refused
    assert train(worse).routes == {}


def test_a_class_that_is_told_by_chance_counts_as_the_default_one():
    found = three({"complex": 0.3})
    drawn = random.Random(1)
    for at, one in enumerate(found):
        features = dict(one.features) | {MARKS["complex"]: float(drawn.random() < 0.5)}
        found[at] = replace(one, features=features)
    classifier = train([*found, *a_set("d", ("conversational",), {}), *a_set("e", ("conversational",), {})])
    assert "complex" not in classifier.classes
    assert classifier.made["not told"] == ["complex"]
    assert "complex" not in classifier.routes


def test_what_is_held_out_is_not_seen():
    found = [
        *a_set("a", ("plain",), {}, shown=("b",)),
        *a_set("b", ("structured",), {}),
        *a_set("c", ("plain",), {}),
    ]
    rest = without(found, "b")
    assert {one.set for one in rest} == {"a", "c"}
    assert all(not one.shown for one in rest)
    assert {one.set for one in found if one.shown} == {"a"}


def test_a_class_of_one_set_is_judged_by_folds():
    found = [
        *a_set("a", ("plain", "complex"), {}, 60, shown=("b",)),
        *a_set("b", ("structured",), {}, 60),
        *a_set("c", ("plain", "complex"), {}, 60),
    ]
    judged = held_out(found, ("plain", "complex", "structured"))
    assert len(judged) == len(found)
    assert any(one.taken == "structured" for one in judged if one.case.set == "b")


def test_above_chance_by_hand():
    found = [*a_set("a", ("complex",), {}, count=20), *a_set("b", ("plain",), {}, count=20)]
    judged = [
        replace_taken(one, "complex" if at % 2 == 0 else "plain")
        for at, one in enumerate(judge(fit(found, ("plain", "complex")), found))
    ]
    assert above_chance(judged, "complex") == {"a": pytest.approx(0.0)}


def replace_taken(one, taken):
    return replace(one, taken=taken)


values_of = st.dictionaries(
    st.text(min_size=1, max_size=3),
    st.fixed_dictionaries({name: st.floats(0, 1) for name in (DEFAULT_ROUTE, "bm25", "dense")}),
    min_size=2,
    max_size=8,
)


@settings(max_examples=30)
@given(values_of, st.randoms(use_true_random=False))
def test_how_a_router_stands_by_brute_force(values, drawn):
    given_to = {question: drawn.choice(sorted(routes)) for question, routes in values.items()}
    router = {question: values[question][given_to[question]] for question in values}
    found = standing(values, router)
    n = len(values)
    means = {name: sum(routes[name] for routes in values.values()) / n for name in values[next(iter(values))]}
    assert found.n == n
    assert found.single == pytest.approx(max(means.values()))
    assert found.router == pytest.approx(sum(router.values()) / n)
    assert found.oracle == pytest.approx(sum(max(routes.values()) for routes in values.values()) / n)
    assert found.gain.mean == pytest.approx(found.router - means[DEFAULT_ROUTE])
    assert found.regret.mean == pytest.approx(found.single - found.router)
    assert found.oracle_regret.mean >= -1e-12
    assert found.regret.ci95[0] <= found.regret.ci95[1]


def test_mistakes_by_hand():
    values = {
        "1": {"adaptive": 0.2, DEFAULT_ROUTE: 0.7, "dense": 0.9},
        "2": {"adaptive": 0.5, DEFAULT_ROUTE: 0.4, "dense": 0.6},
        "3": {"adaptive": 1.0, DEFAULT_ROUTE: 1.0, "dense": 0.0},
        "4": {"adaptive": 0.0, DEFAULT_ROUTE: 1.0, "dense": 0.0},
    }
    found = mistakes(values, "adaptive", {"1": "bm25", "2": "memory", "3": "rerank"})
    assert [(one.question, one.route, one.best) for one in found] == [
        ("1", "bm25", "dense"),
        ("2", "memory", "dense"),
    ]
    assert found[0].lost == pytest.approx(0.5)
    assert found[0].regret == pytest.approx(0.7)
    assert found[1].lost == pytest.approx(-0.1)


def test_what_cannot_be_told_or_held_out_has_no_standing():
    found = three({})
    assert against(train(found), [replace(one, values={}) for one in found[:3]]) is None
    with pytest.raises(BadInput, match="two sets or more"):
        check(a_set("a", ("plain",), {}))
    with pytest.raises(BadInput, match="nothing to tell apart"):
        fit(a_set("a", ("plain",), {}), ("plain",))


def test_the_kind_of_a_question():
    talk = (Turn("user", "Hello"),)
    assert kind_of(Question("1", Query("x"), mode="multi_hop"), "plain") == "complex"
    assert kind_of(Question("1", Query("x"), mode="no_answer"), "plain") is None
    assert kind_of(Question("1", Query("x", talk)), "plain") == "conversational"
    assert kind_of(Question("1", Query("x")), "plain") == "plain"
    assert kind_of(Question("1", Query("x")), None) is None


def test_few_sets_leave_some_untold():
    found = [*a_set("a", ("plain",), {}), *a_set("b", ("complex",), {"complex": 0.3})]
    judged, rows, routes = report(found)
    assert {one.taken for one in judged if one.case.set == "a"} == {"plain"}
    assert (rows, routes) == ([], {"a": [], "b": []})


def test_test_questions_are_left_alone_unless_told_otherwise(tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "source", lambda *_, **__: Source("tiny", "indexed", None, WHOLE))
    found = labelled(6)
    mixed = replace(
        found,
        questions=tuple(
            replace(one, split="dev" if at < 2 else "test") for at, one in enumerate(found.questions)
        ),
    )
    ranks = {"bm25": [outcome(1)] * 6}
    engine = FakeEngine(tmp_path / "home")

    def drawn(name, asked, **more):
        made = evaluation(tmp_path / name, ranks, asked=asked)
        return [one.id for one in cases(engine, [made], {"tiny": "plain"}, **more)]

    assert drawn("mixed", mixed) == ["q0", "q1"]
    assert len(drawn("mixed again", mixed, test=True)) == 6
    with pytest.raises(BadInput, match="split test"):
        drawn("tests", found)
