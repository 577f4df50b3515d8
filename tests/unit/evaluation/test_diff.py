"""Two evaluations question by question: what broke, what was fixed, which step lost a passage, and `diff`."""

import json
import math
import shutil
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cli import main
from core.domain.errors import BadInput
from core.evaluation.diff import evaluations
from core.evaluation.diff.evaluations import evaluations_diff, mcnemar
from core.evaluation.diff.questions import (
    Asked,
    EvaluationSide,
    LeftOut,
    PassageLoss,
    QuestionDiff,
    QuestionsDiff,
    depth_of,
    questions_diff,
)
from core.evaluation.experiment_store import opened
from tests.released import evaluation, figures_of, labelled, outcome
from tests.released import of_ranks as made


def by_id(found):
    return {one.id: one for one in found.questions}


def test_a_question_breaks_where_its_passage_leaves_the_first_ten(tmp_path):
    before = made(tmp_path / "a", [1, 10, 10, None, "failed", 3, "failed", 2])
    after = made(tmp_path / "b", [10, None, 1, 4, 1, "failed", "failed", 2])
    (route,) = evaluations_diff(before, after).routes
    of = {change: [one.id for one in route.questions.of(change)] for change in ("broken", "fixed")}
    assert of == {"broken": ["q1", "q5"], "fixed": ["q3", "q4"]}
    broken = by_id(route.questions)["q1"]
    assert (broken.decisive.passage, broken.decisive.before, broken.decisive.after) == ("gold", 10, None)
    # a hand-made evaluation keeps no trace: nothing is inferred
    assert (broken.decisive.loss.kind, broken.decisive.loss.step) == ("not recorded", None)
    assert "saved no run of question 'q1'" in broken.decisive.loss.words
    assert by_id(route.questions)["q5"].status == ("ok", "failed")
    # the means are over the questions that both ended well
    assert route.difference["n"] == 5
    gains = [1 / math.log2(1 + rank) if rank else 0 for rank in (10, None, 1, 4, 2)]
    assert route.means[1] == pytest.approx(sum(gains) / 5)
    assert any(
        "failed on 2 questions before and 2 after" in one
        for one in evaluations.summary(evaluations_diff(before, after), route)
    )


class Hand:
    """A side by hand: question -> (labels, ranks)."""

    def __init__(self, name, questions, relevant_from=1, documents=None):
        self.name, self.route, self.relevant_from = name, "r", relevant_from
        self.corpus, self.fingerprint, self.documents = "c", name, documents
        self.questions = {
            id: Asked(f"text of {id}", "", labels, ranks, "ok", {one: f"doc {one}" for one in ranks})
            for id, (labels, ranks) in questions.items()
        }

    def loss(self, question, passage, depth):
        return PassageLoss("fused away", f"step of {self.name}", 1, f"{question} {passage} {depth}")


def test_of_several_passages_their_number_counts_and_an_exchange_is_told():
    labels = {"a": 1, "b": 3, "c": 1}
    before = Hand("before", {"less": (labels, {"a": 1, "b": 2, "c": 30}), "swap": (labels, {"a": 1})})
    after = Hand("after", {"less": (labels, {"c": 1, "a": 11}), "swap": (labels, {"b": 10})})
    found = questions_diff(before, after, 10)
    less, swap = found.questions
    assert (less.change, [one.passage for one in less.lost], [one.passage for one in less.gained]) == (
        "broken",
        ["b", "a"],
        ["c"],
    )
    # the passage of the highest grade is told first; each is explained by the side that lacks it
    assert less.decisive.loss.step == "step of after"
    assert less.gained[0].loss.step == "step of before"
    assert (swap.change, found.exchanged, swap.decisive) == ("unchanged", 1, None)
    assert "Before: " in evaluations.passage_change(less.gained[0])
    assert "Before: " not in evaluations.passage_change(less.lost[1])


@pytest.mark.parametrize(
    ("documents", "corpus", "changed", "undetermined"),
    [
        ({"doc b"}, "c", {"all": "broken", "one": "broken", "kept": "unchanged"}, 0),
        ({"doc b", "doc a"}, "c", {"one": "unchanged", "kept": "unchanged"}, 0),  # only their labels are gone
        ({"doc z"}, "another", {"one": "unchanged", "kept": "unchanged"}, 0),
        (None, "c", {"one": "unchanged", "kept": "unchanged"}, 2),
    ],
)
def test_a_passage_lost_with_its_document_is_broken(documents, corpus, changed, undetermined):
    both, rest = {"a": 1, "b": 1}, {"b": 1}
    then = {
        "all": ({"a": 1}, {"a": 1}),
        "one": (both, {"a": 2, "b": 1}),
        "kept": (both, {"a": 11, "b": 1}),  # the deleted passage was not found before
    }
    after = Hand("after", {"all": ({}, {}), "one": (rest, {"b": 1}), "kept": (rest, {"b": 1})})
    after.documents, after.corpus = documents, corpus
    found = questions_diff(Hand("before", then), after, 10)
    assert {one.id: one.change for one in found.questions} == changed
    assert found.undetermined == undetermined
    if changed["one"] == "broken":
        one = by_id(found)["one"]
        assert ([lost.passage for lost in one.deleted], one.deleted[0].loss.kind) == (
            ["a"],
            "document deleted",
        )
        assert not one.relabelled
    after.fingerprint = "before"  # the corpus is the same
    same = questions_diff(Hand("before", then), after, 10)
    assert (same.undetermined, same.of("broken")) == (0, ())


ranks = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 20))
sides = st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), ranks)


@given(sides, sides)
def test_the_other_way_round_everything_is_mirrored_and_it_counts_like_recall(then, now):
    labels = {"a": 1, "b": 2, "c": 0}
    one = Hand("one", {id: (labels, found) for id, found in then.items()})
    other = Hand("other", {id: (labels, found) for id, found in now.items()})
    there, back = questions_diff(one, other, 10), questions_diff(other, one, 10)
    assert there.left_out.only_before == back.left_out.only_after
    turned = {"fixed": "broken", "broken": "fixed", "unchanged": "unchanged"}
    assert {q.id: turned[q.change] for q in there.questions} == {q.id: q.change for q in back.questions}
    for question in there.questions:
        had, has = (sum(at.get(p, 99) <= 10 for p in "ab") for at in (then[question.id], now[question.id]))
        assert question.change == ("fixed" if has > had else "broken" if has < had else "unchanged")
        mirrored = by_id(back)[question.id]
        assert {p.passage for p in question.lost} == {p.passage for p in mirrored.gained}


def test_mcnemar_is_exact():
    def some(change, count):
        return [QuestionDiff(f"{change}{n}", "", "", change, 1, (), (), ("ok", "ok")) for n in range(count)]

    for fixed, broken in ((0, 0), (5, 0), (3, 9), (8, 8), (40, 61), (1, 0)):
        found = (*some("fixed", fixed), *some("broken", broken), *some("unchanged", 4))
        n, least = fixed + broken, min(fixed, broken)
        by_hand = min(1.0, 2 * sum(math.comb(n, k) for k in range(least + 1)) / 2**n)
        assert mcnemar(QuestionsDiff(found, LeftOut())) == pytest.approx(by_hand)


def test_questions_that_differ_are_left_out_and_counted(tmp_path):
    before = made(tmp_path / "a", [1, 1, 1, 1, 1])
    asked = labelled(5, texts=("question 0", "another text"))
    qrels = {id: {"gold": 1} for id in ("q0", "q1", "q9")} | {
        "q2": {"other1": 1},
        "q3": {"gold": 1, "other0": 1},
    }
    asked = replace(
        asked, questions=(*asked.questions[:4], replace(asked.questions[4], id="q9")), qrels=qrels
    )
    after = made(tmp_path / "b", [None, None, None, None, None], asked=asked, more={"fingerprint": "f2" * 8})
    found = evaluations_diff(before, after)
    questions = found.routes[0].questions
    assert questions.left_out == LeftOut(1, 1, 1, 1, 0)
    assert [(one.id, one.change, one.relabelled) for one in questions.questions] == [
        ("q0", "broken", False),
        ("q3", "broken", True),
    ]
    # other0 was judged later: at rank 1 it is no gain of q3, in the counts or in the mean
    assert (questions.questions[1].gained, found.routes[0].means) == ((), (1.0, 0.0))
    told = " ".join(found.notes)
    assert "another fingerprint" in told
    assert "1 question with changed labels" in told
    assert "1 question with a changed text" in told


def test_routes_are_paired_by_name_or_as_given(tmp_path):
    ranks = {"bm25": [outcome(1), outcome(2)], "dense": [outcome(None), outcome(1)]}
    both = evaluation(tmp_path / "a", ranks)
    assert [one.before for one in evaluations_diff(both, both).routes] == ["bm25", "dense"]
    before, after = made(tmp_path / "c", [3, 3]), made(tmp_path / "d", [7, 3])
    assert not evaluations_diff(before, after).routes[0].questions.of("broken")
    found = evaluations_diff(before, after, metric="precision@5")  # its depth is that of the metric
    assert [one.id for one in found.routes[0].questions.of("broken")] == ["q0"]
    assert [depth_of(one) for one in ("ndcg@10", "recall@100", "map")] == [10, 100, 10]
    (found,) = evaluations_diff(both, both, [("bm25", "dense")]).routes
    assert [one.change for one in found.questions.questions] == ["broken", "unchanged"]
    assert evaluations.route_name(found) == "bm25 then, dense now"
    other = made(tmp_path / "b", [1, 1], route="rerank")
    with pytest.raises(BadInput, match="no route in common; name one of each, A_ROUTE:B_ROUTE"):
        evaluations_diff(both, other)
    with pytest.raises(BadInput, match="did not measure route 'splade'; it has: rerank"):
        evaluations_diff(both, other, [("bm25", "splade")])
    with pytest.raises(BadInput, match="metric 'f1': give one of ndcg@10"):
        evaluations_diff(both, both, metric="f1")


def test_nothing_in_common_is_one_line(tmp_path):
    one = made(tmp_path / "a", [1])
    strangers = replace(labelled(1), questions=(replace(labelled(1).questions[0], id="x"),), qrels={})
    with pytest.raises(BadInput, match="no question in common; they have for example 'q0' and 'x'"):
        evaluations_diff(one, made(tmp_path / "b", [1], asked=strangers))
    unlabelled = replace(labelled(1), qrels={})
    with pytest.raises(BadInput, match="no question to compare: 1 question without a relevant passage"):
        evaluations_diff(one, made(tmp_path / "c", [1], asked=unlabelled))
    others = replace(labelled(1), qrels={"q0": {"other1": 1}})
    with pytest.raises(BadInput, match="1 question whose relevant passages all changed"):
        evaluations_diff(one, made(tmp_path / "d", [1], asked=others))


@pytest.fixture
def folders(tmp_path):
    return [
        str(made(tmp_path / at, ranks).folder) for at, ranks in (("a", [1, 2, None]), ("b", [1, None, 3]))
    ]


def test_the_command_writes_one_document(folders, capsys):
    assert main(["diff", *folders, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["question"], one["change"], one["passage"], one["step"]) for one in found["questions"]] == [
        ("q0", "unchanged", None, None),
        ("q1", "broken", "gold", None),
        ("q2", "fixed", "gold", None),
    ]
    (route,) = found["routes"]
    assert (route["fixed"], route["broken"], route["unchanged"], route["mcnemar_p"]) == (1, 1, 1, 1.0)
    assert route["difference"]["wins"] == route["difference"]["losses"] == 1
    assert main(["diff", *folders, "--route", "bm25:bm25"]) == 0
    said = capsys.readouterr().out
    assert "1 broken, 1 fixed, 1 unchanged of 3 questions (exact McNemar test, p = 1.000)." in said
    assert "gold: rank 2, now not ranked. The step is not known" in said


def test_bad_input_is_one_line_each(folders, tmp_path, capsys):
    first = folders[0]
    alone = tmp_path / "alone.json"
    alone.write_text(json.dumps(figures_of(tmp_path / "a")))
    damaged, empty = tmp_path / "damaged", tmp_path / "empty"
    shutil.copytree(first, damaged)
    (damaged / "questions.jsonl").write_text("no json\n" * 3)
    empty.mkdir()
    for args, said in (
        ((first, "nope"), "'nope' is not a folder, a file or a saved evaluation; saved are: "),
        ((first, str(alone)), "is a metrics.json alone, which lacks the questions; give the folder"),
        ((str(damaged), first), "is damaged: JSONDecodeError"),
        ((first, str(empty)), "contains no evaluation: metrics.json is missing"),
        ((*folders, "--route", "bm25:"), "--route 'bm25:': give the name of a route, or A_ROUTE:B_ROUTE"),
        ((*folders, "--metric", "x"), "metric 'x': give one of"),
    ):
        assert main(["diff", *args]) == 2
        told = capsys.readouterr().err
        assert said in told
        assert told.count("\n") == 1


def test_a_broken_store_of_runs_leaves_the_step_unknown(folders, tmp_path):
    (tmp_path / "b" / "runs.sqlite").write_bytes(b"no database" * 100)
    with (tmp_path / "b" / "questions.jsonl").open() as file:
        lines = [json.loads(line) for line in file]
    for line in lines[1:]:
        line["routes"]["bm25"]["run"] = "r1"
    (tmp_path / "b" / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    side = EvaluationSide(opened(tmp_path / "b"), "bm25")
    found = side.loss("q1", "gold", 10)
    assert (found.kind, found.step) == ("not recorded", None)
    assert found.words.startswith("The step is not known: ")


def test_a_route_with_two_models_is_two_rows_and_two_parts_of_the_text(tmp_path, capsys):
    names = ("hyde@a", "hyde@b")
    for folder, ranks in (("before", (1, None)), ("after", (None, 1))):
        by_route = {name: [outcome(rank), outcome(2)] for name, rank in zip(names, ranks, strict=True)}
        evaluation(tmp_path / folder, by_route)
    folders = [str(tmp_path / "before"), str(tmp_path / "after")]
    assert main(["diff", *folders, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["routes"]
    assert [(one["route_before"], one["broken"], one["fixed"]) for one in rows] == [
        ("hyde@a", 1, 0),
        ("hyde@b", 0, 1),
    ]
    assert main(["diff", *folders]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line in names] == [*names]
    assert main(["diff", folders[0], folders[0], "--route", "hyde@a:hyde@b"]) == 0
    assert "hyde@a then, hyde@b now" in capsys.readouterr().out.splitlines()
