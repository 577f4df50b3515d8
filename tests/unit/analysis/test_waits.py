"""What is told of waits for a model."""

import pytest

from core.analysis.waits import loading, now, waited
from core.backends.admission import WAIT
from core.domain.outputs import NOTHING, Waited
from core.domain.types import Span


def span(id, output=NOTHING, error=None):
    return Span(id, None, WAIT, "CHAIN", 0.0, 0.0, {}, output, error=error)


@pytest.mark.parametrize(
    ("wait", "text"),
    [
        (Waited(1, 3.0), "waits for the model, next in the queue, about 3.0 s"),
        (Waited(4, 12.5), "waits for the model, place 4 in the queue, about 12.5 s"),
        (Waited(2), "waits for the model, place 2 in the queue"),
        (Waited(), "waits for the model"),
        (Waited(until="m is loaded"), "waits until m is loaded"),
    ],
)
def test_a_wait_under_way_is_told_with_place_and_time(wait, text):
    assert now([span(1), span(2, wait)]) == text


def test_what_is_over_is_waited_for_no_more():
    over = span(1, Waited(1, over=True, others_ms=1200.0, own_ms=300.0))
    stopped = span(2, Waited(1), error="Cancelled: stopped")
    assert now([over, stopped, span(3)]) == ""
    assert now([over, span(2, Waited(3)), span(3, Waited(2))]).endswith("place 2 in the queue")
    assert waited([over, over, stopped, span(3)]) == 2400.0
    load = span(4, Waited(until="m is loaded", over=True, others_ms=700.0))
    assert (waited([over, load]), loading([over, load])) == (1200.0, 700.0)
