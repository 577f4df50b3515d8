"""Choosing a route by features: what is told, what is passed over, what is done then, what files may hold."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.run_view import top
from core.backends import question_classifier
from core.backends.question_classifier import (
    CLASSES,
    DEFAULT_ROUTE,
    NEEDS,
    NO_SEARCH,
    ClassRoute,
    read,
    trained,
)
from core.backends.sql.database import Column, DatabaseTable
from core.backends.sql.linking import ValueLink
from core.backends.terms import analyzer
from core.backends.trained_files import write_trained
from core.domain.errors import BadInput, Unavailable
from core.domain.types import AnswerStyle, Query, Turn
from core.engine.request import Request
from core.evaluation.audit.decisions import other_way, own
from core.routes.registry import routes
from core.steps.classify import Dispatch, classify_features
from core.steps.question_features import FEATURES, FirstSearch, Schema, features
from tests.asking import span
from tests.fakes import FakeEngine, ScriptedLLM

TALK = (Turn("user", "My box arrived crushed."), Turn("assistant", "I am sorry."))
WORDS = analyzer("english")
NOTHING_FOUND = FirstSearch((), (), ())
SHIPPED = read()
EARNED = ClassRoute("dense", "value", 0.2, 0.1, 0.3, 40, ("one", "two"))


def given_features(text, conversation=False, schema=None):
    return features(text, conversation, NOTHING_FOUND, schema or Schema(), WORDS)


def ask(tmp_path, text, replies=None, history=(), missing=None, answers="none", by="model", classifier=None):
    llm = ScriptedLLM(replies or {}, missing=missing)
    engine = FakeEngine(tmp_path, llm=llm)
    if classifier is not None:
        write_trained(classifier, trained(engine.settings.home))
    request = Request(Query(text, history), "tiny", ("adaptive",), answers=answers, style=AnswerStyle(by=by))
    return engine.ask(request).results[0], llm


def of(result, name):
    return span(result, name).output


def always(kind, *names):
    """The shipped classifier made to tell one class whatever is asked, with routes for it."""
    rows = tuple((0.0,) * len(FEATURES) for _ in CLASSES)
    intercepts = tuple(9.0 if name == kind else 0.0 for name in CLASSES)
    return replace(
        SHIPPED,
        classes=CLASSES,
        coefficients=rows,
        intercepts=intercepts,
        routes={kind: tuple(replace(EARNED, route=name) for name in names)},
    )


# --- the classifier


@given(st.lists(st.floats(-5, 5), min_size=len(FEATURES), max_size=len(FEATURES)))
def test_probabilities_add_up_and_contributions_are_the_logit(values):
    [row] = SHIPPED.probabilities([values])
    assert row.sum() == pytest.approx(1)
    assert (row >= 0).all()
    [logits] = SHIPPED.logits([values])
    known = [name for name, logit in zip(SHIPPED.classes, logits, strict=True) if np.isfinite(logit)]
    one, other = known[:2]
    parts = SHIPPED.contributions(values, one, other)
    at = SHIPPED.classes.index
    assert sum(parts.values()) == pytest.approx(logits[at(one)] - logits[at(other)], abs=1e-9)
    sizes = [abs(part) for part in parts.values()]
    assert sizes == sorted(sizes, reverse=True)


def test_the_probabilities_are_scikit_learns():
    linear_model = pytest.importorskip("sklearn.linear_model")
    from sklearn.utils.validation import check_is_fitted

    draw = np.random.default_rng(1)
    values = draw.normal(size=(40, len(FEATURES)))
    values[:, [FEATURES.index(name) for name in NEEDS.values()]] = 1.0  # nothing is ruled out
    model = linear_model.LogisticRegression()
    model.classes_ = np.array(SHIPPED.classes)
    model.coef_ = np.array(SHIPPED.coefficients)
    model.intercept_ = np.array(SHIPPED.intercepts)
    check_is_fitted(model)
    expected = model.predict_proba(values - np.array(SHIPPED.means))
    assert SHIPPED.probabilities(values) == pytest.approx(expected, abs=1e-12)


def test_a_question_cannot_be_of_a_class_that_lacks_what_it_needs():
    for kind, feature in NEEDS.items():
        values = [0.0 if name == feature else 1.0 for name in FEATURES]
        [row] = SHIPPED.probabilities([values])
        assert row[SHIPPED.classes.index(kind)] == 0
        assert row.sum() == pytest.approx(1)


def test_what_is_written_is_read(tmp_path):
    path = trained(tmp_path)
    write_trained(SHIPPED, path)
    assert replace(read(tmp_path), source=SHIPPED.source) == SHIPPED
    assert read(tmp_path).source == str(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d["coefficients"][0].pop(), "features need as many means"),
        (lambda d: d["intercepts"].append(0.0), "need a row of coefficients"),
        (lambda d: d["means"].__setitem__(0, float("nan")), "not a finite number"),
        (lambda d: d["classes"].__setitem__(0, "odd"), "no such class: 'odd'"),
        (lambda d: d["classes"].__setitem__(d["classes"].index("plain"), "conceptual"), "lacks the class"),
        (lambda d: d.__setitem__("least", 2), "least 2; wanted"),
        (lambda d: d.pop("routes"), "routes: "),
        (lambda d: d.__setitem__("routes", []), "routes: "),
    ],
)
def test_a_damaged_file_is_one_clear_error(tmp_path, change, says):
    write_trained(SHIPPED, trained(tmp_path))
    document = json.loads(trained(tmp_path).read_text())
    change(document)
    trained(tmp_path).write_text(json.dumps(document))
    with pytest.raises(Unavailable, match=r"python -m scripts\.routing makes one") as caught:
        read(tmp_path)
    assert says in str(caught.value)


def test_a_feature_that_there_is_not_is_told():
    with pytest.raises(Unavailable, match="no such feature: 'odd'"):
        classify_features(replace(SHIPPED, features=("odd", *SHIPPED.features[1:])), given_features("?"))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "null", "3"])
def test_a_file_that_is_no_classifier_makes_the_route_unavailable(tmp_path, text):
    engine = FakeEngine(tmp_path, llm=ScriptedLLM({}))
    path = trained(engine.settings.home)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    both = engine.ask(Request(Query("How long are vouchers valid?"), "tiny", ("adaptive", "rerank"))).results
    assert both[0].status == "unavailable"
    assert "the classifier" in both[0].error
    assert both[1].status == "ok"


# --- features


@given(st.text(max_size=300), st.booleans())
def test_any_text_has_all_features(text, conversation):
    found = given_features(text, conversation)
    assert set(found) == set(FEATURES)
    assert all(np.isfinite(value) and 0 <= value <= 8 for value in found.values())


@pytest.mark.parametrize("piece", ["x", "how many ", "A ", "\x00\x1b[31m\u202e\ufeff", "'", "1+"])
def test_hostile_texts_have_features_soon(piece):
    began = time.monotonic()
    assert set(given_features((piece * 10_000)[:10_000])) == set(FEATURES)
    assert time.monotonic() - began < 2


def test_the_features_by_hand():
    found = given_features("How many of the orders after RMA-418686 had the highest cost?", True)
    assert found["conversation before"] == 1
    assert found["asks how many"] == found["superlatives"] == 1
    assert found["identifiers"] == 1
    assert found["asks nothing"] == found["arithmetic"] == 0
    assert given_features("What is 12 * 7")["arithmetic"] == 1
    assert given_features("statins prevent cancer")["asks nothing"] == 1
    assert given_features("Thanks, bye")["polite words"] == 1
    assert given_features("Are Ann Lee and Bo Chan both directors?")["names"] == 2
    assert given_features("Compare A and B")["comparing words"] == 1


def test_tables_count_only_where_there_are_some():
    text = "Which city has the largest population in Arizona?"
    at = FEATURES.index("tables")
    assert {given_features(text)[name] for name in FEATURES[at:]} == {0.0}
    table = DatabaseTable("city", "", (Column("city_name", "TEXT"), Column("population", "INT")))
    schema = Schema((table,), (ValueLink("city", "state_name", "arizona", True),))
    found = given_features(text, schema=schema)
    assert found["tables"] == found["value with a sum"] == found["sums over the schema"] == 1
    assert 0 < found["share of linked words"] <= 1


# --- the route


def test_what_decided_is_recorded(tmp_path):
    result, llm = ask(tmp_path, "What do I do now?", history=TALK)
    assert (result.status, result.error) == ("ok", None)
    found = of(result, "classify by features")
    assert found.decision == "conversational"
    assert sum(found.scores.values()) == pytest.approx(1)
    assert found.between[0] == max(found.scores, key=found.scores.get)
    assert {one.feature for one in found.weighed} == {*FEATURES, question_classifier.AS_A_RULE}
    one, other = (found.scores[name] for name in found.between)
    if other:
        assert sum(feature.part for feature in found.weighed) == pytest.approx(np.log(one / other))
    assert found.details["trained"] == SHIPPED.source
    assert not llm.requests
    chosen = of(result, "choose the route")
    assert chosen.decision == SHIPPED.routes["conversational"][0].route
    assert chosen.ways[-1] == DEFAULT_ROUTE
    assert any(span.name == "search the conversation" for span in result.spans)


def test_the_steps_and_hits_are_those_of_the_route_chosen(tmp_path):
    engine = FakeEngine(tmp_path)
    run = engine.ask(Request(Query("How long are vouchers valid?"), "tiny", ("rerank", "adaptive")))
    rerank, adaptive = run.results
    assert adaptive.hits == rerank.hits
    own = [span.name for span in top(adaptive)]
    at = own.index("choose the route")
    assert own[at + 1 :] == [span.name for span in top(rerank)]
    assert "keep what it found" not in own
    assert all(s.shared_with for s in adaptive.spans if s.parent is None and s.name.startswith("search"))


def test_what_cannot_run_is_passed_over_and_the_decision_says_so(tmp_path):
    classifier = always("complex", "decompose", "no_such_route", "dense")
    result, llm = ask(tmp_path, "xyz", missing="no model: run make setup", classifier=classifier)
    chosen = of(result, "choose the route")
    assert (chosen.decision, chosen.ways) == ("dense", ("dense", DEFAULT_ROUTE))
    assert "not decompose, because no model: run make setup" in chosen.why
    assert "not no_such_route, because there is no such route" in chosen.why
    assert "it gained 0.200 [0.100, 0.300]" in chosen.why
    assert not llm.requests


def test_a_route_that_finds_nothing_gives_way_to_the_default_one(tmp_path):
    result, _ = ask(tmp_path, "zzzz qqqq", classifier=always("exact", "bm25"))
    assert of(result, "choose the route").decision == "bm25"
    assert of(result, "keep what it found").decision == "fall back"
    assert result.hits
    kept, _ = ask(tmp_path / "b", "crushed box", classifier=always("exact", "bm25"))
    assert of(kept, "keep what it found").decision == "keep"


def test_a_class_without_a_route_has_the_default_one(tmp_path):
    result, _ = ask(tmp_path, "xyz", classifier=always("exact"))
    chosen = of(result, "choose the route")
    assert (chosen.decision, chosen.ways) == (DEFAULT_ROUTE, (DEFAULT_ROUTE,))
    assert "the default for a question of class exact" in chosen.why


def test_below_the_bar_a_question_is_plain(tmp_path):
    found = classify_features(replace(SHIPPED, least=1.0), given_features("Compare A and B"))
    assert found.decision == "plain"
    assert "below 1 a question counts as plain" in found.why


def test_what_needs_no_search_is_answered_only_where_answers_are_asked_for(tmp_path):
    classifier = always("no_retrieval", NO_SEARCH)
    more = {"history": TALK, "classifier": classifier}
    silent, llm = ask(tmp_path / "a", "Thanks a lot!", **more)
    assert (silent.answer, silent.hits, llm.requests) == (None, (), [])
    replies = {"direct": "You are welcome."}
    replied, llm = ask(tmp_path / "b", "Thanks a lot!", replies, answers="all", **more)
    assert (replied.answer, replied.hits, replied.citations) == ("You are welcome.", (), ())
    copied, quiet = ask(tmp_path / "c", "Thanks a lot!", answers="all", by="extract", **more)
    assert (copied.abstained, copied.citations, quiet.requests) == (True, (), [])
    assert "user: My box arrived crushed." in llm.requests[0].messages[-1].content


@pytest.mark.parametrize("text", ["x" * 10_000, "\x00\x1b[31m \u202e", "?!", "' OR 1=1 --", "{question}"])
def test_hostile_questions_have_a_route(tmp_path, text):
    result, _ = ask(tmp_path, text)
    assert (result.status, result.error) == ("ok", None)
    assert of(result, "choose the route").decision in routes()


def test_the_choice_can_be_forced_both_ways(tmp_path):
    engine = FakeEngine(tmp_path)
    write_trained(always("complex", "dense"), trained(engine.settings.home))
    query = Query("How long are vouchers valid?")

    def run(forced, name="adaptive"):
        [result] = engine.ask(Request(query, "tiny", (name,), forced=forced)).results
        return result

    assert run({}).hits == run({}, "dense").hits
    turned = run({"choose the route": DEFAULT_ROUTE})
    assert turned.hits == run({}, "rerank").hits
    assert span(turned, "choose the route").attributes["forced"] == "dense"
    dispatch = Dispatch("dense", "", ("dense", "bm25", DEFAULT_ROUTE))
    ways = [other_way("choose the route", name) for name in dispatch.ways]
    assert ways == [(True, DEFAULT_ROUTE), (True, DEFAULT_ROUTE), None]
    assert "choose the route" in own("adaptive")
    with pytest.raises(BadInput, match="expected one of dense, bm25, rerank"):
        dispatch.turned("hyde")


def test_the_routes_shipped_are_there():
    assert set(SHIPPED.routes) <= set(SHIPPED.classes)
    for some in SHIPPED.routes.values():
        assert all(one.route == NO_SEARCH or one.route in routes() for one in some)
        assert all(one.low > 0 for one in some)
