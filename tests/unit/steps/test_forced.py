"""A route run with one of its decisions turned, as an audit does."""

import pytest

from core.domain.errors import BadInput
from core.steps.confidence import Confidence
from core.steps.decisions import ANY, Decided, ways

GIVEN = Confidence("retrieve", "mean token probability 0.20 is below 0.9", 0.2, "mean", 0.9)


def test_a_turned_decision_keeps_what_was_measured_and_why() -> None:
    turned = GIVEN.turned("answer without retrieval")

    assert turned.decision == "answer without retrieval"
    assert (turned.confidence, turned.threshold) == (0.2, 0.9)
    assert turned.why == GIVEN.why


def test_a_decision_that_there_is_not_is_refused() -> None:
    with pytest.raises(BadInput, match="expected one of answer without retrieval, retrieve"):
        GIVEN.turned("guess")


@pytest.mark.parametrize(
    "outcome", [one for one in Decided.__subclasses__() if one.FIRES and ANY not in dict(one.FIRES)]
)
def test_what_fires_and_what_it_is_held_against_are_decisions(outcome: type[Decided]) -> None:
    assert {way for pair in outcome.FIRES for way in pair} <= set(ways(outcome))
