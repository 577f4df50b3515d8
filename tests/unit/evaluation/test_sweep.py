"""Sweeps: what is done again is what a run with the parameter finds, and a choice is shown to hold, or
not.
"""

import json
import random
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.analysis.metrics import by_question
from core.cli import main
from core.domain import settings as settings_module
from core.domain.errors import BadInput
from core.domain.settings import Settings
from core.domain.types import Query, Turn
from core.engine import engine as engine_module
from core.evaluation import experiment_store, runner, statistics
from core.evaluation.calibration import of_dev
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.experiment import Prepared, perform
from core.evaluation.finding import sentence
from core.evaluation.runner import Plan
from core.evaluation.spec import Spec
from core.evaluation.tuning import (
    fusion_weights,
    sweep,
    sweep_grid,
    sweep_split,
    sweep_subject,
)
from core.evaluation.tuning.sweep import counted, in_words
from core.routes.declare import Parameter
from core.routes.registry import routes
from tests.fakes import FakeEngine, ScriptedLLM
from ui.charts.sweep import describe_sweep, sweep_curve, sweep_map

pytestmark = pytest.mark.slow

WORDS = ("parcel", "fragile", "refund", "customs", "express", "box", "photo", "claim", "vase", "return")
EXAMPLES = max(1, settings.default.max_examples // 8)  # each runs a route over all questions
EARLIER = (Turn("user", "My parcel with the vase arrived crushed."), Turn("assistant", "Take a photo."))


def texts(count=60):
    draw = random.Random(7)
    return {f"d{n % 9}:{n}-{n + 1}": " ".join(draw.choices(WORDS, k=12)) for n in range(count)}


def labelled(count=8):
    """Questions of few words, some with turns before them; the labels are drawn."""
    draw, ids = random.Random(3), sorted(texts())
    questions, qrels = [], {}
    for n in range(count):
        text = " ".join(draw.choices(WORDS, k=4))
        split = "dev" if n % 2 else "test"
        questions.append(Question(f"q{n}", Query(text, EARLIER if n % 3 == 0 else ()), split=split))
        if n != 5:
            qrels[f"q{n}"] = {id: draw.choice((1, 2, 3)) for id in draw.sample(ids, 6)}
    return LabelledSet("tiny", tuple(questions), qrels, 2)


NO_MODEL = ("hybrid_rrf", "hybrid_linear", "mmr", "parent", "contextual_headings", "memory", "rerank")
ASKING = ("rag_fusion", "step_back", "rewrite", "crag", "self_reflective", "critique_loop", "confidence")
SET = {"parent": {"alpha": 0.5}, "memory": {"expand": False, "enough": 1.01}, "crag": {"evaluator": "llm"}}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    replies = {
        "scale": {"2": 1.0},
        "relevant": "0.6",
        "supported": {"fully": 1.0},
        "useful": {"4": 1.0},
        "grade": "0.6",
        "variants": "claim a box\nexpress label\nphoto of the vase",
        "rewrite": "refund for a fragile vase",
        "look-up": "0.3",
        "confidence": "70",
    }
    llm = ScriptedLLM(replies)
    return FakeEngine(tmp_path_factory.mktemp("home"), llm=llm, texts=texts(), web={"w:0-9": "the web"})


def evaluated(engine, folder, names, parameters, found=None):
    found = found or labelled()
    spec = Spec("tiny", tuple(names), parameters, split="all")
    ready = Prepared(spec, found, Plan("tiny", tuple(names), parameters), names[0], (), None)
    perform(engine, ready, out=folder)
    return experiment_store.opened(folder)


@pytest.fixture(scope="module")
def evaluation(engine, tmp_path_factory):
    names = NO_MODEL + ASKING
    return evaluated(engine, tmp_path_factory.mktemp("kept") / "tiny", names, SET)


@pytest.fixture(scope="module")
def again(evaluation):
    """The rankings of a route at other values of a parameter, done again; read and measured once."""
    return cache(
        lambda route, parameter: sweep_subject.Rankings(sweep_subject.subject(evaluation, route, [parameter]))
    )


def fresh(engine, evaluation, route, parameters):
    """The metrics of new runs by question."""
    given_ = {**SET.get(route, {}), **parameters}
    found, whole = runner.run(engine, evaluation.labelled, Plan("tiny", (route,), {route: given_}))
    assert whole
    hits = {q: by[route].hits for q, by in found.items() if by[route].status == "ok"}
    return by_question(evaluation.labelled.qrels, hits, relevant_from=2)


TUNED = [
    (name, parameter)
    for name in NO_MODEL + ASKING
    for parameter in routes()[name].parameters
    if parameter.tunes and parameter.tunes not in ("by", "floor")
]

FUSED = {
    "hybrid_rrf": ("k", "dense_weight", "bm25_weight"),
    "hybrid_linear": ("alpha", "norm"),
    "mmr": ("lam", "pool", "k"),
    "parent": ("alpha",),
    "contextual_headings": ("alpha",),
    "memory": ("memory_weight",),
    "rag_fusion": ("k",),
    "step_back": ("k", "weight"),
    "rewrite": ("weight",),
}
DECIDED = [("memory", "enough"), ("crag", "low"), ("crag", "high")]
HOW = {(route, name): "fusion" for route, names in FUSED.items() for name in names}
HOW |= dict.fromkeys(DECIDED, "decisions")


@pytest.mark.slow
@pytest.mark.parametrize(("route", "parameter"), TUNED, ids=[f"{r}.{k.name}" for r, k in TUNED])
def test_what_is_done_again_is_what_a_run_finds(engine, evaluation, again, route, parameter):
    rankings = again(route, parameter.name)
    subject = rankings.subject
    assert subject.how == HOW.get((route, parameter.name), "run")

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data):
        value = data.draw(st.sampled_from(sweep_grid.default(parameter, subject.now[0])))
        if parameter.type is float and data.draw(st.booleans()):
            value = data.draw(st.floats(parameter.low, parameter.high))
        anew = fresh(engine, evaluation, route, {parameter.name: value})
        for metric in sweep.METRICS:
            told = rankings.stored((value,), metric)
            assert told == {q: anew[q][metric] for q in told if q in anew}
            assert told.keys() <= anew.keys()

    check()
    assert set(rankings.stored(subject.now, "map")) == set(subject.results)
    if subject.how != "run":  # it tells something about another value than the one in use
        others = [
            (value,) for value in sweep_grid.default(parameter, subject.now[0]) if value != subject.now[0]
        ]
        assert any(rankings.stored(point, "map") for point in others)


@pytest.mark.slow
def test_two_parameters_of_one_step_are_done_again_together(engine, evaluation):
    subject = sweep_subject.subject(evaluation, "hybrid_rrf", ["k", "dense_weight"])
    rankings = sweep_subject.Rankings(subject)
    for point in ((1, 0.3), (1000, 4.0), (7, 1.0)):
        anew = fresh(engine, evaluation, "hybrid_rrf", {"k": point[0], "dense_weight": point[1]})
        again = rankings.stored(point, "ndcg@10")
        assert again == {q: anew[q]["ndcg@10"] for q in subject.results}


def test_one_route_is_read_as_the_whole_run_is(evaluation):
    for route in ("memory", "mmr", "crag", "rag_fusion"):
        found = sweep_subject.results(evaluation, route)
        assert list(found) == list(evaluation.questions)
        for question, result in found.items():
            whole = next(one for one in evaluation.run(question).results if one.route == route)
            assert result.spans == whole.spans
            assert [(h.passage.id, h.score) for h in result.hits] == [
                (h.passage.id, h.score) for h in whole.hits
            ]
    (evaluation.folder / "elsewhere").mkdir(exist_ok=True)
    with pytest.raises(BadInput, match=r"has no stored runs \(runs.sqlite is missing\)"):
        sweep_subject.results(replace(evaluation, folder=evaluation.folder / "elsewhere"), "mmr")


def test_the_value_in_use_has_the_figures_of_the_evaluation(evaluation):
    for route in ("hybrid_rrf", "mmr", "rag_fusion"):
        subject = sweep_subject.subject(evaluation, route, [routes()[route].parameters[0].name])
        rankings = sweep_subject.Rankings(subject)
        for metric in sweep.METRICS:
            values = rankings.stored(subject.now, metric)
            assert values == {q: row[metric] for q, row in evaluation.values[route].items()}
            mean = evaluation.figures["routes"][route][metric]
            assert sum(values.values()) / len(values) == pytest.approx(mean)


def parameter(kind=float, low=0.0, high=1.0, choices=(), default=0.5):
    return Parameter(low, high, name="it", type=kind, default=default, choices=choices)


@pytest.mark.parametrize(
    ("spec", "now", "values"),
    [
        (parameter(), 0.5, (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)),
        (parameter(), 0.25, (0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)),
        (parameter(bool), True, (False, True)),
        (parameter(str, choices=("a", "b", "c")), "b", ("a", "b", "c")),
        (parameter(int, 1, 8), 3, (1, 2, 3, 4, 5, 6, 7, 8)),
        (parameter(int, 1, 1000), 60, (1, 3, 7, 20, 50, 60, 140, 400, 1000)),
        (parameter(float, 0, 10), 1.0, (0, 0.1, 0.17, 0.3, 0.5, 0.8, 1, 1.3, 2, 3.6, 6, 10)),
        (parameter(float, -1, 1), 0.25, (-1, -0.8, -0.6, -0.4, -0.2, 0, 0.2, 0.25, 0.4, 0.6, 0.8, 1)),
    ],
)
def test_the_usual_grid_follows_the_range(spec, now, values):
    assert sweep_grid.default(spec, now) == values


def test_the_usual_grid_of_every_parameter_is_allowed_and_short():
    for route in routes().values():
        for one in route.parameters:
            for paired in (False, True):
                grid = sweep_grid.default(one, one.default, paired=paired)
                assert one.default in grid
                if one.type is str and not one.choices:
                    continue
                assert len(grid) <= (6 if paired and not one.choices else 12)
                assert sweep_grid.read(sweep_grid.written(grid), one, route.name) == grid


def test_a_grid_is_read_as_written():
    assert sweep_grid.read("0.2, 0.1,0.2", parameter(), "r") == (0.1, 0.2)
    assert sweep_grid.read("0..1 step 0.25", parameter(), "r") == (0, 0.25, 0.5, 0.75, 1)
    assert sweep_grid.read("0 .. 0.5 step 0.2, 1", parameter(), "r") == (0, 0.2, 0.4, 1)
    assert sweep_grid.read("1..4", parameter(int, 1, 8), "r") == (1, 2, 3, 4)
    assert sweep_grid.read("b,a", parameter(str, choices=("a", "b")), "r") == ("b", "a")
    for text, said in (
        ("", "is empty"),
        ("0..2", "'2' is not allowed"),
        ("1..0", "low <= high"),
        ("0..1 step x", "s > 0"),
        ("0..1 step -1", "s > 0"),
        ("0..1 step 0.001", "at most 41"),
        ("nan", "'nan' is not allowed"),
        (",".join(f"{n / 100}" for n in range(60)), "more than 41 values"),
        ("0..1 step nan", "s > 0"),
    ):
        with pytest.raises(BadInput, match=said):
            sweep_grid.read(text, parameter(), "r")
    with pytest.raises(BadInput, match="8 x 7 values are 56 pairs"):
        sweep_grid.cells(tuple(range(8)), tuple(range(7)))


class Given:
    """Metrics as they are given, in place of rankings."""

    def __init__(self, values, now):
        questions = tuple(Question(q, Query(q), split=q[:-2]) for q in values[now])
        labelled_ = LabelledSet("given", questions, {})
        evaluation = SimpleNamespace(labelled=labelled_, name="given")
        known = dict.fromkeys(values[now])
        ran = {"it": now[0]}
        self.subject = sweep_subject.Subject(evaluation, "route", (parameter(),), ran, known, ("q9",), 3)
        self._values = values

    def stored(self, point, _metric):
        return self._values[point]


def given_values(dev, test):
    """Two values of a parameter: 0 in use, 1 with these differences."""
    names = [f"dev{n:02}" for n in range(len(dev))] + [f"test{n:02}" for n in range(len(test))]
    changed = {name: 0.5 + d for name, d in zip(names, (*dev, *test), strict=True)}
    return Given({(0,): dict.fromkeys(names, 0.5), (1,): changed}, (0,))


def test_a_choice_is_the_best_only_where_it_holds():
    up, noise = [0.2, 0.4] * 10, [0.3, -0.3] * 10
    holds = sweep.curve(given_values(up, up), [(0,), (1,)])
    assert (holds.best.point, holds.best.verdict, holds.holds) == ((1,), "better", True)
    assert holds.best.effect.estimate == pytest.approx(0.3)
    assert holds.held.before == 0.5
    assert in_words(holds)[-1] == "it = 1 is the best value tried and holds on held-out questions: use it."
    fails = sweep.curve(given_values(up, noise), [(0,), (1,)])
    assert (fails.best.verdict, fails.holds) == ("better", False)
    assert (
        in_words(fails)[-1]
        == "It is not shown to hold on held-out questions: keep it = 0, or label more questions."
    )
    assert (fails.held.verdict, fails.held.n) == ("no difference shown", 20)
    assert in_words(fails)[1] == sentence(fails.held)
    chance = sweep.curve(given_values([*noise, 0.1], up), [(0,), (1,)])
    assert (chance.best.point, chance.holds) == ((1,), False)
    assert in_words(chance)[0].endswith(sentence(chance.best.effect))
    assert chance.best.verdict == "no difference shown"
    assert in_words(chance)[-1].endswith("test it = 1 alone on more questions.")
    down = sweep.curve(given_values([-0.1] * 20, up), [(0,), (1,)])
    assert (down.best.point, down.held) == ((0,), None)
    assert in_words(down)[-1] == "Keep it = 0."
    assert "1 failed in the evaluation" in counted(down)
    assert "3 have no relevant passage" in counted(down)


def test_p_values_are_adjusted_for_the_whole_grid():
    draw = random.Random(5)
    names = [f"dev{n:02}" for n in range(30)] + [f"test{n:02}" for n in range(30)]
    values = {(n,): {q: draw.random() for q in names} for n in range(6)}
    found = sweep.curve(Given(values, (2,)), list(values))
    others = [point for point in values if point != (2,)]
    alone = statistics.compare({p: [values[p][q] - values[2,][q] for q in names[:30]] for p in others})
    assert {one.point: one.effect.p for one in found.tried if one.point != (2,)} == {
        point: one.p_holm for point, one in alone.items()
    }
    assert found.now.effect.p is None
    for one in found.tried:
        mean = sum(values[one.point][q] for q in names[:30]) / 30
        assert one.effect.mean == pytest.approx(mean)


def test_questions_are_divided_by_their_split_or_in_halves():
    def made(splits):
        questions = tuple(Question(f"q{n}", Query("?"), split=one) for n, one in enumerate(splits))
        return LabelledSet("s", questions, {}), [q.id for q in questions]

    both = sweep_split.split(*made(["dev", "test", "dev", "train"]))
    assert (both.chosen_on, both.held_out) == (("q0", "q2"), ("q1",))
    assert "1 of other splits are excluded" in both.said
    halves = sweep_split.split(*made([None] * 21))
    assert (len(halves.chosen_on), len(halves.held_out)) == (10, 11)
    assert not set(halves.chosen_on) & set(halves.held_out)
    assert halves.made
    # drawn, not cut: files often have their questions in an order that means something
    assert list(halves.chosen_on) != [f"q{n}" for n in range(10)]
    labelled, ids = made([None] * 21)
    turned = sweep_split.split(labelled, ids[::-1])
    assert set(turned.chosen_on) == set(halves.chosen_on), "whatever the order of the file"
    assert sweep_split.split(labelled) == halves
    few = sweep_split.split(*made([None] * 5))
    assert (len(few.chosen_on), few.held_out) == (5, ())
    labelled, ids = made(["dev", "test", "dev", "train"])
    assert sweep_split.names(labelled, ids) == ["dev", "test", "train", "all"]
    train = sweep_split.split(labelled, ids, "train")
    assert (train.chosen_on, train.held_out) == (("q3",), ("q0", "q1", "q2"))
    assert sweep_split.split(labelled, ids, "all").held_out == ()
    with pytest.raises(BadInput, match="there are: dev, test, train, all"):
        sweep_split.split(labelled, ids, "eval")


@pytest.mark.parametrize("others", [["train"] * 3, [None] * 2, ["dev"], ["dev", "train"]])
def test_nothing_is_chosen_on_test_questions_unless_that_is_said(others):
    questions = tuple(
        Question(f"q{n}", Query("?"), split=one) for n, one in enumerate([*others, *["test"] * 30])
    )
    labelled = LabelledSet("s", questions, {q.id: {"p": 3} for q in questions})
    test = {q.id for q in questions if q.split == "test"}
    for parts in (sweep_split.split(labelled), fusion_weights.divided(labelled)[1]):
        assert not test & set(parts.chosen_on)
        assert parts.chosen_on
        assert test <= set(parts.held_out)
    assert set(fusion_weights.divided(labelled, "test")[1].chosen_on) == test
    alone = replace(labelled, questions=questions[len(others) :])
    for choose in (sweep_split.split, fusion_weights.divided, of_dev):
        with pytest.raises(BadInput, match="split test"):
            choose(alone)
    halves = sweep_split.split(alone, on="test")
    assert len(halves.chosen_on) == len(halves.held_out) == 15


def test_points_that_take_a_run_are_run_and_count(engine, evaluation):
    subject = sweep_subject.subject(evaluation, "rerank", ["candidates"])
    rankings, grid = sweep_subject.Rankings(subject), [(5,), (20,)]
    todo = sweep.waiting(rankings, grid, "ndcg@10", {})
    assert {point: len(ids) for point, ids in todo.items()} == {(5,): 7, (20,): 7}
    before = sweep.curve(rankings, grid)
    assert [one.by for one in before.tried] == ["waits for a run"] * 2 + ["in use"]
    assert before.waiting
    assert in_words(before) == [in_words(before)[0]]
    price = sweep.cost(subject, todo)
    assert (price.points, price.questions, price.calls, price.asks) == (2, 14, 0, False)
    running = sweep.running(engine, subject)
    running.ask(todo)
    assert running.wait(30)
    assert (running.finished, running.total, running.error) == (14, 14, None)
    assert running.left is None
    assert sweep.waiting(rankings, grid, "ndcg@10", running.rankings) == {}
    found = sweep.curve(rankings, grid, "ndcg@10", running.rankings)
    anew = fresh(engine, evaluation, "rerank", {"candidates": 5})
    first = found.tried[0]
    assert (first.by, first.waiting, first.failed) == ("run", 0, 0)
    chosen = found.split.chosen_on
    assert first.effect.mean == pytest.approx(sum(anew[q]["ndcg@10"] for q in chosen) / len(chosen))
    assert sweep.running(engine, subject) is running


def test_what_asks_a_model_is_priced_and_what_cannot_be_tried_is_said(evaluation):
    subject = sweep_subject.subject(evaluation, "rag_fusion", ["n"])
    todo = sweep.waiting(sweep_subject.Rankings(subject), [(1,), (3,)], "map", {})
    assert set(sweep.asking(subject, todo)) == {(1,)}
    assert sweep.cost(subject, todo).calls == 7
    which = sweep_subject.subject(evaluation, "rerank", ["reranker"])
    todo = {("embedded",): ["q1"], ("llm",): ["q1", "q2"]}
    assert set(sweep.asking(which, todo)) == {("llm",)}
    assert sweep.cost(which, todo).calls is None
    for route, parameters, said in (
        ("nine", ["k"], "route 'nine' is not in evaluation tiny; it has: hybrid_rrf"),
        ("hybrid_rrf", ["q"], "no parameter 'q'; it has: k, dense_weight, bm25_weight"),
        ("hybrid_rrf", ["k", "k"], "give one parameter, or two different ones"),
        ("hybrid_rrf", [], "parameters none: give one parameter"),
    ):
        with pytest.raises(BadInput, match=said):
            sweep_subject.subject(evaluation, route, parameters)
    subject = sweep_subject.subject(evaluation, "rerank", ["candidates"])
    rankings = sweep_subject.Rankings(subject)
    hits = {q: result.hits for q, result in subject.results.items()}
    given_ = {
        ((5,), q): None if q == "q1" else tuple((h.passage.id, h.score) for h in found)
        for q, found in hits.items()
    }
    found = sweep.curve(rankings, [(5,)], "ndcg@10", given_)
    one = found.tried[0]
    assert (one.failed, one.waiting) == (int("q1" in found.split.chosen_on), 0)
    assert one.effect.n == len(found.split.chosen_on) - one.failed
    assert one.effect.estimate == 0


def test_a_corpus_indexed_again_is_not_compared(engine, evaluation, tmp_path):
    other = FakeEngine(tmp_path, texts={"a:0-1": "other"})
    running = sweep.running(other, sweep_subject.subject(evaluation, "rerank", ["candidates"]))
    running.ask({(5,): ["q1"]})
    assert running.wait(20)
    assert "was reindexed since evaluation tiny" in running.error
    assert running.rankings == {}


def test_charts_draw_what_is_known_and_escape_names(evaluation):
    subject = sweep_subject.subject(evaluation, "hybrid_rrf", ["k"])
    found = sweep.curve(sweep_subject.Rankings(subject), [(1,), (60,), (1000,)])
    drawn = sweep_curve(found).to_dict()
    assert drawn["layout"]["xaxis"]["ticktext"] == ["1", "60", "1000"]
    assert [round(y, 6) for y in drawn["data"][0]["y"]] == [round(o.effect.mean, 6) for o in found.tried]
    pair = sweep_subject.subject(evaluation, "hybrid_rrf", ["k", "dense_weight"])
    grid = [(k, weight) for k in (1, 60) for weight in (0.5, 2.0)]
    both = sweep.curve(sweep_subject.Rankings(pair), grid)
    drawn = sweep_map(both).to_dict()
    assert (len(drawn["data"][0]["z"]), len(drawn["data"][0]["z"][0])) == (2, 3)
    assert drawn["data"][0]["z"][0][1] is None, "the value in use is another column"
    waits = sweep_subject.subject(evaluation, "rerank", ["candidates"])
    alone = sweep.curve(sweep_subject.Rankings(waits), [(5,)])
    assert "5: needs a run" in describe_sweep(alone, in_words(alone))
    assert len(sweep_curve(alone).data[0].x) == 1


@pytest.fixture(scope="module")
def measured(engine, tmp_path_factory):
    """Settings with a home that holds an evaluation under the name "mine"."""
    made = Settings(home=tmp_path_factory.mktemp("measured"))
    evaluated(engine, experiment_store.place(made, "mine"), ("hybrid_rrf", "rag_fusion", "rerank"), {})
    return made


@pytest.fixture
def home(engine, measured, monkeypatch):
    """The commands find that home."""
    monkeypatch.setattr(settings_module, "current", lambda: measured)
    monkeypatch.setattr(engine_module, "shared_engine", lambda: engine)


@pytest.mark.slow
def test_the_command_gives_the_curve(home, capsys):
    assert main(["sweep", "mine", "hybrid_rrf.k", "--grid", "1, 60", "--metric", "mrr@10", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [point["values"] for point in said["points"]] == [{"k": 1}, {"k": 60}]
    assert [point["from"] for point in said["points"]] == ["done again", "in use"]
    assert (said["metric"], said["in_use"]) == ("mrr@10", {"k": 60})
    assert main(["sweep", "mine", "rerank.candidates", "--grid", "5"]) == 0
    assert "candidates = 5 " in capsys.readouterr().out
    assert main(["sweep", "mine", "hybrid_rrf.k", "hybrid_rrf.dense_weight", "--grid", "k=1,60"]) == 0
    assert "k = 1, dense_weight = 0.1" in capsys.readouterr().out


def test_the_command_asks_no_model_unless_told_to(home, engine, capsys):
    asked = len(engine.fake_llm.requests)
    assert main(["sweep", "mine", "rag_fusion.n", "--grid", "1"]) == 0
    out, err = capsys.readouterr()
    assert "about 7 calls" in err
    assert "questions need a run" in out
    assert len(engine.fake_llm.requests) == asked
    assert main(["sweep", "mine", "rag_fusion.n", "--grid", "1", "--ask"]) == 0
    assert len(engine.fake_llm.requests) == asked + 7
    assert "need a run" not in capsys.readouterr().out


def test_the_command_says_what_is_wrong(home, capsys):
    for args, said in (
        (("mine", "hybrid_rrf"), "give ROUTE.PARAMETER"),
        (("mine", "hybrid_rrf.k", "rerank.candidates"), "two of one route"),
        (("mine", "hybrid_rrf.k", "--metric", "f1"), "metric 'f1'; give one of ndcg@10"),
        (("mine", "hybrid_rrf.k", "--grid", "q=1"), "give PARAMETER=VALUES for one of k"),
        (("none", "hybrid_rrf.k"), "contains no evaluation"),
    ):
        assert main(["sweep", *args]) == 2
        assert said in capsys.readouterr().err
