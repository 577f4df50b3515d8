"""How answers are asked for: the choices, and what people read for each."""

from __future__ import annotations

BY = {"model": "The language model", "extract": "Nobody: the best sentences are copied"}


ORDERS = {
    "best first": "best first",
    "best at both ends": "best first and last, so that little is lost in the middle",
}


ANSWERS = {"none": "No answers", "selected": "For chosen routes", "all": "For every route"}
