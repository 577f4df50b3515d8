"""The choices of how to write answers, with their labels."""

from __future__ import annotations

from core.domain.types import AnswerBy, AnswerOrder

BY: dict[AnswerBy, str] = {"model": "The language model", "extract": "No model: copy the best sentences"}


ORDERS: dict[AnswerOrder, str] = {
    "best first": "best first",
    "best at both ends": "best first and last, to lose less in the middle",
}


ANSWERS = {"none": "No answers", "selected": "For selected routes", "all": "For every route"}
