"""What is told of kept evaluations: their state, what one would take, who leads."""

import json
from types import SimpleNamespace

import pytest

from core.analysis.timeline import Latency
from core.domain.types import Query
from core.evaluation import background, leaderboard
from core.evaluation import text as sentences
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


@pytest.fixture
def evaluation(tmp_path, monkeypatch):
    """A small one, really made."""
    from core.corpus import catalogue
    from core.corpus.chunk import WHOLE
    from core.corpus.source import Source
    from core.evaluation import sets

    questions = tuple(Question(id, Query(text), "plain") for id, (text, _) in ASKED.items())
    found = LabelledSet("tiny", questions, {id: {hit: 1} for id, (_, hit) in ASKED.items() if hit})
    monkeypatch.setattr(catalogue, "source", lambda *_, **__: Source("tiny", "indexed", None, WHOLE))
    monkeypatch.setattr(sets, "read", lambda *_, **__: found)
    engine = FakeEngine(tmp_path)
    assert begin(engine, "one", Spec("tiny", ("bm25", "dense", "hybrid_rrf"))).wait(30)
    return opened(place(engine.settings, "one"))


def test_a_finished_one(evaluation):
    one = background.entry(evaluation.folder)
    assert (one.state, one.done, one.total, one.routes, one.failed) == ("finished", 4, 4, 3, 0)
    assert (one.corpus, one.split, one.why) == ("tiny", "test", "")


def test_one_that_lost_its_last_questions_or_its_figures_is_stopped(evaluation):
    journal = evaluation.folder / "questions.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-1]) + lines[-1][:20])  # killed in the middle of a line
    one = background.entry(evaluation.folder)
    assert (one.state, one.done, one.total) == ("stopped", 3, 4)
    journal.write_text("".join(lines))
    (evaluation.folder / "metrics.json").unlink()
    assert (
        background.entry(evaluation.folder).state,
        background.entry(evaluation.folder).routes,
    ) == ("stopped", 3)


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
    assert background.now(engine, one).state == "under way"
    assert (background.now(engine, one).done, background.now(engine, one).total) == (1, 9)
    known.done, known.error = True, "the disk is full"
    assert (background.now(engine, one).state, background.now(engine, one).why) == (
        "finished",
        "the disk is full",
    )
    stopped = background.Entry("x", "c", "test", 1, 1, 2, "stopped", "")
    told = background.now(engine, stopped)
    assert (told.state, told.why) == ("failed", "the disk is full")


def test_medians_are_of_runs_that_did_the_same_and_rather_of_now():
    def one(key, source, median, answered=False):
        return Latency(key, key.upper(), None, source, 3, {50: median}, 9e9, answered)

    found = [
        one("a", "now", 10.0),
        one("a", "recording", 99.0),
        one("a", "now", 500.0, answered=True),
        one("b", "recording", 70.0),
        one("c", "now", None),
    ]
    assert background.medians(found, answered=False) == {"a": 10.0, "b": 70.0}
    assert background.medians(found[::-1], answered=False) == {"a": 10.0, "b": 70.0}
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
    kept = json.loads((evaluation.folder / "metrics.json").read_text())
    assert leaderboard.against(evaluation, "bm25") is evaluation.figures
    other = leaderboard.against(evaluation, "dense")
    assert other["baseline"] == "dense"
    assert "vs_baseline" not in other["routes"]["dense"] or not other["routes"]["dense"]["vs_baseline"]
    for route, row in kept["routes"].items():
        assert {k: other["routes"][route][k] for k in ("ndcg@10", "p50_ms", "ci95", "failed")} == {
            k: row[k] for k in ("ndcg@10", "p50_ms", "ci95", "failed")
        }
    delta = kept["routes"]["dense"]["vs_baseline"]["ndcg@10"]["delta"]
    assert other["routes"]["bm25"]["vs_baseline"]["ndcg@10"]["delta"] == pytest.approx(-delta)


def rows(**means):
    return {
        name: {"ndcg@10": mean, "n": 10, "failed": 0, "statuses": {"ok": 10}} for name, mean in means.items()
    }


def test_routes_are_ranked_and_those_without_a_value_are_last():
    figures = {"routes": rows(a=0.2, b=None, c=0.9, d=0.2)}
    assert leaderboard.ranked(figures, "ndcg@10") == ["c", "a", "d", "b"]
    assert leaderboard.metrics(figures) == ["ndcg@10"]


def test_words_say_who_leads_and_how_all_stand_to_the_baseline(evaluation):
    figures = leaderboard.against(evaluation, "bm25")
    said = sentences.found(figures, str.upper, ["ndcg@10"])
    assert figures["decision"]["decision"] == "undecided"
    assert all(line.endswith(".") for line in said)
    assert "No difference from BM25 found in nDCG@10." in said


def test_what_is_not_scored_is_counted(evaluation):
    figures = {**evaluation.figures, "routes": {**rows(a=0.1, b=0.2)}}
    figures["routes"]["b"] |= {"n": 7, "failed": 3}
    said = " ".join(sentences.counted(figures, asked=9))
    assert "the figures cover 4 of 9 questions" in said
    assert "4 questions asked, 3 with a relevant passage; the other 1 " in said
    assert "excluded from all means: b 3." in said
    assert "means cover different questions" in said
    figures["routes"]["b"] |= {"n": 10, "failed": 0}
    said = sentences.counted({**figures, "labelled": 4}, asked=4)
    assert said == ["4 questions asked, 4 with a relevant passage.", "No route failed on any question."]
