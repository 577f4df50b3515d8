"""The choices of how to write answers, with their labels."""

from __future__ import annotations

BY = {"model": "The language model", "extract": "No model: copy the best sentences"}


ORDERS = {
    "best first": "best first",
    "best at both ends": "best first and last, to lose less in the middle",
}


ANSWERS = {"none": "No answers", "selected": "For selected routes", "all": "For every route"}
