"""Evaluations by name: begun in the background, stopped, gone on with, opened again, deleted."""

import json
import threading
from dataclasses import replace
from statistics import fmean
from types import SimpleNamespace

import pytest
from pydantic import TypeAdapter

from core.analysis.timeline import Latency
from core.domain.background_job import jobs
from core.domain.errors import BadInput, RouteScopeError
from core.evaluation import background, comparison, experiment_store, leaderboard
from core.evaluation.experiment import perform, prepare
from core.evaluation.outcome import JOURNAL, Outcome, alone
from core.evaluation.spec import Spec
from core.evaluation.stored import checked
from tests.fakes import FakeEngine, ScriptedLLM

ASKED = {
    "q1": ("How long are keys stored?", "keys:0-80"),
    "q2": ("Who reports a crushed box?", "crushed:0-80"),
    "q3": ("Fragile items are double boxed", "fragile:0-80"),
    "q4": ("What is the weather on the moon?", None),
}


class Counting(FakeEngine):
    """Counts the questions asked, and can hold them back."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.asked = []
        self.gate = threading.Event()
        self.gate.set()

    def start(self, request):
        self.asked.append((request.query.text, request.routes, request.draw))
        self.gate.wait(20)
        return super().start(request)


@pytest.fixture
def engine(tmp_path):
    made = Counting(tmp_path, llm=ScriptedLLM({"hyde": "keys are stored for a day"}))
    yield made
    made.gate.set()


@pytest.fixture
def spec(tmp_path):
    rows = [
        {"id": id, "text": text, "mode": "plain" if id < "q3" else "abstract", "split": "test"}
        for id, (text, _) in ASKED.items()
    ]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    judged = [f"{id} 0 {passage} 1" for id, (_, passage) in ASKED.items() if passage]
    (tmp_path / "qrels.txt").write_text("\n".join(judged))
    return Spec(
        "tiny", ("bm25", "dense"), questions=(str(tmp_path / "q.jsonl"),), qrels=str(tmp_path / "qrels.txt")
    )


def ended(one):
    assert one.wait(30)
    assert one.error is None
    return one


@pytest.fixture
def evaluation(engine, spec):
    return experiment_store.opened(ended(background.begin(engine, "first", spec)).folder)


def test_what_is_kept_opens_with_the_figures_and_the_runs(engine, spec):
    one = ended(background.begin(engine, "first", spec))
    assert (one.finished, one.total, one.cancelled, one.left) == (4, 4, False, None)
    assert experiment_store.names(engine.settings) == ["first"]
    kept = experiment_store.opened(one.folder)
    assert Spec.read(kept.spec) == spec
    assert (kept.routes, kept.baseline, list(kept.questions)) == (("bm25", "dense"), "bm25", list(ASKED))
    assert set(kept.values["bm25"]) == {"q1", "q2", "q3"}  # q4 has no label
    figures, labelled, outcomes = perform(engine, prepare(engine, spec))  # in the foreground
    assert kept.labelled == labelled
    for route in kept.routes:
        row = kept.figures["routes"][route]
        assert row["ndcg@10"] == pytest.approx(fmean(by["ndcg@10"] for by in kept.values[route].values()))
        for metric in ("ndcg@10", "recall@10", "map", "ci95", "n", "failed"):
            assert row[metric] == figures["routes"][route][metric]
    for question, by in outcomes.items():
        assert {r: o.hits for r, o in by.items()} == {r: o.hits for r, o in kept.outcomes[question].items()}
    run = kept.run("q2")
    assert run.query.text == ASKED["q2"][0]
    for result in run.results:
        hits = tuple((hit.passage.id, hit.score) for hit in result.hits)
        assert kept.outcomes["q2"][result.route].hits == hits
        assert result.spans


def test_stopped_it_keeps_what_was_asked_and_goes_on_without_repeating(engine, spec):
    engine.gate.clear()
    one = background.begin(engine, "first", spec)
    assert background.begin(engine, "first", spec) is one
    assert background.active(engine) == [one]
    one.cancel()
    engine.gate.set()
    ended(one)
    assert one.cancelled
    assert background.active(engine) == []
    stopped = experiment_store.opened(one.folder)
    assert stopped.figures["interrupted"] is True
    assert len(stopped.outcomes) < 4
    before = len(stopped.outcomes)
    jobs.clear()  # as after a crash: another process knows nothing of it
    with (one.folder / JOURNAL).open("a") as file:
        file.write('{"question": "q9", "rou')  # half a line
    engine.asked.clear()
    again = ended(background.resume(engine, "first"))
    assert len(engine.asked) == 4 - before
    assert again.finished == 4
    whole = experiment_store.opened(one.folder)
    assert whole.figures["interrupted"] is False
    assert len(whole.outcomes) == 4
    assert {q: whole.outcomes[q] for q in stopped.outcomes} == stopped.outcomes


def test_what_was_asked_of_another_index_is_an_error_or_asked_again(engine, spec):
    journal = ended(background.begin(engine, "first", spec)).folder / JOURNAL
    head, *rest = journal.read_text().splitlines()
    before = json.loads(head)
    before["conditions"]["fingerprint"] = "older"
    journal.write_text("\n".join([json.dumps(before), *rest, ""]))
    jobs.clear()
    engine.asked.clear()
    one = background.begin(engine, "first", spec)
    assert one.wait(30)
    assert "holds another evaluation (fingerprint" in str(one.error)
    assert not engine.asked
    ended(background.begin(engine, "first", spec, renew=True))
    assert len(engine.asked) == 4


def test_only_routes_that_ask_a_model_are_repeated_and_with_other_seeds(engine, spec):
    spec = replace(spec, routes=("bm25", "hyde"), repeats=3)
    one = ended(background.begin(engine, "first", spec))
    assert (one.finished, one.total) == (12, 12)
    rounds = [routes for _, routes, _ in engine.asked]
    assert rounds.count(("bm25", "hyde")) == 4
    assert rounds.count(("hyde",)) == 8
    assert [draw for _, routes, draw in engine.asked if routes == ("hyde",)] == [1] * 4 + [2] * 4
    seeds = [request.seed for request in engine.fake_llm.requests]
    assert sorted(set(seeds)) == [0, 1000, 2000]
    engine.asked.clear()
    jobs.clear()
    ended(background.resume(engine, "first"))
    assert engine.asked == []


def test_a_name_is_one_evaluations(engine, spec):
    ended(background.begin(engine, "first", spec))
    with pytest.raises(BadInput, match="taken by another evaluation"):
        background.begin(engine, "first", replace(spec, routes=("bm25",)))
    for name in ("", "../x", "a/b", ".hidden", "x" * 81):
        with pytest.raises(BadInput, match="give up to 80 letters"):
            background.begin(engine, name, spec)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"routes": ("nothing",)}, "nothing"),
        ({"parameters": {"hyde": {"n": 2}}}, "not among the routes"),
        ({"baseline": "hyde"}, "not among the routes"),
        ({"repeats": 0}, "repeats=0"),
        ({"mode": "odd"}, "plain"),
        ({"split": "dev"}, "split"),
        ({"corpus": "none"}, "none"),
    ],
)
def test_what_cannot_be_measured_is_told_at_once_and_leaves_nothing(engine, spec, change, said):
    with pytest.raises(RouteScopeError, match=said):
        background.begin(engine, "first", replace(spec, **change))
    assert experiment_store.names(engine.settings) == []


def test_what_is_missing_is_told_and_what_is_deleted_is_gone(engine, evaluation):
    (evaluation.folder / experiment_store.RUNS).unlink()
    with pytest.raises(BadInput, match="saved no run"):
        evaluation.run("q1")
    stamp = experiment_store.stamp(evaluation.folder)
    assert stamp == experiment_store.stamp(evaluation.folder)
    (evaluation.folder / experiment_store.LABELLED).unlink()
    with pytest.raises(BadInput, match="contains no evaluation"):
        experiment_store.opened(evaluation.folder)
    experiment_store.remove(engine.settings, "first")
    assert experiment_store.names(engine.settings) == []
    with pytest.raises(BadInput, match="there are: none"):
        experiment_store.remove(engine.settings, "first")


def test_one_that_another_process_is_at_is_under_way(engine, evaluation):
    with alone(evaluation.folder):
        there = background.now(engine, background.entry(evaluation.folder))
        assert (there.state, there.why) == ("under way", "another process is running it")
        with pytest.raises(BadInput, match="wait until it ends"):
            experiment_store.remove(engine.settings, "first")
    assert background.now(engine, background.entry(evaluation.folder)).state == "finished"


def test_weights_fitted_on_the_questions_asked_are_told(engine, spec, monkeypatch):
    fitted = replace(engine.weights("tiny"), name="mine", made={"questions": ["q1", "q2", "elsewhere"]})
    monkeypatch.setattr(engine, "weights", lambda _corpus, _name="": fitted)
    told = prepare(engine, replace(spec, routes=("bm25", "learned_fusion"))).warnings
    assert "the weights mine of learned_fusion were fitted on 2 of these 4 questions" in told[-1]
    assert prepare(engine, spec).warnings == ()


def test_the_first_thing_that_is_wrong_is_told_with_its_place():
    with pytest.raises(ValueError, match=r"^a\.1: Input should be a valid integer") as told:
        checked(TypeAdapter(dict[str, list[int]]), {"a": [1, {}, {}]})
    assert "\n" not in str(told.value)
    with pytest.raises(ValueError, match=r"^Input should be a valid dictionary"):
        checked(TypeAdapter(dict[str, int]), [])


@pytest.mark.parametrize(
    "document", [{}, {"corpus": "tiny", "more": 1}, {"corpus": 3}, {"corpus": "a", "repeats": "x"}, []]
)
def test_what_describes_no_evaluation_is_refused(document):
    with pytest.raises(BadInput, match="this is not a valid description of an evaluation: ") as told:
        Spec.read(document)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "bend",
    [
        {"name": None},
        {"questions": [{"query": {"text": "x"}}]},
        {"questions": [{"id": "q", "query": "text"}]},
        {"qrels": {"q1": {"d": "high"}}},
        {"questions": {"q": 1}},
    ],
)
def test_questions_that_are_none_are_told_in_one_line(evaluation, bend):
    path = evaluation.folder / experiment_store.LABELLED
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "set": {**document["set"], **bend}}))
    with pytest.raises(BadInput, match="is damaged: ValueError: ") as told:
        experiment_store.opened(evaluation.folder)
    assert "\n" not in str(told.value)


def test_the_state_of_a_finished_one_and_of_one_that_lost_questions_or_figures(evaluation):
    one = background.entry(evaluation.folder)
    assert (one.state, one.done, one.total, one.routes, one.failed) == ("finished", 4, 4, 2, 0)
    assert (one.corpus, one.split, one.why) == ("tiny", "test", "")
    journal = evaluation.folder / "questions.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-1]) + lines[-1][:20])  # killed in the middle of a line
    one = background.entry(evaluation.folder)
    assert (one.state, one.done, one.total) == ("stopped", 3, 4)
    journal.write_text("".join(lines))
    (evaluation.folder / "metrics.json").unlink()
    one = background.entry(evaluation.folder)
    assert (one.state, one.routes) == ("stopped", 2)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"spec": {}}', '{"spec": 1, "set": 2}', "\x00"])
def test_a_damaged_one_says_why(evaluation, content):
    (evaluation.folder / experiment_store.LABELLED).write_text(content)
    one = background.entry(evaluation.folder)
    assert (one.state, bool(one.why)) == ("damaged", True)
    with pytest.raises(BadInput, match="is damaged"):
        experiment_store.opened(evaluation.folder)


def test_what_this_process_knows_goes_first(engine, evaluation, monkeypatch):
    one = background.entry(evaluation.folder)
    known = SimpleNamespace(done=False, finished=1, total=9, error=None)
    monkeypatch.setattr(background, "under_way", lambda *_: known)
    now = background.now(engine, one)
    assert (now.state, now.done, now.total) == ("under way", 1, 9)
    known.done, known.error = True, "the disk is full"
    for state, shown in (("finished", "finished"), ("stopped", "failed")):
        now = background.now(engine, replace(one, state=state))
        assert (now.state, now.why) == (shown, "the disk is full")


def test_medians_are_of_runs_that_did_the_same_and_rather_of_now():
    given = [("a", "now", 10.0, False), ("a", "recording", 99.0, False), ("a", "now", 500.0, True)]
    given += [("b", "recording", 70.0, False), ("c", "now", None, False)]
    found = [
        Latency(key, key.upper(), None, source, 3, {50: median}, 9e9, answered)
        for key, source, median, answered in given
    ]
    for several in (found, found[::-1]):
        assert background.medians(several, answered=False) == {"a": 10.0, "b": 70.0}
    assert background.medians(found, answered=True) == {"a": 500.0}


def test_an_estimate_adds_medians_and_names_what_it_does_not_know():
    assert background.estimate({"a": 100.0, "b": 50.0, "z": 1e9}, ["a", "b", "c"], 20) == (3.0, ("c",))
    assert background.estimate({}, ["a"], 20) == (0.0, ("a",))


@pytest.mark.parametrize("wanted", ["support-2026-01-01", "../x", "", "ünï", ".hidden", "a" * 200, "-"])
def test_free_names_are_allowed_and_free(wanted):
    first = background.free_name(wanted, [])
    assert experiment_store.NAME.fullmatch(first)
    taken = [first]
    for _ in range(3):
        taken.append(background.free_name(wanted, taken))
    assert len(set(taken)) == 4
    assert all(experiment_store.NAME.fullmatch(name) for name in taken)


def test_the_figures_of_the_folder_are_taken_as_they_are(evaluation):
    kept = evaluation.figures
    assert leaderboard.against(evaluation, "bm25") is kept
    other = leaderboard.against(evaluation, "dense")
    assert (other["baseline"], other["routes"]["dense"].get("vs_baseline")) == ("dense", None)
    for route, row in kept["routes"].items():
        for name in ("ndcg@10", "p50_ms", "ci95", "failed"):
            assert other["routes"][route][name] == row[name]
    there, back = kept["routes"]["dense"], other["routes"]["bm25"]
    deltas = [one["vs_baseline"]["ndcg@10"]["delta"] for one in (there, back)]
    assert deltas[0] == pytest.approx(-deltas[1])


def test_routes_are_ranked_and_those_without_a_value_are_last():
    means = {"a": 0.2, "b": None, "c": 0.9, "d": 0.2}
    figures = {"routes": {name: {"ndcg@10": mean, "n": 10} for name, mean in means.items()}}
    assert leaderboard.ranked(figures, "ndcg@10") == ["c", "a", "d", "b"]
    assert leaderboard.metrics(figures) == ["ndcg@10"]


def test_routes_are_predicted_from_their_agreement_where_most_questions_have_no_label(engine, tmp_path):
    lines = [json.dumps({"id": f"q{n}", "text": f"Who reports crushed box {n}?"}) for n in range(20)]
    (tmp_path / "bare.jsonl").write_text("\n".join(lines))
    spec = Spec("tiny", ("bm25", "dense", "hybrid_rrf"), questions=(str(tmp_path / "bare.jsonl"),))
    figures, _, _ = perform(engine, prepare(engine, spec))
    found = figures["predicted"]
    assert (found["questions"], set(found["agreement"])) == (20, set(spec.routes))
    assert found["note"] in figures["warnings"]
    hits = {"one": ("a", "b"), "two": ("a", "b"), "three": ("x", "b")}
    outcomes = {
        str(n): {route: Outcome("ok", 1.0, tuple((id, 1.0) for id in ids)) for route, ids in hits.items()}
        for n in range(40)
    }
    by_hand = comparison.predicted(outcomes, list(map(str, range(20))))
    assert by_hand["agreement"] == pytest.approx({"one": 2 / 3, "two": 2 / 3, "three": 1 / 3})
    assert comparison.predicted(outcomes, list(map(str, range(19)))) == {}
