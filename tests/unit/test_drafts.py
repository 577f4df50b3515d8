"""Drafts of stored runs: read by the shape of their spans, and shown as text."""

from dataclasses import replace

from core.engine import Request
from core.reading import gradings, rewritings
from core.reading_drafts import writing
from core.types import Query, Span
from tests.fakes import FakeEngine, ScriptedLLM
from tests.runs import HOSTILE, make_run
from ui.drafts import drafts

FIRST = {
    "draft": "Take photos of the box [1]. Towels are free.",
    "claims": [
        {"claim": "Photos are taken", "supported": False, "passage": None},
        {"claim": "Towels are free", "supported": False, "passage": None},
    ],
    "share": 0.0, "feedback": "Leave out the towels.", "changes": None,
    "decision": "refine", "reason": None, "why": "0 of 2 claims supported; refinement 1 of 2",
}  # fmt: skip
SECOND = {
    "draft": "Take six photos of the box [1].",
    "claims": [{"claim": "Photos are taken", "supported": True, "passage": 1}],
    "share": 1.0, "feedback": "",
    "changes": {"kept": [], "dropped": ["Towels are free"], "added": [], "changed": ["Photos are taken"]},
    "decision": "stop", "reason": "all claims supported", "why": "1 of 1 claims supported",
}  # fmt: skip
KEPT = {"decision": "draft 2 of 2", "reason": "all claims supported", "why": "stopped: all", "kept": 2}


def run_with(*outputs):
    run = make_run(mishaps=False)
    spans = tuple(
        Span(n, None, "judge", "EVALUATOR", 0.0, 10.0, output=output) for n, output in enumerate(outputs, 1)
    )
    return replace(run, results=(replace(run.results[0], spans=spans), *run.results[1:]))


def test_drafts_are_read_with_their_claims_and_the_one_kept():
    found = writing(run_with(FIRST, SECOND, KEPT).results[0])
    assert [one.text for one in found.drafts] == [FIRST["draft"], SECOND["draft"]]
    assert (found.kept, found.why) == (2, "stopped: all")
    assert found.drafts[1].share == 1.0
    assert found.drafts[1].changes["dropped"] == ("Towels are free",)
    assert [claim.supported for claim in found.drafts[0].claims] == [False, False]


def test_the_page_shows_what_changed_and_what_was_decided():
    page = str(drafts(run_with(FIRST, SECOND, KEPT)))
    assert "<ins>six</ins>" in page
    assert "<del>" in page
    assert "supported [1]" in page
    assert "other verdict than before" in page
    assert "<del>Towels are free</del>" in page
    assert "0 of 2 claims supported; refinement 1 of 2" in page
    assert page.count("the answer") == 1
    assert page.index("Draft 2") < page.index("the answer") < page.index("stopped: all")


def test_a_run_without_drafts_says_so():
    assert "No route of this run" in drafts(make_run())


def test_odd_and_hostile_spans_are_shown_as_text():
    for text in HOSTILE:
        odd = {
            "draft": text,
            "claims": [{"claim": text}, text, {"claim": 3, "supported": "yes", "passage": True}],
            "share": True, "feedback": [text], "changes": {"dropped": [text], "kept": text}, "decision": text,
            "why": {"a": text},
        }  # fmt: skip
        page = str(drafts(run_with(odd, {"draft": "x"}, {"kept": 9, "why": text}, {"kept": None})))
        for mark in ("<img", "<script", "<svg", "</style>", 'onmouseover="alert'):
            assert mark not in page
    assert writing(run_with({"draft": 3}, {"kept": 1}).results[0]) is None


def test_a_draft_inside_a_judged_draft_is_not_told_twice():
    run = run_with(FIRST)
    child = Span(2, 1, "criticise", "LLM", 0.0, 5.0, output=FIRST)
    result = replace(run.results[0], spans=(*run.results[0].spans, child))
    assert len(writing(result).drafts) == 1


def test_what_the_engine_records_is_what_is_read(tmp_path):
    critique = '{"claims": [{"claim": "a", "passage": 1, "supported": %s}], "feedback": "b", "good": false}'
    said = iter((critique % "false", critique % "true"))
    llm = ScriptedLLM({"answer": "One [1].", "refine": "Two [1].", "critique": lambda _: next(said)})
    request = Request(Query("My box arrived crushed"), "tiny", ("self_correct",))
    run = FakeEngine(tmp_path, llm=llm).ask(request)
    found = writing(run.results[0])
    assert [one.text for one in found.drafts] == ["One [1].", "Two [1]."]
    assert found.drafts[found.kept - 1].text == run.results[0].answer == "Two [1]."
    assert found.drafts[1].changes["changed"] == ("a",)
    assert not rewritings(run.results[0]), "no draft is taken for a question"
    assert not gradings(run.results[0])
    assert "<ins>Two</ins>" in drafts(run)
