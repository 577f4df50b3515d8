"""One question's labels: counted as evaluations count them, marked by people, and its answers judged."""

from core.analysis.label_flow import flow, read
from core.analysis.passage_trace import PassageTrace
from core.domain.outputs import Search, Written
from core.domain.relevance import RelevantLabel
from core.domain.types import Hit, Link, Passage, Query, RouteResult, Run, Span
from core.evaluation.counting import place
from core.evaluation.dataset import Complaint, LabelledSet, Question
from core.evaluation.gold import Gold, judge_answers
from core.evaluation.labels import desk, run_labels
from core.evaluation.outcome import Outcome
from core.evaluation.scoring import route_values


def passage(id, text="30 days from delivery"):
    return Passage(id, id.split(":")[0], id, text, 0, len(text))


def answered(route, ids, answer, *, cited=(), shown=None, abstained=False):
    found = tuple((id, 1 / rank) for rank, id in enumerate(ids, 1))
    wrote = Written(answer, cited, abstained, shown=tuple(ids[:2]) if shown is None else shown)
    spans = (
        Span(1, None, "search", "RETRIEVER", 0, 1, {}, Search(("how long",)), found),
        Span(2, None, "write answer", "LLM", 1, 1, {}, wrote, None, (Link("hits", 1, len(ids)),)),
    )
    hits, said = tuple(Hit(passage(id), score) for id, score in found), {"answer": answer, "citations": cited}
    more = {"spans": spans, "origin": Link("hits", 1, len(ids)), "answer_span": 2, "abstained": abstained}
    return RouteResult(route, route.title(), "ok", 2.0, hits=hits, **said, **more)


def run_of(*results):
    held = {hit.passage.id: hit.passage for result in results for hit in result.hits}
    return Run("run", "2026-11-21", Query("How long?"), "tiny", "f", {}, results, held)


def test_a_labelled_document_counts_as_in_an_evaluation():
    cut = [Passage(f"d1:{at}-{at + 10}", "d1", "D", "x" * 10, at, at + 10) for at in (0, 10, 20)]
    label = place("d1", (0, 30), 3, cut, whole=True)
    hits = (("d2:0-9", 4.0), ("d1:20-30", 3.0), ("d1:0-10", 2.0), ("d3:0-9", 1.0))
    question = Question("q", Query("How long?"))
    qrels = {"q": {one.id: 3 for one in cut}}
    labelled = LabelledSet("set", (question,), qrels, places={"q": (label,)})
    expected = route_values(labelled, {"q": {"one": Outcome("ok", 1.0, hits)}}, "one")["q"]
    known = Gold(qrels["q"], places=(label,), relevant_from=1)
    assert known.measured({"one": hits})["one"] == expected
    assert expected["recall@10"] == 1.0, "one document, not three passages"
    assert known.wanted() == (RelevantLabel("d1", 3, ("d1:0-10", "d1:10-20", "d1:20-30"), True),)


def test_quotes_in_one_passage_are_one_label_and_grades_of_people_hold():
    one = Passage("d1:0-40", "d1", "D", "x" * 40, 0, 40)
    quotes = (place("d1", (0, 10), 3, [one]), place("d1", (20, 30), 2, [one]))
    assert [label.passages for label in Gold({one.id: 3}, places=quotes).wanted()] == [(one.id,)]
    other = Gold({one.id: 3, "e:0-9": 3}, places=quotes, people={"e:0-9": 3})
    assert {label.id for label in other.wanted()} == {one.id, "e:0-9"}


def test_the_flow_loses_a_label_where_its_fate_says():
    labels = [RelevantLabel(id, 3, (id,)) for id in ("a:0-9", "b:0-9", "c:0-9")]
    result = answered("one", ["a:0-9", "x:0-9", "b:0-9"], "So.", cited=("a:0-9",))
    steps = flow(PassageTrace(result), labels, 2)
    assert [(step.name, step.present, step.lost) for step in steps] == [
        ("search", ("a:0-9",), ("b:0-9", "c:0-9")),
        ("top 2", ("a:0-9",), ()),
        ("prompt", ("a:0-9",), ()),
        ("cited", ("a:0-9",), ()),
    ]
    assert [read(PassageTrace(result), label) for label in labels] == ["cited", "not read", "not retrieved"]
    ignored = PassageTrace(answered("two", ["a:0-9", "x:0-9"], "So."))
    assert read(ignored, labels[0]) == "read"


def judged(known, *results):
    run = run_of(*results)
    return {one.route: one for one in judge_answers(run, known, [PassageTrace(r) for r in run.results])}


def test_answers_are_compared_with_the_right_one_and_a_wrong_number_is_named():
    question = Question("q", Query("How long?"), answers=("30 days",), answerable=True)
    found = judged(
        Gold({"a:0-9": 3}, questions=(question,)),
        answered("exact", ["a:0-9"], "30 days"),
        answered("contained", ["a:0-9"], "You have 30 days [1].", cited=("a:0-9",)),
        answered("wrong", ["a:0-9", "x:0-9"], "You have 45 days [1].", cited=("a:0-9",)),
        answered("silent", ["a:0-9"], "The passages do not answer this.", abstained=True),
    )
    assert {route: (one.right, one.how) for route, one in found.items()} == {
        "exact": (True, "exact"),
        "contained": (True, "contained"),
        "wrong": (False, "content words"),
        "silent": (False, "abstention"),
    }
    (claim,) = found["wrong"].claims
    assert claim.right is False
    assert "45" in claim.why
    assert found["wrong"].evidence == {"a:0-9": "cited"}
    assert [claim.right for claim in found["contained"].claims] == [None]


def test_without_a_right_answer_nothing_is_judged_but_what_people_reported():
    said = Complaint("ann", "wrong answer", "run", "two")
    known = Gold(questions=(Question("q", Query("How long?"), complaints=(said,)),))
    found = judged(known, answered("one", ["a:0-9"], "30"), answered("two", ["a:0-9"], "30"))
    assert (found["one"].right, found["two"].right, found["two"].how) == (None, False, "a person")
    assert list(found) == ["two", "one"], "the wrong ones first"


def test_a_passage_is_marked_for_a_question_and_taken_back(store):
    run = run_of(answered("one", ["a:0-9", "b:0-9"], "30 days"))
    first = run_labels.mark(store, run, "ann", passage=run.passages["a:0-9"])
    then = run_labels.mark(store, run, "ann", passage=run.passages["b:0-9"])
    assert first.set == then.set
    made = desk.load(store, first.set)
    assert {j.passage: j.grade for j in made.current} == {"a:0-9": 3, "b:0-9": 3}
    run_labels.undo(store, then)
    assert {j.passage: j.grade for j in desk.load(store, first.set).current} == {"a:0-9": 3}
    run_labels.undo(store, first)
    assert desk.sets(store) == (), "its only question is gone, and the set with it"


def test_an_accepted_answer_is_a_right_one_until_it_is_taken_back(store):
    run = run_of(answered("one", ["a:0-9"], "30 days"))
    run_labels.mark(store, run, "ann", passage=run.passages["a:0-9"])
    marked = run_labels.mark(store, run, "ann", answer=" 30  days ")
    (question,) = desk.load(store, marked.set).questions
    assert (question.answers, question.answerable) == (("30 days",), True)
    run_labels.undo(store, marked)
    (question,) = desk.load(store, marked.set).questions
    assert (question.answers, question.answerable) == ((), None)
