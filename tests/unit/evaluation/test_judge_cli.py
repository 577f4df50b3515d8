"""`labels judge` and `eval --judge` on the command line."""

import json
import signal

import pytest

from core.corpus import catalogue
from core.corpus.chunk import WHOLE
from core.corpus.source import Source
from core.domain import settings as settings_module
from core.domain.background_job import jobs
from core.domain.settings import Settings
from core.engine import engine as engine_module
from core.evaluation import experiment_store, leaderboard, sets
from core.evaluation.dataset import Nugget
from core.evaluation.labels import desk as desks
from core.evaluation.labels import label_next, nuggets
from core.store import Store
from core.store.labels import Judgement, Pooled
from tests.fakes import FakeEngine, ScriptedLLM
from tests.parcels import QUESTIONS, TEXTS, blind, label, labelled, passages, people, right

pytestmark = pytest.mark.slow  # each evaluates forty questions, some of them twice


@pytest.fixture
def engine(tmp_path, monkeypatch):
    made = FakeEngine(
        tmp_path, llm=ScriptedLLM({"judge": right}), texts=TEXTS, store=Store(tmp_path / "runs.sqlite")
    )
    monkeypatch.setattr(engine_module, "shared_engine", lambda: made)
    monkeypatch.setattr(settings_module, "current", lambda: Settings(home=tmp_path))
    monkeypatch.setattr(catalogue, "source", lambda *_, **__: Source("tiny", "indexed", None, WHOLE))
    monkeypatch.setattr("core.cli.corpora.ensure", lambda *_: None)
    label(made)
    yield made
    jobs.clear()
    made.store.close()


def test_it_prints_the_kappa_the_confusion_and_what_is_left_open(engine, call):
    code, out, err = call("labels", "judge", "one", "--count", 80)
    assert code == 0, err
    assert "one (label set), judged by scripted with prompt judge/1 and guidelines " in out
    assert "people: 3" in out
    assert "judge: 3" in out
    assert "Cohen's kappa of judge and people is 1.00 [1.00, 1.00] (almost perfect)" in out
    assert "The judge misses 0 of" in out
    assert "It may grade unjudged passages (eval --judge): the interval lies above 0.4." in out


def test_the_labels_of_a_corpus_are_a_set_too_and_eval_goes_by_them(engine, call, monkeypatch):
    found = labelled(people(engine.corpus("tiny")), relevant_from=2)
    monkeypatch.setattr(sets, "read", lambda *_, **__: found)
    code, out, err = call("labels", "judge", "tiny", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert (told["of"], told["name"], told["policy"]) == ("own labels", "tiny", desks.DEFAULT)
    args = ("eval", "tiny", "--split", "all", "--routes", "bm25", "--json")
    code, out, err = call(*args, "--judge")
    assert (code, json.loads(out)["judge"]["by"]) == (0, "scripted"), err
    code, out, err = call(*args, "--labels", "one", "--judge")
    assert "judge" not in json.loads(out), "agreement on a corpus' own labels is none on a label set"
    assert (code, "never measured" in err) == (0, True)
    engine.fake_llm.missing = "no model is set"
    code, _, err = call("labels", "judge", "tiny")
    assert (code, "no model is set" in err) == (1, True)


def test_a_set_that_is_not_there_and_one_without_labels_are_told(engine, call):
    desks.create(engine.store, "empty", "tiny", QUESTIONS)
    code, out, err = call("labels", "judge", "empty")
    assert (code, out) == (2, "")
    assert "has no graded passage yet" in err
    code, _, err = call("labels", "judge", "one", "--count", 5)
    assert code == 2
    assert "20" in err


def test_eval_gives_each_metric_as_a_range_and_never_mixes_them(engine, call, tmp_path):
    args = ("eval", "tiny", "--labels", "one", "--split", "all", "--routes", "bm25,dense", "--keep", "kept")
    code, out, err = call(*args, "--judge")
    assert (code, "as judged:" in out) == (0, False)
    assert "the judge scripted is not calibrated for these guidelines: its agreement" in err
    assert call("labels", "judge", "one")[0] == 0
    code, out, err = call(*args, "--json")
    plain = json.loads(out)
    assert "judge" not in plain
    code, out, err = call(*args, "--judge", "--json")
    assert code == 0, err
    both = json.loads(out)
    judge = both["judge"]
    assert both["corrected"]["judged"] == 0, "all questions are labelled"
    one = both["routes"]["bm25"]
    assert one["corrected"]["mean"] == pytest.approx(one["ndcg@10"])
    assert one["corrected"]["equal_to"] == one["corrected"]["labels"] == 40
    for route, row in plain["routes"].items():
        assert both["routes"][route]["ndcg@10"] == row["ndcg@10"], "the labels of people alone"
        assert judge["routes"][route]["ndcg@10"]["unjudged_irrelevant"] == pytest.approx(row["ndcg@10"])
    assert (judge["by"], judge["prompt"]) == ("scripted", "judge/1")
    assert judge["judged"] > 0
    kept = experiment_store.opened(tmp_path / "evaluations" / "kept")
    assert kept.figures["judge"] == judge
    assert leaderboard.against(kept, "dense")["judge"] == judge, "whatever the baseline"
    assert "scripted judged" in (tmp_path / "evaluations" / "kept" / "report.html").read_text()
    code, out, _ = call(*args, "--judge")
    assert "with unjudged passages as not relevant / as judged:" in out
    assert "The order of the routes is the same at both ends by nDCG@10" in out


def test_a_judge_that_does_not_agree_gives_no_range_and_its_kappa(engine, call):
    engine.fake_llm.replies = {"judge": blind}
    assert call("labels", "judge", "one")[0] == 0
    args = ("eval", "tiny", "--labels", "one", "--split", "all", "--routes", "bm25", "--judge", "--json")
    code, out, err = call(*args)
    assert (code, "judge" in json.loads(out)) == (0, False)
    assert "may not grade unjudged passages of one: the lower end of the interval of kappa is" in err
    assert "Cohen's kappa of judge and people is" in err
    assert "The judge misses" in err


def test_other_guidelines_and_other_questions_give_no_range(engine, call, tmp_path):
    assert call("labels", "judge", "one")[0] == 0
    desks.set_guidelines(engine.store, "one", "Something else counts now.")
    args = ("eval", "tiny", "--split", "all", "--routes", "bm25", "--judge")
    code, _, err = call(*args, "--labels", "one")
    assert (code, "the guidelines have changed since it was measured" in err) == (0, True)
    asked = tmp_path / "asked.jsonl"
    quote = {"doc": next(iter(engine.corpus("tiny").all)).doc_id, "grade": 3}
    asked.write_text(json.dumps({"id": "a", "text": "Where?", "relevant": [quote]}) + "\n")
    code, _, err = call(*args, "--questions", asked)
    assert (code, "ranges need a label set (--labels NAME)" in err) == (0, True)


ARGS = ("eval", "tiny", "--labels", "half", "--split", "all", "--routes", "bm25,dense")


def graded(engine, asked, *grades):
    """The own passage of each question, and the next one, with these grades."""
    ids, corpus = passages(engine.corpus("tiny")), engine.corpus("tiny")
    for n in asked:
        for at, grade in enumerate(grades):
            id = ids[(n + at) % len(QUESTIONS)]
            desks.add_to_pool(engine.store, "half", {f"q{n:02}": [Pooled(corpus.by_ids([id])[id])]})
            desks.judge(engine.store, "half", Judgement(f"q{n:02}", id, "Ann", "person", "grade", grade))


@pytest.mark.parametrize("judge", [right, blind])
def test_means_over_labelled_and_unlabelled_questions_are_corrected(engine, call, judge):
    engine.fake_llm.replies = {"judge": judge}
    desks.create(engine.store, "half", "tiny", QUESTIONS)
    graded(engine, range(20), 3, 0)
    code, out, err = call(*ARGS, "--judge", "--json")
    assert code == 0, err
    figures = json.loads(out)
    assert (figures["corrected"]["labelled"], figures["corrected"]["unlabelled"]) == (20, 20)
    for row in figures["routes"].values():
        one = row["corrected"]
        assert one["labels"] == 20 <= one["equal_to"]
        assert 0 <= one["ci95"][0] <= one["mean"] <= one["ci95"][1] <= 1
        if judge is not right:
            assert one["mean"] == pytest.approx(row["ndcg@10"], abs=0.05)
    assert figures["decision"]["reasons"][-1]["id"] == "corrected"
    one, other = figures["corrected"]["pairs"]
    assert (one["route"], one["other"], other["route"], other["other"]) == ("bm25", "dense", "dense", "bm25")
    assert one["mean"] == pytest.approx(-other["mean"])
    assert one["ci95"] == pytest.approx([-end for end in reversed(other["ci95"])])
    assert "if the labelled questions are a random part" in err
    if judge is right:
        assert "equivalent to" in call(*ARGS, "--judge")[1]


@pytest.mark.parametrize(
    ("judge", "asked", "grades", "why"),
    [
        ({"Yes": 1.0}, 20, (3, 0), "the same grade"),
        ({"Maybe": 1.0}, 20, (3, 0), "graded 0 of"),
        (right, 10, (3, 0), "10 labelled questions are too few"),
        (right, 20, (3,), "all of one kind"),
    ],
)
def test_a_judge_that_says_nothing_corrects_nothing_and_claims_nothing(
    engine, call, judge, asked, grades, why
):
    engine.fake_llm.replies = {"judge": judge}
    desks.create(engine.store, "half", "tiny", QUESTIONS)
    graded(engine, range(asked), *grades)
    code, out, err = call(*ARGS, "--judge", "--json")
    figures = json.loads(out)
    assert (code, figures["corrected"]["pairs"]) == (0, [])
    assert [line for line in err.splitlines() if "the judge corrects nothing" in line and why in line]
    one = figures["routes"]["bm25"]
    assert one["corrected"]["equal_to"] == one["corrected"]["labels"] == asked
    assert one["corrected"]["mean"] == pytest.approx(one["ndcg@10"])
    assert all(reason["id"] != "corrected" for reason in figures["decision"]["reasons"])


def test_drawn_questions_count_by_their_chances(engine, call, tmp_path):
    desks.create(engine.store, "half", "tiny", QUESTIONS)
    assert call("labels", "draw", "half")[0] == 2, "nothing is in the pool"
    call("labels", "pool", "half", "--routes", "bm25,dense")
    code, out, err = call("labels", "draw", "half", "--json")
    assert code == 0, err
    desk = desks.load(engine.store, "half")
    drawn = json.loads(out)["order"]
    assert (sorted(drawn), desk.drawn) == (sorted(desk.asked), tuple(drawn))
    shown = [id for id, _ in label_next.order_for(desk, "Ann", most=3)]
    assert list(dict.fromkeys(shown)) == drawn, "also within some minutes"
    graded(engine, [int(id[1:]) for id in (*drawn[:12], *drawn[20:22])], 3)
    assert call("labels", "draw", "half")[0] == 2, "grades are there already"
    code, out, err = call(*ARGS, "--json", "--keep", "drawn")
    figures = json.loads(out)
    told = figures["corrected"]
    assert (code, told["labelled"], told["unlabelled"], told["drawn"]) == (0, 12, 28, True)
    assert "2 questions labelled out of the drawn order count as unlabelled" in err
    sizes = {one.id: one.drawn for one in desk.questions}
    chances = {id: min(1, sizes[id].size / sizes[drawn[12]].key) for id in drawn[:12]}
    bm25, dense = experiment_store.opened(tmp_path / "evaluations" / "drawn").values.values()
    apart = {id: bm25[id]["ndcg@10"] - dense[id]["ndcg@10"] for id in chances}
    expected = sum(apart[id] / chance for id, chance in chances.items()) / 40
    one = next(pair for pair in told["pairs"] if pair["route"] == "bm25")
    assert one["mean"] == pytest.approx(expected)
    assert one["ci95"][0] <= one["mean"] <= one["ci95"][1]
    assert (one["labels"], figures["decision"]["decision"]) == (12, "undecided")


def test_a_judging_that_is_stopped_gives_no_range_and_goes_on_later(engine, call, monkeypatch):
    ids = passages(engine.corpus("tiny"))
    desks.judge(engine.store, "one", Judgement("q00", ids[0], "Ann", "person", "grade", 2))
    assert call("labels", "judge", "one")[0] == 0

    def interrupt(request):
        signal.raise_signal(signal.SIGINT)
        return right(request)

    engine.fake_llm.replies = {"judge": interrupt}
    args = ("eval", "tiny", "--labels", "one", "--split", "all", "--routes", "bm25", "--keep", "a", "--judge")
    code, out, err = call(*args, "--json")
    assert code == 1, err
    assert "judge" not in json.loads(out)
    assert "stopped by the user" in err
    engine.fake_llm.replies = {"judge": right}
    code, out, _ = call(*args, "--json")
    assert (code, json.loads(out)["judge"]["judged"] > 0) == (0, True)


def test_eval_counts_nuggets_only_by_a_model_that_agrees_with_people(engine, call, tmp_path):
    args = (
        "eval",
        "tiny",
        "--labels",
        "one",
        "--split",
        "all",
        "--routes",
        "bm25",
        "--keep",
        "kept",
        "--json",
    )
    more = ("--answers", "all", "--answer-by", "extract")
    assert call(*args, "--nuggets")[0] == 2, "without answers"
    code, _, err = call(*args, *more, "--nuggets")
    assert (code, "has a checked nugget" in err) == (2, True)
    assert "has no nuggets" in call("labels", "nuggets", "one")[1]
    for question in desks.load(engine.store, "one").questions:
        nuggets.save(engine.store, "one", question, [Nugget("It names the day.", True, "", True)], "Ann")
    assert len(json.loads(call("labels", "nuggets", "one", "--json")[1])["nuggets"]) == len(QUESTIONS)
    row = json.loads(call(*args, *more)[1])["routes"]["bm25"]["answers"]
    assert row["vital_recall"] is None, "nobody assigned them"
    asked = {q.id: q for q in desks.load(engine.store, "one").questions}
    kept = experiment_store.opened(tmp_path / "evaluations" / "kept")
    every = nuggets.pairs(asked, kept.outcomes)

    def level(answer):
        return "support" if sum(map(ord, answer)) % 2 else "not_support"

    engine.fake_llm.replies |= {
        "assign-nuggets": lambda request: json.dumps(
            {
                "fact_1": level(
                    request.messages[-1].content.split("<passage 1>\n")[1].split("\n</passage 1>")[0]
                )
            }
        )
    }
    for pair in every[:24]:
        nuggets.assign(engine.store, "one", pair, "Ann", level(pair[2]))
    code, out, err = call(*args, *more, "--nuggets")
    assert code == 0, err
    told = json.loads(out)
    assert (told["nuggets"]["pairs"], told["nuggets"]["refused"], told["nuggets"]["kappa"]) == (24, "", 1.0)
    row = told["routes"]["bm25"]["answers"]
    answers = [by["bm25"] for by in kept.outcomes.values() if by["bm25"].answer]
    right = sum(not one.abstained and level(one.answer) == "support" for one in answers)
    assert row["vital_recall"] == pytest.approx(right / len(answers))
    assert row["ci95"]["vital_recall"][0] <= row["vital_recall"] <= row["ci95"]["vital_recall"][1]
    again = experiment_store.opened(tmp_path / "evaluations" / "kept")
    assert (
        leaderboard.against(again, "bm25")["routes"]["bm25"]["answers"]["vital_recall"] == row["vital_recall"]
    )
