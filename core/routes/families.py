"""The measured worth of routes on datasets: data/families.toml, which `python -m bench.families` writes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from core.domain.settings import PROJECT

PATH = PROJECT / "data" / "families.toml"
REFERENCE = "hybrid_auto"  # the route that the others are compared with


@cache
def measured() -> Mapping[str, Any]:
    """Return the table: the sets, the recommended route of each family, and a row for each measured route."""
    return tomllib.loads(PATH.read_text(encoding="utf-8"))


def recommended(name: str) -> bool:
    """Return True if the route has the best mean rank of its family."""
    return name in measured()["recommended"].values()


def standing(name: str) -> str:
    """Return on how many sets a route is shown better or worse than REFERENCE, in words; "" if it was not
    measured.
    """
    row = measured()["routes"].get(name)
    if row is None or name == REFERENCE:
        return ""
    better, worse, sets = len(row["better"]), len(row["worse"]), len(row["ndcg@10"])
    return f"better than {REFERENCE} on {better or 'none'} of {sets} sets, worse on {worse or 'none'}"
