"""Claims of a draft: how each is checked, what is written again, and what is left of the answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.errors import ModelFailed
from core.steps.claims import unknown_numbers
from tests import asking
from tests.asking import outputs, prompts
from tests.fakes import TEXTS

GOOD = "Take photos of all six sides [1]."
BAD = "Towels are free [1]."
MENDED = "Report it within 48 hours [1]."
NONE = "The passages do not answer this."


def yes_unless(*wrong):
    """A checker that says No of claims with one of these words."""
    return lambda request: (
        {"no": 0.9, "yes": 0.1}
        if any(word in request.messages[-1].content.split("Answer:")[1] for word in wrong)
        else {"yes": 0.9, "no": 0.1}
    )


def ask(tmp_path, draft, mended=MENDED, claim=None, texts=TEXTS, forced=None, settings=None, **parameters):
    replies = {"answer": draft, "claim": claim or yes_unless("Towels"), "mend": mended}
    options, asked = {"texts": texts, **(settings or {})}, "My box arrived crushed"
    result, llm = asking.ask(
        tmp_path, "self_correct", asked, replies, options=options, forced=forced, **parameters
    )
    return result, prompts(llm)


def decided(result):
    return [one.decision for one in outputs(result, "revise or keep")]


def test_an_answer_whose_claims_are_supported_stays_to_the_letter(tmp_path):
    result, asked = ask(tmp_path, GOOD)
    assert (result.status, result.answer) == ("ok", GOOD)
    assert decided(result) == ["keep"]
    assert [one for one in asked if one.startswith("mend")] == []
    (check,) = outputs(result, "check the claims")
    assert (check.decision, check.share, check.claims[0].probability) == ("all supported", 1.0, 0.9)
    assert "six sides" in check.claims[0].evidence


def test_only_the_unsupported_claim_is_written_again(tmp_path):
    result, asked = ask(tmp_path, f"{GOOD} {BAD}")
    assert result.answer == f"{GOOD} {MENDED}"
    assert decided(result) == ["rewrite", "keep"]
    assert [one for one in asked if one.startswith("mend")] == ["mend/1"]
    first, second = outputs(result, "check the claims")
    assert (first.share, second.share) == (0.5, 1.0)


@pytest.mark.parametrize(
    ("mended", "decisions"),
    [
        ("Towels cost nothing [1].", ["rewrite", "leave out"]),
        ("none", ["rewrite", "keep"]),
        (ModelFailed("the endpoint answered HTML"), ["rewrite", "keep"]),
    ],
    ids=["unsupported again", "nothing", "failed"],
)
def test_a_claim_that_stays_unsupported_is_left_out_and_the_others_stand(tmp_path, mended, decisions):
    result, _ = ask(tmp_path, f"{GOOD} {BAD}", mended=mended)
    assert (result.status, result.answer, decided(result)) == ("ok", GOOD, decisions)
    forced, _ = ask(tmp_path, BAD, mended=mended, forced={"revise or keep": "keep"})
    assert forced.answer == BAD


def test_a_rewrite_that_only_names_another_passage_keeps_the_words(tmp_path):
    said = "Report it in the app within 48 hours"
    held = lambda request: (  # noqa: E731 - which passage the claim is held against decides
        {"yes": 0.9} if "48 hours" in request.messages[-1].content.split("Answer:")[0] else {"no": 0.9}
    )
    texts = {"a": "Towels are white.", "b": "Photos are due within 48 hours."}
    result, _ = ask(tmp_path, f"{said} [1].", mended="[2]", claim=held, texts=texts)
    assert decided(result) == ["rewrite", "keep"]
    first, second = outputs(result, "check the claims")
    assert (first.share, second.share) == (0.0, 1.0)
    assert result.answer == f"{said}. [2]"
    assert len(result.citations) == 1


def test_a_rewrite_without_a_marker_cites_the_passage_nearest_to_it(tmp_path):
    texts = {"a": "Towels are white.", "b": "Photos are due within 48 hours."}
    result, _ = ask(tmp_path, BAD, mended="Photos are due within 48 hours.", texts=texts)
    ids = [hit.passage.id for hit in result.hits]
    assert result.answer == f"Photos are due within 48 hours. [{ids.index('b') + 1}]"
    assert result.citations == ("b",)
    result, _ = ask(tmp_path, BAD, mended=NONE, texts=texts)
    assert (result.answer, result.abstained) == (NONE, True)


def test_without_a_supported_claim_it_abstains(tmp_path):
    result, _ = ask(tmp_path, BAD, mended=BAD)
    assert (result.answer, result.abstained, result.citations) == (NONE, True, ())
    assert decided(result)[-1] == "abstain"
    assert result.hits


def test_an_invented_figure_is_unsupported_whatever_the_model_says(tmp_path):
    sure = {"yes": 1.0}
    result, asked = ask(tmp_path, "Report it within 72 hours [1].", claim=lambda _: sure, rounds=0)
    assert result.abstained
    assert "claim/1" not in asked
    (check,) = outputs(result, "check the claims")
    assert check.claims[0].why == "72 stands neither in the passages cited nor in the question"


@pytest.mark.parametrize("calls", [1, 2, 3, 4])
def test_a_spent_budget_keeps_a_draft(tmp_path, calls):
    result, _ = ask(tmp_path, f"{GOOD} {BAD}", settings={"route_max_calls": calls})
    assert result.hits
    if result.answer is not None:
        assert GOOD in result.answer


def test_a_verdict_that_cannot_be_read_speaks_neither_for_nor_against_a_claim(tmp_path):
    result, _ = ask(tmp_path, GOOD, claim=lambda _: "perhaps")
    assert (result.answer, decided(result)) == (GOOD, ["keep"])
    (check,) = outputs(result, "check the claims")
    assert (check.decision, check.share) == ("not checked", None)
    assert (check.claims[0].probability, check.claims[0].supported) == (None, None)
    (choice,) = outputs(result, "keep what is supported")
    assert choice.reason == "not checked"


def test_a_claim_that_was_not_checked_does_not_stand_next_to_supported_ones(tmp_path):
    unread = "Photos help the carrier [1]."

    def partly(request):
        claim = request.messages[-1].content.split("Answer:")[1]
        return "perhaps" if "carrier" in claim else yes_unless("Towels")(request)

    result, asked = ask(tmp_path, f"{GOOD} {unread}", claim=partly)
    assert (result.answer, decided(result)) == (GOOD, ["leave out"])
    assert "mend/1" not in asked
    (check,) = outputs(result, "check the claims")
    assert (check.decision, check.share) == ("some not checked", 1.0)

    result, asked = ask(tmp_path, f"{GOOD} {BAD} {unread}", claim=partly, mended=BAD)
    assert (result.answer, decided(result)) == (GOOD, ["rewrite", "leave out"])
    first, second = outputs(result, "check the claims")
    assert (first.decision, first.share) == (second.decision, second.share) == ("some unsupported", 0.5)
    assert asked.count("mend/1") == 1


def test_without_passages_no_model_is_asked(tmp_path):
    result, asked = ask(tmp_path, GOOD, texts={})
    assert (result.answer, result.abstained, asked) == (NONE, True, [])


@pytest.mark.parametrize(
    ("claim", "text", "missing"),
    [
        ("It costs 1,000 euros", "the price is 1000", ()),
        ("It costs 1.5 euros", "1,5 EUR", ()),
        ("Within 48 hours or 72", "48 hours", ("72",)),
        ("No number", "", ()),
    ],
)
def test_numbers_are_compared_by_their_digits(claim, text, missing):
    assert unknown_numbers(claim, text) == missing


@given(st.text(max_size=60))
def test_a_text_has_all_its_own_numbers(text):
    assert unknown_numbers(text, text) == ()
