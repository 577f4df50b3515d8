"""What is told of waits for a model."""

import pytest

from core.admission import WAIT
from core.reading_waits import now, waited
from core.types import Span


def span(id, name=WAIT, output=None, error=None, **inputs):
    return Span(id, None, name, "CHAIN", 0.0, 0.0, inputs, output, error=error)


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"place": 1, "about s": 3.0}, "waits for the model, which serves it next, about 3.0 s"),
        ({"place": 4, "about s": 12.5}, "waits for the model, place 4 in the queue, about 12.5 s"),
        ({"place": 2, "about s": None}, "waits for the model, place 2 in the queue"),
        ({}, "waits for the model"),
        ({"until": "m is loaded"}, "waits until m is loaded"),
    ],
)
def test_a_wait_under_way_is_told_with_place_and_time(inputs, told):
    assert now([span(1, "search BM25"), span(2, **inputs)]) == told


def test_what_is_over_is_waited_for_no_more():
    over = span(1, output={"for others, ms": 1200.0, "for its own calls, ms": 300.0}, place=1)
    stopped = span(2, error="Cancelled: stopped", place=1)
    assert now([over, stopped, span(3, "search BM25")]) == ""
    assert now([over, span(2, place=3), span(3, place=2)]).endswith("place 2 in the queue")
    assert waited([over, over, stopped, span(3, "search BM25", output={"for others, ms": 9.0})]) == 2400.0
