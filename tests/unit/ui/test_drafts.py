"""Drafts of stored runs: read off their spans, and shown as text."""

from dataclasses import replace

from core.analysis.answers import writing
from core.analysis.run_view import gradings
from core.analysis.searches import rewrites
from core.domain.outputs import ClaimChanges, Criticised, Critique, DraftChoice, Written
from core.domain.types import Query, Span
from core.engine.request import Request
from tests.fakes import FakeEngine, ScriptedLLM
from tests.runs import HOSTILE, make_run
from ui.evaluators.decisions import drafts

FIRST = Critique(
    "Take photos of the box [1]. Towels are free.",
    (Criticised("Photos are taken", False), Criticised("Towels are free", False)),
    0.0,
    "Leave out the towels.",
    None,
    "refine",
    ("refine", "stop"),
    "0 of 2 claims supported; refinement 1 of 2",
)
SECOND = Critique(
    "Take six photos of the box [1].",
    (Criticised("Photos are taken", True, 1),),
    1.0,
    "",
    ClaimChanges(dropped=("Towels are free",), changed=("Photos are taken",)),
    "stop",
    ("refine", "stop"),
    "1 of 1 claims supported",
    "all claims supported",
)
KEPT = DraftChoice(2, 2, "draft 2 of 2", "all claims supported", "stopped: all")


def run_with(*outputs):
    run = make_run(mishaps=False)
    spans = tuple(
        Span(n, None, "judge", "EVALUATOR", 0.0, 10.0, output=output) for n, output in enumerate(outputs, 1)
    )
    return replace(run, results=(replace(run.results[0], spans=spans), *run.results[1:]))


def test_drafts_are_read_with_their_claims_and_the_one_kept():
    found = writing(run_with(FIRST, SECOND, KEPT).results[0])
    assert [one.output for one in found.drafts] == [FIRST, SECOND]
    assert [one.span.id for one in found.drafts] == [1, 2]
    assert (found.kept, found.why) == (2, "stopped: all")


def test_what_judged_no_draft_has_none():
    assert writing(run_with(Written("An answer."), KEPT).results[0]) is None
    assert (writing(run_with(FIRST).results[0]).kept, writing(run_with(FIRST).results[0]).why) == (None, "")


def test_the_page_shows_what_changed_and_what_was_decided():
    page = str(drafts(run_with(FIRST, SECOND, KEPT)))
    assert "<ins>six</ins>" in page
    assert "<del>" in page
    assert "supported [1]" in page
    assert "verdict changed" in page
    assert "<del>Towels are free</del>" in page
    assert "0 of 2 claims supported; refinement 1 of 2" in page
    assert page.count("final answer") == 1
    assert page.index("Draft 2") < page.index("final answer") < page.index("stopped: all")


def test_a_run_without_drafts_says_so():
    assert "No route of this run" in drafts(make_run())


def test_hostile_spans_are_shown_as_text():
    for text in HOSTILE:
        odd = Critique(
            text,
            (Criticised(text, None), Criticised(text, False, 9)),
            None,
            text,
            ClaimChanges((text,), (text,), (text,), (text,)),
            text,
            (text,),
            text,
        )
        page = str(drafts(run_with(odd, odd, DraftChoice(9, 2, text, text, text))))
        for mark in ("<img", "<script", "<svg", "</style>", 'onmouseover="alert'):
            assert mark not in page
        assert "not judged" in page


def test_what_the_engine_records_is_what_is_read(tmp_path):
    def claim(request):
        return "No" if "Towels" in request.messages[-1].content.split("Answer:")[1] else "Yes"

    llm = ScriptedLLM({"answer": "Towels [1].", "mend": "Photos [1].", "claim": claim})
    request = Request(Query("My box arrived crushed"), "tiny", ("self_correct",))
    run = FakeEngine(tmp_path, llm=llm).ask(request)
    found = writing(run.results[0])
    assert [one.output.draft for one in found.drafts] == ["Towels [1].", "Photos [1]."]
    assert found.drafts[found.kept - 1].output.draft == run.results[0].answer == "Photos [1]."
    assert [one.output.claims[0].supported for one in found.drafts] == [False, True]
    assert not rewrites(run.results[0]), "no draft is taken for a question"
    assert not gradings(run.results[0])
    assert "<ins>Photos</ins>" in drafts(run)
