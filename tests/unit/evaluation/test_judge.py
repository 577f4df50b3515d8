"""A judge of relevance: its agreement with people, when it holds, and the metrics it gives as ranges."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from core.analysis.metrics import by_question
from core.domain.background_job import jobs
from core.domain.errors import BadInput, ModelTimedOut, Unavailable
from core.domain.types import Query, Turn
from core.evaluation import text
from core.evaluation.judge import filling, measure, source
from core.evaluation.judge import record as records
from core.evaluation.judge.measure import choose, graded, part
from core.evaluation.judge.source import Labels
from core.evaluation.outcome import Outcome
from core.evaluation.statistics import kappa
from tests.fakes import FakeEngine, ScriptedLLM
from tests.parcels import COUNT, QUESTIONS, TEXTS, blind, labelled, passages, people, right


@pytest.fixture
def engine(tmp_path):
    yield FakeEngine(tmp_path, llm=ScriptedLLM({"judge": right}), texts=TEXTS)
    jobs.clear()


def labels(engine, policy="Only what names the day.", qrels=None, of="own labels"):
    corpus = engine.corpus("tiny")
    return Labels(of, "parcels", labelled(people(corpus) if qrels is None else qrels), corpus, policy)


def run(engine, one, count=60, seed=1):
    job = measure.begin(engine, one, count=count, seed=seed)
    job.wait(60)
    return job


GRADED = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40
)


@settings(max_examples=40, deadline=None)
@given(GRADED, st.sampled_from([None, "quadratic"]))
def test_kappa_is_that_of_scikit_learn(pairs, weights):
    _, first, second = zip(*pairs, strict=True)
    found = kappa(pairs, (0, 1, 2, 3), weights).value
    if len({*first, *second}) == 1:
        assert found is None
    else:
        wanted = cohen_kappa_score(first, second, labels=(0, 1, 2, 3), weights=weights)
        assert found == pytest.approx(wanted, abs=1e-9)


@pytest.mark.slow
def test_the_interval_is_that_of_drawing_whole_questions_by_brute_force():
    weights = "quadratic"
    draw = np.random.default_rng(3)
    pairs = []
    for question in range(25):
        easy = draw.random() < 0.5  # passages of one question fail together
        for _ in range(4):
            first = int(draw.integers(0, 4))
            pairs.append((str(question), first, first if easy else int(draw.integers(0, 4))))
    found = kappa(pairs, range(4), weights)
    by = {q: [one for one in pairs if one[0] == q] for q in dict.fromkeys(one[0] for one in pairs)}
    drawn = []
    for _ in range(1000):
        _, firsts, seconds = zip(*(one for q in draw.choice(list(by), len(by)) for one in by[q]), strict=True)
        drawn.append(cohen_kappa_score(firsts, seconds, weights=weights, labels=range(4)))
    assert found.ci95 == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.03)
    alone = kappa([(str(n), a, b) for n, (_, a, b) in enumerate(pairs)], range(4), weights)
    wide, narrow = (ends[1] - ends[0] for ends in (found.ci95, alone.ci95))
    assert wide > narrow, "passages of one question are not independent"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 3)), min_size=2, max_size=30),
    st.sampled_from([1, 2, 3]),
)
def test_bounds_never_fall_and_that_of_relevance_is_the_best_there_is(cases, relevant_from):
    scores, grades = [score / 100 for score, _ in cases], [grade for _, grade in cases]
    relevant = [grade >= relevant_from for grade in grades]
    if len(set(relevant)) < 2:
        with pytest.raises(BadInput, match="needs both kinds"):
            choose(scores, grades, relevant_from, 3)
        return
    bounds = choose(scores, grades, relevant_from, 3)
    reached = [np.inf if bound is None else bound for bound in bounds]
    assert reached == sorted(reached)
    given_ = [graded(score, bounds) for score in sorted(scores)]
    assert given_ == sorted(given_)

    def agreement(cut):
        said = [score >= cut for score in scores]
        return cohen_kappa_score(relevant, said)

    best = max(agreement(cut) for cut in [*scores, 1.01])
    assert agreement(reached[relevant_from - 1]) == pytest.approx(best)
    for grade in range(1, 4):
        assert (graded(1.0, bounds) >= grade) is (reached[grade - 1] <= 1)


def never(question, count):
    raise AssertionError("nothing is searched where people graded both kinds")


@pytest.mark.parametrize("seed", range(5))
def test_halves_share_no_question_and_hold_what_people_graded_alone(engine, seed):
    corpus = engine.corpus("tiny")
    found = part(labelled(people(corpus)), corpus, never, 50, seed)
    halves = [{pair.question.id for pair in half} for half in (found.chosen, found.held_out)]
    assert not halves[0] & halves[1]
    assert abs(len(halves[0]) - len(halves[1])) <= 1
    assert len(found.chosen) + len(found.held_out) == 50
    for pair in (*found.chosen, *found.held_out):
        assert people(corpus)[pair.question.id][pair.passage.id] == pair.grade
    assert found == part(labelled(people(corpus)), corpus, never, 50, seed)
    assert found != part(labelled(people(corpus)), corpus, never, 50, seed + 100)


def test_what_nobody_judged_is_not_taken_as_not_relevant(engine):
    corpus = engine.corpus("tiny")
    relevant = {q: {p: g for p, g in some.items() if g == 3} for q, some in people(corpus).items()}
    with pytest.raises(BadInput, match="nobody graded a passage as not relevant"):
        part(labelled(relevant), corpus, never, 50, 1)
    few = {q: some for q, some in people(corpus).items() if q < "q05"}
    with pytest.raises(BadInput, match="5 questions have graded passages"):
        part(labelled(few), corpus, never, 50, 1)
    without = tuple(replace(q, answerable=False) for q in QUESTIONS[20:])
    kept = {q: some for q, some in relevant.items() if q < "q20"}
    asked = []

    def search(question, count):
        asked.append(question.id)
        return list(corpus.by_ids([passages(corpus)[0]]).values())

    found = part(labelled(kept, questions=(*QUESTIONS[:20], *without)), corpus, search, 30, 1)
    assert found.negatives == "unanswerable questions"
    whole = (*found.chosen, *found.held_out)
    assert {pair.question.id >= "q20" for pair in whole if pair.grade == 0} == {True}
    assert sum(pair.grade == 0 for pair in whole) == len(whole) / 2
    assert set(asked) <= {q.id for q in without}


def test_a_judge_that_is_right_is_shown_and_one_that_is_blind_is_not(engine):
    job = run(engine, labels(engine))
    assert job.complete, job.error
    good = job.record
    assert (good.binary.value, good.shown, good.auc) == (1.0, True, 1.0)
    assert good.chosen.pairs + good.held_out.pairs == 60
    assert not set(good.chosen.questions) & set(good.held_out.questions)
    assert sum(map(sum, good.confusion)) == good.held_out.pairs
    assert (good.two_by_two[0][1], good.two_by_two[1][0]) == (0, 0)
    assert "may grade unjudged passages" in records.use(good)
    engine.fake_llm.replies = {"judge": blind}
    job = run(engine, labels(engine))
    bad = job.record
    assert bad.binary.ci95[0] < 0.4
    assert not bad.shown
    assert "The interval contains 0" in records.leaves_open(bad)
    assert "may not grade unjudged passages: the lower end" in records.use(bad)


def test_figures_are_of_the_held_out_half_alone(engine):
    one = labels(engine)
    parted = part(one.labelled, one.corpus, never, 60, 1)
    draw = np.random.default_rng(0)
    score = {id(pair): float(draw.random()) for pair in (*parted.chosen, *parted.held_out)}
    chosen, held = ([(pair, score[id(pair)]) for pair in half] for half in (parted.chosen, parted.held_out))
    found = measure.measured(one, "m", 1, parted, chosen, held)
    truth, said = [p.grade for p, _ in held], [graded(s, found.bounds) for _, s in held]
    assert found.bounds == choose([s for _, s in chosen], [p.grade for p, _ in chosen], 2, 3)
    assert found.binary.value == pytest.approx(
        cohen_kappa_score([t >= 2 for t in truth], [s >= 2 for s in said])
    )
    assert found.quadratic.value == pytest.approx(
        cohen_kappa_score(truth, said, labels=range(4), weights="quadratic")
    )
    assert found.auc == pytest.approx(roc_auc_score([t >= 2 for t in truth], [s for _, s in held]))
    for i in range(4):
        for j in range(4):
            assert found.confusion[i][j] == sum(t == i and s == j for t, s in zip(truth, said, strict=True))
    (no, yes), (missed, hit) = found.two_by_two
    assert no + yes == sum(t < 2 for t in truth)
    assert (missed + hit, yes + hit) == (sum(t >= 2 for t in truth), sum(s >= 2 for s in said))


def test_the_guidelines_and_the_conversation_stand_in_the_prompt(engine):
    told = replace(
        QUESTIONS[3], query=Query("And its day? parcel number 3 sent", (Turn("user", "Hello {you}"),))
    )
    one = labels(engine, "Only what names {the} day.")
    one = replace(
        one, labelled=labelled(one.labelled.qrels, questions=(*QUESTIONS[:3], told, *QUESTIONS[4:]))
    )
    assert run(engine, one, count=120).complete
    asked = [request.messages[-1].content for request in engine.fake_llm.requests]
    assert all("Labelling guidelines:\nOnly what names {the} day." in text for text in asked)
    assert all("relevant from grade 2 on" in text for text in asked)
    assert any("user: Hello {you}" in text for text in asked)


def fill(engine, some, found, made, cancel=None):
    plan = filling.JudgePlan(made.policy, made.relevant_from, made)
    wanted = filling.unjudged(some, found)
    return filling.fill(engine, engine.corpus("tiny"), wanted, plan, cancel or measure.threading.Event())


def test_a_record_holds_for_its_model_prompt_and_guidelines_alone(engine, monkeypatch):
    one = labels(engine)
    model, home = engine.fake_llm.model, engine.settings.home
    with pytest.raises(BadInput, match=r"never measured; run: .*labels judge 'parcels'"):
        filling.allowed(engine, one.of, one.name, one.policy)
    made = run(engine, one).record
    assert records.read(home, one.of, one.name, model) == made
    assert filling.allowed(engine, one.of, one.name, one.policy) == made
    with pytest.raises(BadInput, match="not calibrated for these guidelines: the guidelines have changed"):
        filling.allowed(engine, one.of, one.name, one.policy + " Or not.")
    assert records.read(home, "label set", one.name, model) is None
    assert "model other, not" in records.out_of_date(replace(made, model="other"), model, one.policy)
    assert "prompt judge/0, not judge/1" in records.out_of_date(
        replace(made, prompt="judge/0"), model, one.policy
    )
    file = records.path(home, one.of, one.name, model)
    document = json.loads(file.read_text())
    assert document["policy_hash"] == records.policy_hash(one.policy)
    other = replace(made, negatives="unanswerable questions")
    assert (made.shown, other.shown) == (True, False)
    assert "may tell by the question alone" in records.leaves_open(other)
    assert "was not held against passages that people graded as not relevant" in records.use(other)
    file.write_text(json.dumps({**document, "binary": 3}))
    with pytest.raises(Unavailable, match=r"is damaged .*measure it again"):
        records.read(home, one.of, one.name, model)


def test_a_model_that_fails_again_and_again_ends_it_and_one_that_says_neither_is_counted(engine):
    engine.fake_llm.replies = {"judge": ModelTimedOut("no answer")}
    job = run(engine, labels(engine))
    assert "3 replies in a row failed" in job.error
    assert job.record is None
    count = iter(range(1000))
    engine.fake_llm.replies = {
        "judge": lambda request: {"Maybe": 1.0} if next(count) % 4 == 0 else right(request)
    }
    job = run(engine, labels(engine))
    assert job.record.unscored == job.unscored == 15
    assert "neither Yes nor No" in job.why
    assert job.record.chosen.pairs + job.record.held_out.pairs == 45
    engine.fake_llm.replies = {"judge": {"Maybe": 1.0}}
    job = run(engine, labels(engine))
    assert "0 of 0 passages of one half are relevant" in job.error
    engine.fake_llm.missing = "no model is set"
    with pytest.raises(Unavailable, match="the model cannot judge: no model is set"):
        run(engine, labels(engine))


def test_one_that_is_stopped_leaves_no_record(engine):
    def stop(request):
        measure.under_way(engine, "own labels", "parcels").cancel()
        return right(request)

    engine.fake_llm.replies = {"judge": stop}
    job = run(engine, labels(engine))
    assert (job.cancelled, job.record, job.error) == (True, None, None)
    assert records.read(engine.settings.home, "own labels", "parcels", engine.fake_llm.model) is None


def test_the_labels_of_a_corpus_bring_their_guidelines(tmp_path):
    assert "is superseded, or contradicts" in source.own_policy("support", None, 2)
    assert source.own_policy("mine", tmp_path, 1) == source.BINARY
    assert source.own_policy("mine", tmp_path, 2) == source.GRADED
    (tmp_path / "guidelines.txt").write_text(" What I told them.\n")
    assert source.own_policy("mine", tmp_path, 2) == "What I told them."
    (tmp_path / "guidelines.txt").write_text("\n")
    with pytest.raises(BadInput, match="0 characters"):
        source.own_policy("mine", tmp_path, 2)


def outcomes(corpus, ranked):
    """What each route found for each question, by the passages' numbers."""
    ids = passages(corpus)
    return {
        question: {
            route: Outcome("ok", 1.0, tuple((ids[n], 1 / at) for at, n in enumerate(found, 1)))
            for route, found in by.items()
        }
        for question, by in ranked.items()
    }


def test_both_ends_are_the_metrics_over_the_labels_of_people_and_of_both(engine):
    corpus, one = engine.corpus("tiny"), labels(engine)
    made = run(engine, one).record
    ids = passages(corpus)
    qrels = {q: {p: g for p, g in some.items() if p != ids[int(q[1:])]} for q, some in people(corpus).items()}
    even = {f"q{n:02}": n for n in range(0, COUNT, 2)}
    for q, n in even.items():  # people know another passage only, so that what answers is unjudged
        qrels[q][ids[(n + 1) % COUNT]] = 2
    some = labelled(qrels)
    ranked = {
        f"q{n:02}": {"a": [(n + 1) % COUNT, (n + 5) % COUNT], "b": [n, (n + 1) % COUNT]} for n in range(COUNT)
    }
    found, before = outcomes(corpus, ranked), json.dumps(qrels)
    filled = fill(engine, some, found, made)
    assert json.dumps(qrels) == before, "people's labels stay as they are"
    assert set(filled.grades) == {q for q in qrels if some.labelled(q)} == {*even}
    assert {p for q in even for p, g in filled.grades[q].items() if g >= 2} == {ids[n] for n in even.values()}
    block = filling.block(some, found, ["a", "b"], made, filled)
    whole = {q: {**filled.grades[q], **qrels[q]} for q in even}
    for route in ("a", "b"):
        rankings = {q: found[q][route].hits for q in even}
        for end, of in (("unjudged_irrelevant", {q: qrels[q] for q in even}), ("as_judged", whole)):
            values = by_question(of, rankings, relevant_from=2)
            for metric in filling.RANGED:
                mean = float(np.mean([value[metric] for value in values.values()]))
                assert block["routes"][route][metric][end] == pytest.approx(mean)
    for metric in ("mrr@10", "precision@5", "recall@10"):  # 1 and .5 become equal: nobody is overtaken
        assert block["orders"][metric]["swapped"] == []
    assert (block["judged"], block["relevant"]) == (filled.judged, 20)
    assert text.ends_of(block, "a", "recall@10") == (1.0, 0.5), "missed once it is known to be relevant"
    assert text.ends_of(block, "a", "map") is None
    assert text.ends_of(None, "a", "ndcg@10") is None
    assert "kappa with people is 1.00 [1.00, 1.00]" in text.judge_said(block)


def test_a_change_of_the_order_is_said(engine):
    corpus = engine.corpus("tiny")
    made = run(engine, labels(engine)).record
    ids = passages(corpus)
    some = labelled({"q00": {ids[1]: 2}, "q02": {ids[3]: 2}})
    found = outcomes(corpus, {f"q{n:02}": {"a": [9, n + 1], "b": [n, 8, n + 1]} for n in (0, 2)})
    filled = fill(engine, some, found, made)
    block = filling.block(some, found, ["a", "b"], made, filled)
    assert block["orders"]["mrr@10"]["swapped"] == [["a", "b"]]
    said = text.order_said(block, "mrr@10", str.upper)
    assert said == "The order of the routes by MRR@10 changes within the ranges: A and B swap places."
    assert "is the same at both ends" in text.order_said(block, "hit@10")
    assert "looks deeper than the 10 passages" in text.order_said(block, "map")
    assert len(text.judge_lines(block, "mrr@10")) == 4
    cancel = measure.threading.Event()
    cancel.set()
    assert fill(engine, some, found, made, cancel) is None, "a stopped filling gives nothing"


def test_what_gets_no_grade_counts_as_not_relevant_and_is_told(engine):
    corpus = engine.corpus("tiny")
    made = run(engine, labels(engine)).record
    ids = passages(corpus)
    some = labelled({"q00": {ids[1]: 2}})
    found = outcomes(corpus, {"q00": {"a": [0, 1, 9]}})
    strange = replace(found["q00"]["a"], hits=(*found["q00"]["a"].hits, ("gone", 0.1)))
    failed = Outcome("error", 1.0, ((ids[5], 1.0),))
    engine.fake_llm.replies = {"judge": {"Maybe": 1.0}}
    filled = fill(engine, some, {"q00": {"a": strange, "b": failed}}, made)
    assert (filled.judged, filled.unscored, filled.unknown) == (0, 2, 1)
    block = filling.block(some, {"q00": {"a": strange, "b": failed}}, ["a", "b"], made, filled)
    low, high = text.ends_of(block, "a", "ndcg@10")
    assert low == high
    assert "b" not in block["routes"]
    assert "3 got no grade" in text.judge_said(block)
