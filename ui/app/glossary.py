"""The glossary's terms, read from ui/data/glossary.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ui.app.data import table


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the glossary."""

    key: str  # its name in code and addresses
    name: str  # its heading in the Glossary
    sentence: str  # what it means, in one sentence
    source: str  # author, year, title and venue
    url: str  # where to read the source


_DATA = table("glossary")
TERMS: Mapping[str, Term] = {fields["key"]: Term(**fields) for fields in _DATA["term"]}
METRICS: Mapping[str, str] = _DATA["metrics"]  # term keys by the part of a metric's name before "@"
_NUMBER = re.compile(r"(?:arxiv:|doi:)\s*([^\s,;()]+)", re.IGNORECASE)


def of_metric(metric: str) -> str | None:
    """Return the key of a metric's term ("ndcg@10" gives "nDCG"), or None if it has no term."""
    return METRICS.get(metric.split("@")[0])


def of_source(source: str | None) -> str | None:
    """Return the key of the first term with an arXiv number or DOI named in `source`, or None.

    A route names its paper, so pages find its term without knowing the route.
    """
    for number in _NUMBER.findall(source or ""):
        for term in TERMS.values():
            if term.url.endswith(f"/{number}"):
                return term.key
    return None
