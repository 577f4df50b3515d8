"""The report of a release, its snapshot, the comparison with an earlier one, and the `gate` command."""

import json
import re
from dataclasses import replace

import pytest

from core.cli import main
from core.domain.errors import BadInput
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import decide
from core.evaluation.release.measured import of_evaluation, of_figures
from core.evaluation.release.report import opponent, report, setup, worse_at
from core.evaluation.release.snapshot import compare, failures, read, snapshot
from core.evaluation.templating import markdown
from tests.released import evaluation, figures_of, labelled, outcome
from tests.runs import HOSTILE

pytestmark = pytest.mark.slow

EASY = Criteria(no_loss=False)


def made(folder, *, shift=0, count=64, **more):
    """bm25 at rank 2, dense at rank 1 except for every third question; `shift` lowers both."""
    bm25 = [outcome(2 + shift, ms=4.0) for _ in range(count)]
    dense = [outcome((4 if n % 3 == 0 else 1) + shift, ms=9.0) for n in range(count)]
    return of_evaluation(evaluation(folder, {"bm25": bm25, "dense": dense}, **more))


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Where the evaluation of `measured` is, to be read only."""
    return tmp_path_factory.mktemp("kept") / "first"


@pytest.fixture(scope="module")
def measured(first):
    return made(first)


@pytest.fixture(scope="module")
def now_worse(tmp_path_factory):
    """The same release with both routes lower."""
    folder = tmp_path_factory.mktemp("kept") / "worse"
    return folder, made(folder, shift=2)


def test_the_report_tells_the_decision_its_costs_and_its_limits(measured):
    decision = decide(measured, Criteria(minimum=0.5, max_p95_ms=50.0, no_loss=False))
    page = report(measured, decision)
    assert page == report(measured, decide(measured, decision.criteria))  # the same input, the same text
    assert "Ship Dense" in page
    assert "<h2>Criteria</h2>" in page
    assert "What Dense does worse than BM25" in page
    assert "It scores lower on 22 questions" in page
    assert "unjudged" not in page.split("limits")[0]
    assert "are unjudged" in page
    assert "The ladder" in page
    assert "corpus fingerprint" in page
    assert "<script" not in page
    assert not re.search(r"(?:src|href|url)\s*[=(]", page)
    assert "prefers-color-scheme:dark" in page
    text = report(measured, decision, kind="markdown")
    assert text.startswith("# Release decision: tiny\n")
    assert "| Dense |" in text


@pytest.mark.trust
def test_texts_of_others_are_never_markup(tmp_path):
    texts = [f"{text} {n}" for n, text in enumerate(HOSTILE * 16)]
    asked = labelled(64, texts=texts, modes=(HOSTILE[0], HOSTILE[1]))
    measured = made(tmp_path / "evil", asked=replace(asked, name=HOSTILE[2]))
    measured = replace(measured, titles={"bm25": HOSTILE[0], "dense": HOSTILE[2]})
    decision = decide(measured, EASY)
    page = report(measured, decision)
    assert "&lt;script&gt;" in page
    for mark in ("<img", "<script", "<svg", "</style></div>", 'onmouseover="alert'):
        assert mark not in page
    assert page.count("<style>") == 1
    text = re.sub(r"\\.", "", report(measured, decision, kind="markdown"))  # what is left is markup
    for mark in ("<img", "<script", "![pixel]", "](http", "](javascript", "](java", "://", "<"):
        assert mark not in text
    rows = [line for line in text.split("\n") if line.startswith("| ")]
    assert all(line.endswith(" |") for line in rows)


@pytest.mark.parametrize(
    "text",
    [
        *("a | b", "# head", "- item", "1. item", "*a*", "_b_", "[x](y)", "<b>", "`c`", "www.evil.example"),
        *("see http://evil.example", ":smile:", "@someone", "$x$", "~~gone~~", "a\n\n# b"),
        "10.5 s at 22:05, p = 0.03 (95% interval)",
    ],
)
def test_markdown_shows_text_as_it_is(text):
    said = markdown(text)
    assert "\n" not in said
    plain = re.sub(r"\\(.)", "", said)
    for mark in "|#*[<`@$~":
        assert mark not in plain
    assert not re.match(r"(-|\d+\.) ", said)
    assert "www." not in said
    assert not re.search(r"(?<!\\):/", said)
    assert re.sub(r"\\(.)", r"\1", said) == " ".join(text.split())
    assert (said == text) is text.startswith("10.5 s")


def test_the_worst_questions_come_first_against_the_best_other(measured):
    lost = worse_at(measured, "dense", "bm25", "ndcg@10")
    assert len(lost) == 22
    assert [one.question for one in lost][:2] == ["q0", "q12"]  # equal ones by their id
    assert lost[0].value < lost[0].other
    assert worse_at(of_figures(measured.figures, "bare"), "dense", "bm25", "ndcg@10") is None
    decision = decide(measured, EASY)
    assert [opponent(decision, one) for one in ("dense", "bm25")] == ["bm25", "dense"]


def test_what_is_not_recorded_and_what_figures_alone_cannot_tell_is_said(measured):
    told = dict(setup(measured, decide(measured, EASY)))
    assert told["first question asked"] == "not recorded"
    assert told["machine of the measurements"].startswith("not recorded; this report was written on")
    assert told["corpus fingerprint"] == "f1" * 8
    bare = of_figures(measured.figures, "bare")
    page = report(bare, decide(bare, EASY))
    assert "cannot be determined from metrics.json alone" in page
    assert "What the verdict rests on" in page


def test_a_snapshot_comes_back_as_it_was_and_is_no_regression_of_itself(measured):
    decision = decide(measured, EASY)
    content = snapshot(measured, decision)
    assert content == snapshot(measured, decision)
    back = read(content)
    assert (back.chosen, back.baseline, back.metric, back.corpus) == ("dense", "bm25", "ndcg@10", "tiny")
    assert back.values["dense"]["ndcg@10"] == dict(measured.values("ndcg@10")["dense"])
    assert back.questions["q3"].text == "question 3"
    assert Criteria(**{**back.criteria, "derived": ()}) == EASY
    assert back.decision["chosen"] == "dense"
    found = compare(back, measured, decision)  # with itself
    assert (found.regression, found.paired, found.unpaired) == ("excluded", 64, 0)
    assert found.largest_drop < 0.05
    assert all(one.delta == 0 for one in found.changes)


def test_a_regression_is_told_with_its_kinds(measured, now_worse):
    before = read(snapshot(measured, decide(measured, EASY)))
    _, now = now_worse
    found = compare(before, now, decide(now, replace(EASY, cheaper=False)))
    assert found.regression == "shown"
    assert found.summary.startswith("A regression: Dense now against Dense then, nDCG@10 −")
    assert {one.mode for one in found.changes if one.dropped} == {"all questions", "hard", "plain"}
    assert (found.changes[0].metric, found.changes[0].level) == ("ndcg@10", 0.95), "the planned one is first"
    old, new = before.values["dense"]["ndcg@10"], now.values("ndcg@10")["dense"]
    main_one = next(one for one in found.changes if one.metric == "ndcg@10" and one.mode == "all questions")
    assert main_one.delta == pytest.approx(sum(new[q] - old[q] for q in new) / 64)


def test_questions_of_one_release_alone_are_left_out_and_nothing_in_common_cannot_be_told(measured, tmp_path):
    before = read(snapshot(measured, decide(measured, EASY)))
    texts = ["another text", *(f"question {n}" for n in range(1, 70))]
    asked = labelled(70, texts=texts)
    asked = replace(asked, qrels={**asked.qrels, "q1": {"gold": 1, "other3": 1}})
    now = made(tmp_path / "grown", count=70, asked=asked)
    found = compare(before, now, decide(now, EASY))
    assert (found.paired, found.unpaired) == (63, 7)
    assert any("7 questions excluded" in note for note in found.notes)
    assert any("1 question with changed labels" in note for note in found.notes)
    assert next(one for one in found.changes if one.mode == "all questions").n == 63
    now = made(tmp_path / "other", asked=labelled(64, texts=[f"else {n}" for n in range(64)]))
    decision = decide(now, EASY)
    found = compare(before, now, decision)
    assert (found.regression, found.largest_drop, found.changes) == ("undecided", None, ())
    assert failures(decision, found), "nothing was compared, so nothing is guarded"
    bare = of_figures(measured.figures, "bare")
    assert compare(before, bare, decide(bare, EASY)).regression == "undecided"


def test_a_guard_fails_on_what_is_known_and_not_on_what_is_not(tmp_path):
    """20 questions exclude no drop of .05, and choose nothing: that fails a choice, not a guard."""
    few = made(tmp_path / "few", count=20)
    decision = decide(few, EASY)
    assert decision.verdict.decision == "undecided"
    assert failures(decision, None) == ["not enough evidence"]
    found = compare(read(snapshot(few, decision)), few, decision)
    assert (found.regression, found.then, found.now) == ("undecided", "dense", "dense")
    assert 0.05 < found.largest_drop < 0.2
    assert failures(decision, found) == []
    assert len(failures(decision, found, fail_undecided=True)) == 1


def test_a_drop_that_is_shown_but_small_is_no_regression(tmp_path):
    before = made(tmp_path / "before", count=400)
    dense = [outcome(2 if n % 30 == 1 else 4 if n % 3 == 0 else 1, ms=9.0) for n in range(400)]
    bm25 = [outcome(2, ms=4.0) for _ in range(400)]
    now = of_evaluation(evaluation(tmp_path / "now", {"bm25": bm25, "dense": dense}))
    then = read(snapshot(before, decide(before, EASY)))
    for least, regression in ((None, "excluded"), (0.005, "shown")):
        found = compare(then, now, decide(now, replace(EASY, min_effect=least)))
        assert found.changes[0].verdict == "worse"
        assert (found.regression, found.then, found.now) == (regression, "dense", "dense")


@pytest.fixture(scope="module")
def written(measured):
    return snapshot(measured, decide(measured, EASY))


def test_a_damaged_snapshot_is_refused(written):
    for bend, said in (
        (lambda d: d.update(kind="else"), "not a release"),
        (lambda d: d.update(schema=3), "schema 3"),
        (lambda d: d.update(extra=1), "damaged"),
        (lambda d: d.update(compared="nobody"), "damaged"),
        (lambda d: d["values"]["dense"]["ndcg@10"].update(q1="high"), "damaged"),
        (lambda d: d["questions"]["q1"].pop("text"), "damaged"),
        (lambda d: d["questions"].update(q99=1), "damaged"),
    ):
        found = json.loads(written)
        bend(found)
        with pytest.raises(BadInput, match=said):
            read(json.dumps(found))
    for content in (b"", b"{", b"[]", b"\xff\xfe", "3", "[" * 100_000):
        with pytest.raises(BadInput):
            read(content)


def gate(*args):
    return main(["gate", *map(str, args)])


def test_the_exit_code_says_whether_a_route_passes(measured, first, tmp_path, capsys):
    alone = tmp_path / "alone.json"
    alone.write_text(json.dumps(figures_of(first)))
    for args, code, said in (
        ((first, "--min-quality", 0.5), 0, "Ship Dense"),
        ((alone, "--min-quality", 0.5), 0, "Ship Dense"),
        ((first, "--min-quality", 0.99), 1, "Nothing passes"),
        ((first, "--max-unjudged", 0.1), 1, "Not enough evidence"),
        ((tmp_path / "nowhere",), 2, ""),
        ((first, "--metric", "nobody"), 2, ""),
        ((first, "--max-failed", 3), 2, ""),
        ((first, "--report", tmp_path / "report.pdf"), 2, ""),
        ((first, "--report", tmp_path / "no" / "report.md"), 2, ""),
        ((first, "--against", tmp_path / "no.json"), 2, ""),
    ):
        assert gate(*args) == code
        out, err = capsys.readouterr()
        assert said in out
        assert ("metrics.json alone" in err) is (args[0] == alone)


def test_the_command_writes_what_the_next_release_is_held_against(first, now_worse, tmp_path, capsys):
    kept, told = tmp_path / "kept.json", tmp_path / "report.html"
    assert gate(first, "--snapshot", kept, "--report", told) == 0
    assert told.read_text().startswith("<!doctype html>")
    capsys.readouterr()
    args = ("--best", "--against", kept, "--json", "--report", tmp_path / "r.md")
    assert gate(now_worse[0], *args) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["regression"], found["chosen"]) == ("shown", "dense")
    assert "A regression" in (tmp_path / "r.md").read_text()
    kept.write_text("{}")
    assert gate(first, "--against", kept) == 2
