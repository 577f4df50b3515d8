"""Drafts, their critiques, each reason to stop, and which draft is kept."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.prompting.prompts import ANSWER
from core.backends.prompting.prompts_corrective import CRITIQUE, REFINE
from core.backends.prompting.replies import Claim, Criticism, criticism
from core.domain.errors import ModelFailed
from core.domain.outputs import ClaimChanges
from core.domain.types import Query
from core.engine.engine import Request
from core.steps.self_refine import after_critique, claim_changes, kept, likeness, settled
from tests.fakes import FakeEngine, ScriptedLLM

FIRST = "Take photos of all six sides [1]. Towels are free [2]."
SECOND = "Take photos of all six sides within 48 hours [1]."
NONE = "The passages do not answer this."


def critique(*claims, feedback="Leave out the towels.", good=False):
    listed = [{"claim": text, "passage": 1, "supported": fine} for text, fine in claims]
    return json.dumps({"claims": listed, "feedback": feedback, "good": good})


HALF = critique(("photos are taken", True), ("towels are free", False))
ALL = critique(("photos are taken", True), feedback="", good=True)
NOTHING = critique(("photos are taken", False), ("towels are free", False))


def ask(tmp_path, drafts, critiques, rounds=2, texts=None, **settings):
    """Runs the route over scripted drafts and critiques; each list's last one is given again and again."""
    given_ = {"answer": iter(drafts[:1]), "refine": iter(drafts[1:]), "critique": iter(critiques)}
    last = {"answer": drafts[0], "refine": drafts[-1], "critique": critiques[-1]}

    def say(request):
        name = request.prompt.split("/")[0]
        found = next(given_[name], last[name])
        if isinstance(found, Exception):
            raise found
        return found

    llm = ScriptedLLM(dict.fromkeys(last, say))
    options = {} if texts is None else {"texts": texts}
    engine = FakeEngine(tmp_path, llm=llm, **options, **settings)
    request = Request(
        Query("My box arrived crushed"), "tiny", ("self_correct",), {"self_correct": {"rounds": rounds}}
    )
    return engine.ask(request).results[0], llm


def output(result, name):
    return [span.output for span in result.spans if span.name == name]


def ended(result):
    (told,) = output(result, "keep a draft")
    return told.reason, told.decision


@pytest.mark.parametrize(
    ("drafts", "critiques", "rounds", "reason", "decision"),
    [
        ([FIRST], [ALL], 2, "all claims supported", "draft 1 of 1"),
        ([FIRST, SECOND], [HALF, ALL], 2, "all claims supported", "draft 2 of 2"),
        ([FIRST], [critique(("a", False), feedback="  ")], 2, "no feedback", "draft 1 of 1"),
        ([FIRST], [critique(("a", False), good=True)], 2, "no feedback", "draft 1 of 1"),
        ([FIRST, SECOND], [HALF, NOTHING], 2, "refined answer is supported less", "draft 1 of 2"),
        ([FIRST, FIRST.upper()], [HALF], 2, "unchanged", "draft 2 of 2"),
        ([FIRST, SECOND, FIRST], [HALF], 3, "oscillation", "draft 2 of 3"),
        ([FIRST, SECOND, "Another text [1]."], [HALF], 2, "rounds used up", "draft 3 of 3"),
        ([FIRST], [HALF], 0, "rounds used up", "draft 1 of 1"),
        ([NONE], [HALF], 2, "abstained", "draft 1 of 1"),
        ([FIRST, NONE], [HALF], 2, "abstained", "draft 1 of 2"),
        ([FIRST, NONE], [NOTHING], 2, "abstained", "draft 2 of 2"),
        ([FIRST], ['{"claims": [{"cl'], 2, "critique failed", "draft 1 of 1"),
        ([FIRST], [ModelFailed("was cut off at its token limit")], 2, "critique failed", "draft 1 of 1"),
        ([FIRST, SECOND], [HALF, "[]", "[]"], 2, "critique failed", "draft 1 of 2"),
    ],
)
def test_each_reason_to_stop_and_the_draft_it_keeps(tmp_path, drafts, critiques, rounds, reason, decision):
    result, _ = ask(tmp_path, drafts, critiques, rounds)
    assert (result.status, result.error) == ("ok", None)
    assert ended(result) == (reason, decision)
    at = int(decision.split()[1]) - 1
    assert result.answer == drafts[at]
    assert result.abstained is (drafts[at] == NONE)
    assert [one.draft for one in output(result, "criticise the draft and decide")] == drafts


@pytest.mark.parametrize(("calls", "decision"), [(2, "1 of 1"), (3, "1 of 1"), (4, "1 of 2"), (5, "2 of 2")])
def test_a_spent_budget_keeps_the_draft_that_was_checked(tmp_path, calls, decision):
    result, _ = ask(tmp_path, [FIRST, SECOND, "Another text [1]."], [HALF], route_max_calls=calls)
    assert result.status == "ok"
    assert ended(result) == ("budget spent", f"draft {decision}")
    assert any("budget of" in (span.error or "") for span in result.spans)


def test_the_critique_reads_the_passages_where_the_answer_did(tmp_path):
    result, llm = ask(tmp_path, [FIRST, SECOND], [HALF, ALL])
    sent = {request.prompt: request for request in llm.requests}
    start = sent["answer/2"].messages[-1].content.split("Write a short answer")[0]
    for name in ("critique/1", "refine/1"):
        assert sent[name].messages[0] == sent["answer/2"].messages[0]
        assert sent[name].messages[-1].content.startswith(start)
        assert sent[name].reuse_prefix
        assert len(sent[name].messages) == 2
    assert ANSWER.system == CRITIQUE.system == REFINE.system
    refined = sent["refine/1"].messages[-1].content
    assert "Leave out the towels. Not supported: towels are free." in refined
    assert sent["critique/1"].schema is not None
    first, second = output(result, "criticise the draft and decide")
    assert (first.share, second.share) == (0.5, 1.0)
    assert first.why == "1 of 2 claims supported; refinement 1 of 2"
    assert second.why == "1 of 1 claims supported, 50% before: all claims supported"
    assert second.changes == ClaimChanges(("photos are taken",), ("towels are free",))


@given(
    st.lists(st.sampled_from([FIRST, SECOND, NONE, "A [1].", "B [1].", ""]), min_size=1, max_size=6),
    st.lists(st.sampled_from([HALF, NOTHING, ALL, critique(), "nonsense"]), min_size=1, max_size=6),
    st.integers(0, 3),
)
def test_writing_never_exceeds_its_cap(tmp_path_factory, drafts, critiques, rounds):
    result, llm = ask(tmp_path_factory.mktemp("cap"), drafts, critiques, rounds)
    assert result.status == "ok"
    asked = [request.prompt for request in llm.requests]
    assert asked.count("refine/1") <= rounds
    assert asked.count("critique/1") <= rounds + 1
    assert ended(result)[1].startswith("draft ")


def test_without_passages_the_answer_abstains_and_no_model_is_asked(tmp_path):
    result, llm = ask(tmp_path, [FIRST], [HALF], texts={})
    assert (ended(result)[0], result.answer, result.abstained) == ("abstained", NONE, True)
    assert not llm.requests


def test_a_critique_is_read_strictly():
    assert criticism(HALF, 2).claims == (
        Claim("photos are taken", True, 1),
        Claim("towels are free", False, 1),
    )
    beyond = json.loads(ALL) | {"claims": [{"claim": "x", "passage": 9, "supported": True}]}
    assert criticism(json.dumps(beyond), 5).claims == (Claim("x", False, 9),)
    for wrong in (
        "", "[]", "{}", '{"claims": [1], "feedback": "", "good": true}', ALL.replace("true", '"yes"'),
        ALL.replace('"passage": 1', '"passage": true'), ALL.replace("true}", "tr"), "[" * 100_000,
    ):  # fmt: skip
        assert criticism(wrong, 5) is None


SIX = st.lists(
    st.builds(Claim, st.sampled_from(["a b c d", "a b c", "x y z", "x y", "q"]), st.booleans()), max_size=5
)


@given(SIX, SIX)
def test_each_claim_is_counted_once_in_a_difference(before, after):
    found = claim_changes(before, after)
    both = [*found.kept, *found.changed]
    assert sorted((*both, *found.added)) == sorted(claim.claim for claim in after)
    assert len(both) + len(found.dropped) == len(before)
    if before == after:
        assert not found.dropped
        assert not found.added
        assert sorted(both) == sorted(claim.claim for claim in after)


def test_claims_are_matched_by_their_words():
    before = [Claim("Photos are taken of all six sides.", False), Claim("Towels are free", True)]
    after = [Claim("photos are taken of six sides", True), Claim("A refund takes five days", True)]
    found = claim_changes(before, after)
    assert found.changed == ("photos are taken of six sides",)
    assert (found.dropped, found.added) == (("Towels are free",), ("A refund takes five days",))
    assert likeness("a b", "b a") == likeness("b a", "a b")


@given(
    st.one_of(st.none(), st.floats(0, 1)), st.one_of(st.none(), st.floats(0, 1)), st.booleans(),
    st.sampled_from(["", "more"]), st.integers(1, 4), st.integers(1, 3),
)  # fmt: skip
def test_refining_needs_a_reason_and_room(share, before, good, feedback, number, rounds):
    ended_ = after_critique(share, before, Criticism((), feedback, good), number, rounds)
    worse = share is not None and before is not None and share < before
    if ended_ is None:
        assert share != 1
        assert not worse
        assert feedback
        assert not good
        assert number <= rounds
    elif ended_ == "refined answer is supported less":
        assert worse


def test_what_drafts_alone_tell():
    assert settled(["a"], 1) is None
    assert settled(["a", "b", "A."], 3) == "oscillation"
    assert settled(["a", "b", "B"], 3) == "unchanged"
    assert settled([NONE], 0) == "abstained"
    assert kept("budget spent", [0.5], 2) == 0
    assert kept("budget spent", [], 1) == 0
