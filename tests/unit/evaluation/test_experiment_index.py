"""What is told of kept evaluations: their state, what one would take, who leads."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from core.analysis.timeline import Latency
from core.corpus import catalogue
from core.corpus.chunk import WHOLE
from core.corpus.source import Source
from core.domain.types import Query
from core.evaluation import background, leaderboard, sets
from core.evaluation.background import begin
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.experiment_store import NAME, opened, place
from core.evaluation.spec import Spec
from tests.fakes import FakeEngine

ASKED = {
    "q1": ("How do I send something back for a refund?", "returns:0-90"),
    "q2": ("Is a fragile vase shipped double boxed?", "fragile:0-80"),
    "q3": ("How long are keys stored?", "keys:0-80"),
    "q4": ("What is the meaning of life?", None),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A small one, really made."""
    questions = tuple(Question(id, Query(text), "plain") for id, (text, _) in ASKED.items())
    found = LabelledSet("tiny", questions, {id: {hit: 1} for id, (_, hit) in ASKED.items() if hit})
    engine = FakeEngine(tmp_path_factory.mktemp("home"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "source", lambda *_, **__: Source("tiny", "indexed", None, WHOLE))
        patch.setattr(sets, "read", lambda *_, **__: found)
        assert begin(engine, "one", Spec("tiny", ("bm25", "dense", "hybrid_rrf"))).wait(30)
    return place(engine.settings, "one")


@pytest.fixture
def evaluation(made, tmp_path):
    return opened(shutil.copytree(made, tmp_path / "evaluations" / "one"))


def test_the_state_of_a_finished_one_and_of_one_that_lost_questions_or_figures(evaluation):
    one = background.entry(evaluation.folder)
    assert (one.state, one.done, one.total, one.routes, one.failed) == ("finished", 4, 4, 3, 0)
    assert (one.corpus, one.split, one.why) == ("tiny", "test", "")
    journal = evaluation.folder / "questions.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-1]) + lines[-1][:20])  # killed in the middle of a line
    one = background.entry(evaluation.folder)
    assert (one.state, one.done, one.total) == ("stopped", 3, 4)
    journal.write_text("".join(lines))
    (evaluation.folder / "metrics.json").unlink()
    one = background.entry(evaluation.folder)
    assert (one.state, one.routes) == ("stopped", 3)


@pytest.mark.slow
@pytest.mark.parametrize("content", ["", "[]", "{", '{"spec": {}}', '{"spec": 1, "set": 2}', "\x00"])
def test_a_damaged_one_says_why(evaluation, content):
    (evaluation.folder / "labelled.json").write_text(content)
    one = background.entry(evaluation.folder)
    assert one.state == "damaged"
    assert one.why


def test_what_this_process_knows_goes_first(evaluation, monkeypatch):
    one = background.entry(evaluation.folder)
    engine = SimpleNamespace(settings=SimpleNamespace(home=evaluation.folder.parents[1]))
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
    assert NAME.fullmatch(first)
    taken = [first]
    for _ in range(3):
        taken.append(background.free_name(wanted, taken))
    assert len(set(taken)) == 4
    assert all(NAME.fullmatch(name) for name in taken)


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
