"""Answers measured: by hand, against a second implementation, and from the question to the report."""

import json
import re
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.metrics import ANSWERS, ANSWERS_COMPARED
from core.domain.types import AnswerStyle, Query
from core.evaluation import dataset, report, scoring, sets, summary
from core.evaluation.answers import (
    Given,
    against_golds,
    holds,
    measure,
    words,
)
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.outcome import Journal, Outcome
from core.evaluation.runner import Plan, run
from scripts import tables
from tests.fakes import FakeEngine, ScriptedLLM

TEXT = st.text(st.sampled_from("abthe An.,'-!24 \nThe é“[1]"), max_size=40)
PARCEL = "The parcel is photographed on all of its sides and reported in 48 hours"
ABSTAINED = "The passages do not answer this."


def squad_words(text):
    """The definition, letter by letter."""
    kept = "".join(
        c for c in text.lower() if not (c.isascii() and c.isprintable() and not c.isalnum()) or c == " "
    )
    return [w for w in re.split(r"\s+", re.sub(r"(?<!\w)(?:a|an|the)(?!\w)", " ", kept)) if w]


def squad_f1(mine, gold):
    left, same = list(gold), 0
    for word in mine:
        if word in left:
            left.remove(word)
            same += 1
    if not mine or not gold:
        return float(mine == gold)
    if not same:
        return 0.0
    precision, recall = same / len(mine), same / len(gold)
    return 2 * precision * recall / (precision + recall)


@given(TEXT, st.lists(TEXT, min_size=1, max_size=3))
def test_exact_and_f1_equal_a_second_implementation(text, golds):
    text = text.replace("[", "").replace("]", "")
    found = against_golds(text, golds)
    mine = squad_words(text)
    assert found["exact"] == max(float(mine == squad_words(gold)) for gold in golds)
    assert found["f1"] == pytest.approx(max(squad_f1(mine, squad_words(gold)) for gold in golds))


@given(TEXT, TEXT)
def test_bounds_of_the_gold_measures(one, other):
    found = against_golds(one, [other])
    assert all(0.0 <= value <= 1.0 for value in found.values())
    if found["exact"]:
        assert found["f1"] == found["gold_recall"] == 1.0
    if found["contains"]:
        assert found["gold_recall"] == 1.0
    if "[" not in one + other:
        assert found["f1"] == against_golds(other, [one])["f1"]
    more = against_golds(one, [other, "something else"])
    assert all(more[name] >= found[name] for name in found)


def test_the_gold_measures_by_hand():
    """Six words against four, three shared: P 3/6, R 3/4, F1 0.6."""
    found = against_golds("The keys are stored for 24 hours. [1][2]", ["stored 24 long hours"])
    assert found == {"exact": 0.0, "f1": pytest.approx(0.6), "contains": 0.0, "gold_recall": 0.75}
    found = against_golds("For 24 hours [3].", ["never", "24 Hours!"])
    assert found == {"exact": 0.0, "f1": pytest.approx(0.8), "contains": 1.0, "gold_recall": 1.0}
    assert against_golds("The U.S. [1]", ["US"])["exact"] == 1.0
    assert against_golds("", ["24 hours"]) == dict.fromkeys(("exact", "f1", "contains", "gold_recall"), 0.0)


def test_a_gold_answer_stands_in_the_text_word_by_word():
    assert holds(words("He knows no one."), words("no one"))
    assert not holds(words("He knows one."), words("no"))
    assert not holds(words("twenty four and hours"), words("24 hours"))
    assert not holds(["anything"], [])


@pytest.mark.parametrize(
    ("text", "gold", "right"),
    [
        ("Stored for 24 hours [1].", "24 hours", 1.0),
        ("Stored for 24 long hours [1].", "24 hours", 0.0),
        ("Yes, both are [1].", "yes", 1.0),
        ("There is no doubt that yes.", "no", 0.0),
        # content words of the gold: parcel photographed sides reported 48 hours; three of six, then two
        ("Reports of a parcel: within 48 [1].", PARCEL, 1.0),
        ("The parcel has sides on all of its sides [1].", PARCEL, 0.0),
        ("to be or not to be, that is it", "to be or not to be", 1.0),
    ],
)
def test_the_rule_for_a_correct_answer(text, gold, right):
    assert measure(Given(text), [gold], True)["correct"] == right


GAVE_UP, SAID = Given(ABSTAINED, abstained=True), Given("For 24 hours [1].", ("k",))
NO_MATCH = dict.fromkeys(("exact", "f1", "contains", "gold_recall"), 0.0)
WRONG = {"correct": 0.0, "supported_accuracy": 0.0}
WITHHELD = WRONG | {"abstention_precision": 0.0, "false_abstention": 1.0}
RIGHTLY = dict.fromkeys(("correct", "supported_accuracy", "abstention_precision", "abstention_recall"), 1.0)


@pytest.mark.parametrize(
    ("given_", "golds", "answerable", "labels", "found"),
    [
        (GAVE_UP, ["not"], True, "k", NO_MATCH | WITHHELD),
        (GAVE_UP, [], False, "", RIGHTLY),
        (SAID, [], False, "", WRONG | {"abstention_recall": 0.0}),
        # what only the web knows: a right answer is right, whether it is supported nobody labelled
        (SAID, ["24 hours"], False, "", {"correct": 1.0}),
        # whether the documents answer it is not known: the gold answer counts, abstaining is not judged
        (GAVE_UP, ["24 hours"], None, "", NO_MATCH | {"correct": 0.0}),
        (SAID, [], None, "", {}),
    ],
)
def test_what_abstaining_is_worth(given_, golds, answerable, labels, found):
    assert measure(given_, golds, answerable, frozenset(labels)) == dict.fromkeys(ANSWERS) | found


def test_citations_by_hand():
    text = "Keys are stored [2]. For 24 hours [1][9]. Nobody knows why. See also [3]."
    given_ = Given(text, ("b", "a", "c"), False, (9,))
    found = measure(given_, ["24 hours"], True, frozenset({"a", "c", "z"}))
    assert found["citation_precision"] == 0.5  # a and c of b, a, c and the wrong 9
    assert found["citation_recall"] == 0.5  # the second and the last of four sentences
    assert (found["correct"], found["supported_accuracy"]) == (1.0, 0.0)  # a wrong marker
    clean = Given("For 24 hours [1].", ("a",))
    for labels, supported in (({"a"}, 1.0), ({"b"}, 0.0), ((), None)):
        assert measure(clean, ["24 hours"], True, frozenset(labels))["supported_accuracy"] == supported
    bare = measure(Given("For 24 hours."), ["24 hours"], True, frozenset({"a"}))
    names = ("citation_precision", "citation_recall", "supported_accuracy")
    assert [bare[name] for name in names] == [None, 0.0, 0.0]


@given(
    TEXT,
    st.lists(st.sampled_from("abc"), unique=True, max_size=3),
    st.lists(st.integers(1, 12), max_size=3),
    st.booleans(),
    st.sampled_from([True, False, None]),
    st.lists(TEXT, max_size=2),
    st.booleans(),
)
def test_whatever_was_written_every_measure_is_a_share_or_nothing(
    text, cited, wrong, abstained, answerable, golds, labelled
):
    given_ = Given(text, tuple(cited), abstained, tuple(wrong))
    found = measure(given_, golds, answerable, frozenset("ab" if labelled else ""))
    assert set(found) == set(ANSWERS)
    assert all(value is None or 0.0 <= value <= 1.0 for value in found.values())
    if found["supported_accuracy"]:
        assert found["correct"] == 1.0
        assert abstained or not wrong


def asked(id, text, gold=(), answerable=True):
    return Question(id, Query(text), answers=tuple(gold), answerable=answerable)


QUESTIONS = (
    asked("q1", "How long are keys stored?", ["24 hours"]),
    asked("q2", "Is a fragile vase shipped double boxed?", ["yes"]),
    asked("q3", "Who is the mayor of Leipzig?", answerable=False),
    asked("q4", "When does express shipping deliver?", ["the next business day"]),
)
SET = LabelledSet(
    "small", QUESTIONS, {"q1": {"keys:0-80": 1}, "q2": {"fragile:0-80": 1}, "q4": {"express:0-80": 1}}
)


def outcome(text, citations=(), wrong=(), ms=5.0):
    return Outcome("ok", ms, answer=text, citations=citations, abstained=text == ABSTAINED, wrong=wrong)


OUTCOMES = {
    "q1": {"one": outcome("24 hours [1].", ("keys:0-80",)), "two": outcome("Two years [1].", ("keys:0-80",))},
    "q2": {"one": outcome(ABSTAINED), "two": outcome("Yes [1][7].", ("fragile:0-80",), (7,))},
    "q3": {"one": outcome(ABSTAINED), "two": outcome("Mr <b>Nobody</b> [1].", ("keys:0-80",))},
    "q4": {"one": Outcome("failed", 1.0, error="broken"), "two": Outcome("ok", 5.0)},
}


def test_the_figures_of_answers_by_hand():
    figures = summary.summarise(SET, OUTCOMES, ["one", "two"])
    one, two = (figures["routes"][route]["answers"] for route in ("one", "two"))
    counts = ("n", "answered", "abstained", "failed", "unwritten")
    assert [one[key] for key in counts] == [3, 1, 2, 1, 0]
    assert [two[key] for key in counts] == [3, 3, 0, 0, 1]
    assert (one["correct"], two["correct"]) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert (one["supported_accuracy"], two["supported_accuracy"]) == (pytest.approx(2 / 3), 0.0)
    assert figures["routes"]["one"]["supported_accuracy"] == one["supported_accuracy"]
    judged = ("abstention_precision", "abstention_recall", "false_abstention")
    assert [one[name] for name in judged] == [0.5, 1.0, 0.5]
    assert [two[name] for name in judged] == [None, 0.0, 0.0]
    assert (one["counts"]["f1"], one["counts"]["citation_precision"]) == (2, 1)
    assert (two["citation_precision"], two["wrong_markers"]) == (0.75, 1)
    assert one["ci95"]["correct"][0] <= one["correct"] <= one["ci95"]["correct"][1]
    apart = two["vs_baseline"]["correct"]
    assert (apart["n"], apart["delta"]) == (3, pytest.approx(-1 / 3))
    assert set(two["vs_baseline"]) <= set(ANSWERS_COMPARED)
    assert "support" in figures["answers"]


def test_rankings_are_measured_alike_without_answers_of_which_nothing_is_reported():
    bare = {q: {r: replace(o, answer=None) for r, o in by.items()} for q, by in OUTCOMES.items()}
    figures, plain = (summary.summarise(SET, o, ["one", "two"]) for o in (OUTCOMES, bare))
    assert "answers" not in plain
    for route, row in plain["routes"].items():
        assert "answers" not in row
        assert {key: figures["routes"][route][key] for key in row} == row
    assert report.page(plain).count("Answers") == 0
    assert tables.answers(plain) == ""


def test_measures_of_other_evaluations_are_averaged_in_the_same_way():
    extra = {"one": {"q1": {"executes": 1.0}, "q2": {"executes": 0.0}}, "two": {"q1": {"executes": None}}}
    routes = summary.summarise(SET, OUTCOMES, ["one", "two"], extra=extra)["routes"]
    assert (routes["one"]["extra"]["executes"], routes["two"]["extra"]["executes"]) == (0.5, None)
    assert routes["two"]["extra"]["vs_baseline"] == {}


def test_what_is_written_down_can_be_read_by_people(tmp_path):
    figures = summary.summarise(SET, OUTCOMES, ["one", "two"])
    report.write(tmp_path, figures, SET, OUTCOMES)
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    asked_of = [(line["question"], line["route"]) for line in lines]
    assert asked_of == [(q, route) for q in ("q1", "q2", "q3") for route in ("one", "two")]
    assert (lines[0]["gold"], lines[0]["measures"]["correct"]) == (["24 hours"], 1.0)
    assert lines[3]["wrong citations"] == [7]
    html = (tmp_path / "report.html").read_text()
    assert "Answers against one" in html
    assert "not by reading them" in html
    one, two = tables.answers(figures).splitlines()[-2:]
    assert one.startswith("| `one` | 0.67 [")
    assert "0.75 / 1.00 | - / 0.00 | 0 | 0 | 5 ms |" in two


def replies(request):
    """Right, without a citation, abstaining, and broken."""
    said = request.messages[-1].content
    told = {
        "keys stored": "They are stored for 24 hours [1].",
        "fragile vase": "Yes [9].",
        "mayor": ABSTAINED,
        "express": "",
    }
    return next(text for part, text in told.items() if part in said.rpartition("Question:")[2])


def test_from_the_question_to_the_figures(tmp_path):
    llm = ScriptedLLM({"answer": replies, "evidence": "0.9"})
    engine = FakeEngine(tmp_path, llm=llm)
    plan = Plan("tiny", ("dense",), style=AnswerStyle())
    conditions = {"routes": ["dense"], "answers": asdict(plan.style)}
    with Journal.open(tmp_path / "out", conditions) as journal:
        outcomes, whole = run(engine, SET, plan, journal=journal)
    assert whole
    q1 = outcomes["q1"]["dense"]
    assert q1.answer == "They are stored for 24 hours [1]."
    assert q1.citations == q1.shown[:1] == (q1.hits[0][0],)
    assert (outcomes["q2"]["dense"].wrong, outcomes["q2"]["dense"].uncited) == ((9,), 1)
    assert outcomes["q3"]["dense"].abstained
    with Journal.open(tmp_path / "out", conditions) as journal:
        assert journal.done == outcomes, "what was written down is read again as it was"
    block = summary.summarise(SET, outcomes, ["dense"])["routes"]["dense"]["answers"]
    assert block["abstention_recall"] == 1.0
    assert block["n"] + block["failed"] == 4


def test_a_failing_model_is_counted_beside_the_means(tmp_path):
    def answer(request):
        return 1 / 0 if "mayor" in request.messages[-1].content else "24 hours [1]."

    llm = ScriptedLLM({"answer": answer, "evidence": "0.9"})
    plan = Plan("tiny", ("dense",), style=AnswerStyle())
    with Journal.open(tmp_path / "out", {}) as journal:
        outcomes, _ = run(FakeEngine(tmp_path, llm=llm), SET, plan, journal=journal)
    block = summary.summarise(SET, outcomes, ["dense"])["routes"]["dense"]["answers"]
    assert (block["n"], block["failed"], block["unwritten"]) == (3, 1, 0)
    assert block["abstention_recall"] is None
    ((failed, one),) = [(id, by["dense"]) for id, by in outcomes.items() if by["dense"].error]
    assert one.status == "ok", "what was found is measured"
    assert one.hits
    with Journal.open(tmp_path / "out", {}, retry=True) as journal:
        assert list(journal.done) == [id for id in outcomes if id != failed], "it can be asked again"


def test_answers_are_copied_without_a_model(tmp_path):
    llm = ScriptedLLM(missing="no model")
    plan = Plan("tiny", ("bm25",), style=AnswerStyle(by="extract"))
    outcomes, _ = run(FakeEngine(tmp_path, llm=llm), SET, plan)
    assert {by["bm25"].status for by in outcomes.values()} == {"ok"}
    assert all(by["bm25"].answer for by in outcomes.values())
    values = scoring.measured(SET, outcomes, ["bm25"])["bm25"]
    assert values["q1"]["supported_accuracy"] in (0.0, 1.0)


def test_questions_without_an_answer_are_asked_and_count_not_for_rankings(tmp_path):
    (tmp_path / "qrels").mkdir()
    about = {
        "q1": {"answerable": True, "answers": ["x", "NA", "y", "x", " "]},
        "q2": {"answerable": False, "answers": []},
        "q3": {"answer": "z"},
        "q4": {"answerable": True, "answers": ["unjudged"]},
        "q5": {},
    }
    rows = [json.dumps({"_id": id, "text": "a?", "metadata": known}) for id, known in about.items()]
    (tmp_path / "queries.jsonl").write_text("\n".join(rows))
    (tmp_path / "qrels" / "test.tsv").write_text("q1\td1\t1\nq3\td1\t1\nq5\td1\t1\n")
    found = dataset.beir(tmp_path)
    assert [(q.id, q.answers, q.answer, q.answerable) for q in found.questions] == [
        ("q1", ("x", "y"), "x", True),
        ("q2", (), None, False),
        ("q3", ("z",), "z", True),
        ("q5", (), None, None),
    ]
    outcomes = {q.id: {"one": Outcome("ok", 1.0, (("d1", 1.0),))} for q in found.questions}
    figures = summary.summarise(found, outcomes, ["one"])
    assert (figures["queries"], figures["labelled"], figures["unlabelled"]) == (4, 3, 1)
    assert (figures["routes"]["one"]["mrr@10"], figures["routes"]["one"]["n"]) == (1.0, 3)
    (tmp_path / "qrels" / "test.tsv").write_text("nobody\td1\t1\n")
    with pytest.raises(dataset.BadInput, match="is judged in qrels"):
        dataset.beir(tmp_path)


@pytest.mark.parametrize(
    ("row", "answers", "answerable"),
    [
        ({"mode": "plain", "answer": "24 hours"}, ("24 hours",), True),
        ({"mode": "no_answer", "answer": "The documents do not say."}, (), False),
        ({"mode": "outside_knowledge", "answer": "Three.", "web": [{"doc": "iso.md"}]}, ("Three.",), False),
        ({"mode": "outside_knowledge", "answer": "It needs a live source."}, (), False),
        ({"mode": "no_retrieval", "answer": "A greeting."}, (), None),
        ({"mode": "structured", "answer": "It is held.", "sql": "SELECT 1"}, ("It is held.",), None),
        ({"mode": "plain"}, (), None),
        ({"mode": "plain", "answer": "x", "answers": ["y"], "answerable": False}, (), False),
    ],
)
def test_which_written_questions_the_documents_answer(tmp_path, row, answers, answerable):
    (tmp_path / "q.jsonl").write_text(json.dumps({"text": "?", **row}))
    (found,) = dataset.written([tmp_path / "q.jsonl"], name="s").questions
    assert (found.answers, found.answerable, found.answer) == (answers, answerable, row.get("answer"))


def test_the_support_questions_say_what_the_documents_answer():
    questions = sets.read("support", None, split="all").questions
    assert sum(q.answerable is False for q in questions) == 32
    assert all(q.answers for q in questions if q.answerable)
    assert {q.mode for q in questions if q.answerable is None} == {"no_retrieval", "structured"}
