"""Which thresholds spans have, what labels say of their scores, and what parameters they are."""

from dataclasses import replace

import pytest

from core.domain.errors import BadInput
from core.domain.outputs import (
    Decision,
    Grading,
    PassageGrade,
    Round,
    Selection,
    Sentence,
    SentenceFilter,
    Written,
)
from core.domain.settings import Settings
from core.domain.types import Link, Query, Span
from core.evaluation import experiment_store
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.tuning import threshold_cases
from core.evaluation.tuning.saving import Setting, changes, in_words, merged, setting, settled
from core.evaluation.tuning.threshold_cases import (
    BEST,
    NO_GOLD,
    NO_GRADE,
    NO_QUOTE,
    NOT_TOLD,
    UNLABELLED,
    found,
)
from core.store.presets import Preset
from tests.calibrated import asked, crag, evidence, graded, kept, result

LABELLED = LabelledSet(
    "tiny",
    (
        Question("yes", Query("?"), answers=("Paris",), answerable=True),
        Question("no", Query("?"), answerable=False),
        Question("open", Query("?")),
    ),
    {"yes": {"p": 3, "background": 1}},
    2,
)


def one(result_, question="yes", quotes=None):
    return found([(question, result_)], LABELLED, quotes)


def by_key(got):
    return {target.key.partition(":")[2]: target for target in got.targets}


def pairs(target):
    return [(case.score, case.positive) for case in target.cases]


def test_grades_count_by_question_for_both_thresholds_and_by_passage():
    targets = by_key(one(result("crag", graded({"p": 0.4, "background": 0.7, "none": None}))))
    assert list(targets) == ["high:question", "low:question", "high:passage"]
    assert pairs(targets["high:question"]) == pairs(targets["low:question"]) == [(0.7, True)]
    assert (targets["high:question"].shipped, targets["low:question"].shipped) == (0.5, 0.2)
    assert (targets["high:question"].acts, targets["low:question"].acts) == ("from", "below")
    assert pairs(targets["high:passage"]) == [(0.4, True), (0.7, False)]  # background is not relevant
    assert targets["high:passage"].left_out == {NO_GRADE: 1}
    span = graded({"p": 0.4})  # its own numbers do not give this decision
    assert not one(result("crag", replace(span, output=replace(span.output, decision="correct")))).targets


def test_questions_that_labels_say_nothing_of_are_left_out():
    span = graded({"p": 0.4, "q": 0.1})
    got = by_key(found([("open", result("crag", span)), ("no", result("crag", span))], LABELLED))
    assert pairs(got["high:question"]) == [(0.4, False)]  # the documents do not answer it
    assert got["high:question"].left_out == {UNLABELLED: 1}
    assert got["high:passage"].left_out == {UNLABELLED: 2}
    assert got["high:question"].stored == {0.5: 2}


def test_the_mean_of_the_first_round_is_on_its_own_scale():
    def round_(id, mean, before):
        decision = "enough" if mean >= 4 else "try again" if before is None else "stop"
        judged = Round("?", mean, before, 1 if before is None else 2, 4.0, 0.1, 2)
        grades = (PassageGrade("p", (mean - 1) / 4, "scored", "", mean),)
        output = Grading(grades, 0.75, 0.75, decision, "", (), "llm", judged)
        return Span(id, None, "grade the round", "EVALUATOR", 0, 1, {"threshold": 4.0}, output)

    (target,) = one(result("self_reflective", round_(1, 3.0, None), round_(2, 4.5, 3.0))).targets
    assert (target.name, target.shipped, pairs(target)) == ("threshold", 4.0, [(3.0, True)])
    assert not target.probability


def test_evidence_is_right_where_a_relevant_passage_was_read():
    (target,) = one(result("any", *evidence(0.7, ["x", "p"]))).targets
    assert (pairs(target), target.shipped, target.by_settings) == ([(0.7, True)], 0.58, True)
    (target,) = one(result("any", *evidence(0.7, ["x"])), "no").targets
    assert pairs(target) == [(0.7, False)]
    (target,) = one(result("any", evidence(0.7, [])[1])).targets
    assert target.left_out == {NOT_TOLD: 1}
    answer, held = evidence(0.7, ["x", "p"])
    (target,) = one(result("any", answer, replace(held, set_by={"threshold": "sure"}))).targets
    assert not target.by_settings, "a parameter of the route set it"
    output = Written("a sentence", shown=("p",), copied=True, evidence=0.6, floor=0.5)
    span = Span(1, None, "copy sentences", "CHAIN", 0, 1, {"floor": 0.5}, output)
    (target,) = one(result("any", span)).targets
    assert (pairs(target), target.by_settings) == ([(0.6, True)], False)
    with pytest.raises(BadInput, match="no route 'any'"):
        setting(target, 0.4)


def sure(text, score, threshold=0.9):
    ways = ("answer without retrieval", "retrieve")
    output = Decision(ways[score < threshold], ways, "", score, threshold)
    args, links = {"threshold": threshold}, (Link("unaided", 1, 1),)
    return (
        Span(1, None, "answer without searching", "LLM", 0, 1, {}, Written(text, unaided=True)),
        Span(2, None, "decide by confidence", "EVALUATOR", 0, 1, args, output, links=links),
    )


def test_confidence_is_right_where_the_unaided_answer_is_and_what_cannot_be_judged_is_told():
    (target,) = one(result("confidence", *sure("It is Paris.", 0.95))).targets
    assert (pairs(target), target.shipped) == ([(0.95, True)], 0.9)
    (target,) = one(result("confidence", *sure("It is Rome.", 0.3))).targets
    assert pairs(target) == [(0.3, False)]
    (target,) = one(result("confidence", *sure("It is Paris.", 0.95)), "no").targets
    assert target.left_out == {NO_GOLD: 1}
    answer, decided = sure("It is Paris.", 0.95)
    got = one(result("confidence", answer, replace(decided, links=())))
    assert not got.targets, "it was not decided on that answer"
    assert list(got.unjudged) == [("confidence", "decide by confidence")]
    output = Decision("retrieve", ("retrieve", "no retrieval"), "", 0.8, 0.5)
    got = one(result("r", Span(1, None, "look it up?", "EVALUATOR", 0, 1, {}, output)))
    told_ = "labels do not say when “retrieve” is right and when “no retrieval”"
    assert got.unjudged == {("r", "look it up?"): told_}
    assert not got.targets


def test_floors_of_passages_and_of_pieces():
    dropped = Selection("floor", cosines={"p": 0.6, "x": 0.1}, floor=0.3)
    near = Span(1, None, "drop", "EVALUATOR", 0, 1, {"floor": 0.3}, dropped, (("p", 1.0),))
    (target,) = one(result("compress", near)).targets
    assert (pairs(target), target.name, target.probability) == ([(0.6, True), (0.1, False)], "floor", False)
    pieces = [("a", "The fee is 9.", 0.5), ("b", "Pay by card. It is", 0.4), ("c", "Closed on Monday.", 0.1)]
    sentences = tuple(Sentence("p", text, score, score >= 0.3) for _, text, score in pieces)
    strips = Span(1, None, "strips", "EVALUATOR", 0, 1, {"floor": 0.3}, SentenceFilter(sentences, 0.3))
    (target,) = one(result("compress", strips), quotes={"yes": ["Pay  by card."]}).targets
    assert pairs(target) == [(0.4, True), (0.1, False)]
    assert target.left_out == {BEST: 1}
    assert target.name == "floor"
    (target,) = one(result("compress", strips)).targets
    assert target.left_out == {NO_QUOTE: 3}


def test_an_evaluation_is_read_from_its_folder(tmp_path):
    labelled = asked(6)
    kept(tmp_path / "e", labelled, {f"q{n}": [crag(n)] for n in range(6)})
    evaluation = experiment_store.opened(tmp_path / "e")
    got = threshold_cases.gathered(Settings(home=tmp_path), evaluation)
    direct = found([(f"q{n}", crag(n)) for n in range(6)], labelled)
    assert [(t.key, t.cases) for t in got.targets] == [(t.key, t.cases) for t in direct.targets]


def saved(chosen, before=None, **more):
    return merged(before, "mine", "tiny", chosen, more.pop("note", "why"))


def test_a_threshold_is_a_parameter_of_its_route_or_the_evidence_of_all():
    targets = {t.key: t for t in found([(f"q{n}", crag(n)) for n in range(3)], asked(3)).targets}
    high = targets["grade and decide:high:question"]
    assert setting(high, 0.4) == Setting("crag", {"high": 0.4})
    answer = targets["is the answer in the passages:threshold:question"]
    assert setting(answer, 0.4) == Setting("crag", evidence=0.4)
    with pytest.raises(BadInput, match=r"from 0 to 1, not 1\.2"):
        setting(answer, 1.2)
    plain = result("adaptive", graded({"p1": 0.4}))
    adaptive = found([("q1", plain)], asked(3)).targets[0]
    with pytest.raises(BadInput, match="has no parameter for the threshold of “grade and decide”"):
        setting(adaptive, 0.4)
    with pytest.raises(BadInput, match="is not allowed"):
        setting(high, 1.5)


def test_saving_puts_into_what_is_there_and_tells_what_changes():
    first = saved(Setting("crag", {"high": 0.4}), note="on e1")
    assert first == Preset("mine", "tiny", {"crag": {"high": 0.4}}, None, "crag.high: on e1")
    assert changes(None, first) == ["crag.high: not set → 0.4"]
    second = saved(Setting("any", evidence=0.3), first, note="on e2")
    assert (second.parameters, second.evidence) == (first.parameters, 0.3)
    third = saved(Setting("crag", {"high": 0.6}), second, note="on e3")
    assert third.note == "answer_evidence: on e2\ncrag.high: on e3"
    assert changes(second, third) == ["crag.high: 0.4 → 0.6"]
    assert changes(third, third) == []
    assert in_words(third) == "crag.high = 0.6, answer_evidence = 0.3"
    with pytest.raises(BadInput, match=r"lower threshold of crag, 0\.7, would be above its upper one, 0\.6"):
        saved(Setting("crag", {"low": 0.7}), third)
    with pytest.raises(BadInput, match="was made for corpus web, not tiny"):
        saved(Setting("crag", {"low": 0.1}), Preset("mine", "web", {}, 0.2))
    assert settled(Preset("a", "tiny", {"crag": {"high": "0.4"}})) == {"crag": {"high": 0.4}}
    for parameters, why in (({"crag": {"gone": 1}}, "no parameter 'gone'"), ({"gone9": {"k": 1}}, "gone9")):
        with pytest.raises(BadInput, match=f"preset 'a' cannot be used as it is: .*{why}"):
            settled(Preset("a", "tiny", parameters))
