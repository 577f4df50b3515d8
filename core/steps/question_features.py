"""A router's features of a question: its wording, a first search, the available tables. Pure; no model.

The word lists are English, as in all steps that read wording; in another language only the signals of search,
tables and conversation remain.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from core.backends.sql.database import DatabaseTable
from core.backends.sql.linking import ValueLink
from core.backends.terms import Analyzer
from core.domain.program import table
from core.domain.types import Ranking
from core.steps.gate import exact_terms

# characters of a question that are looked at: the kind shows early, and time stays bounded
MAX_QUESTION_CHARS = 2_000
MOST_WORDS = 60  # more count as many
MAX_COUNT = 4.0  # of things that are counted
SUMS = ("asks how many", "asks for a list", "summing words", "superlatives")  # of what a query sums or sorts
TOP = 10  # hits in which the two searches may agree

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_NAME = re.compile(r"\b[A-Z][\w'’&-]*(?:(?:\s+(?:of|the|de|von))?\s+[A-Z][\w'’&-]*){0,5}")
_CONDITIONS = ("price", "date")  # exact terms that are conditions of a question, not what it is about
_words = {name: frozenset(words) for name, words in table(__file__).items()}
_SUMS_OF_NUMBERS = re.compile(
    r"(?<![\w.-])\d[\d.,]*\s*(?:[+*/x×÷^%-]|plus|minus|times|divided by|percent of)\s*\d|\bpercent of \d",
    re.IGNORECASE,
)


def wording_features(text: str, conversation: bool) -> dict[str, float]:
    """Compute the features of the question's wording, and whether a `conversation` came before it."""
    text = text[:MAX_QUESTION_CHARS]
    words = [word.lower().replace("’", "'") for word in _WORD.findall(text)]
    first, second = (*words[:2], "", "")[:2]
    begins = f"{first} {second}"
    exact = [term for term in exact_terms(text) if term.kind not in _CONDITIONS]
    named = sum(len(_WORD.findall(term.text)) for term in exact)
    count = max(1, len(words))
    names = _NAME.findall(text, _begins(text))  # the first word's capital says nothing
    superlatives = sum(
        word in _words["highest"]
        or (len(word) > 4 and word.endswith("est") and word not in _words["not_highest"])
        for word in words
    )
    many = begins in ("how many", "how much")
    return {
        "conversation before": float(conversation),
        "log of words": math.log1p(min(count, MOST_WORDS)),
        "identifiers": min(MAX_COUNT, float(len(exact))),
        "share of identifiers": min(1.0, named / count),
        "asks what or which": float(first in _words["what"] or bool(_words["what"] & set(words[1:4]))),
        "asks who, when, where": float(first in _words["who"]),
        "asks how many": float(many or "how many" in " ".join(words) or "number of" in " ".join(words)),
        "asks how": float(first == "how" and not many),
        "asks why": float(first == "why"),
        "asks yes or no": float(first in _words["verbs"]),
        "asks for a list": float(first in _words["lists"]),
        "asks nothing": float("?" not in text and not (words and _asks(words))),
        "summing words": min(MAX_COUNT, float(_count(words, _words["sums"]))),
        "superlatives": min(MAX_COUNT, float(superlatives)),
        "comparing words": min(MAX_COUNT, float(_count(words, _words["compares"]))),
        "names": min(MAX_COUNT, float(len(names))),
        "linking words": min(2 * MAX_COUNT, float(_count(words[1:], _words["chains"]))),
        "commas": min(MAX_COUNT, float(text.count(","))),
        "first person": min(2.0, float(_count(words, _words["first_person"]))),
        "pointing words": min(2.0, float(_count(words, _words["points"]))),
        "goes on": float(first in _words["goes_on"] or begins in _words["goes_on"]),
        "polite words": _count(words, _words["polite"]) / count,
        "about the talk": _count(words, _words["talk"]) / count,
        "arithmetic": float(_SUMS_OF_NUMBERS.search(text) is not None),
    }


@dataclass(frozen=True, slots=True)
class FirstSearch:
    """A first search: for each word of the question its IDF and whether the first passage by BM25 has it, and
    the first hits by words and by vectors.
    """

    words: tuple[tuple[float, bool], ...]
    sparse: Ranking
    dense: Ranking


@dataclass(frozen=True, slots=True)
class Schema:
    """The available tables, and the stored values that the question names."""

    tables: tuple[DatabaseTable, ...] = ()
    links: tuple[ValueLink, ...] = ()


def features(
    text: str, conversation: bool, searched: FirstSearch, schema: Schema, words: Analyzer
) -> dict[str, float]:
    """Compute all features of a question by name, as a classifier is trained on; `words` splits texts into
    terms as the corpus does.
    """
    wording = wording_features(text, conversation)
    return {**wording, **search_features(searched), **table_features(text, wording, schema, words)}


def search_features(found: FirstSearch) -> dict[str, float]:
    """Compute the features of a first search: the share of the question's IDF in the best passage, and how
    many of the first ten hits both searches share.

    Scores and their gaps are omitted: on held-out sets they identified the corpus, not the question. Source
    of the agreement: Diaz 2007, "Performance Prediction Using Spatial Autocorrelation", and the later
    literature on query performance prediction.
    """
    whole = sum(weight for weight, _ in found.words)
    first = {hit.passage.id for hit in found.sparse[:TOP]}
    second = {hit.passage.id for hit in found.dense[:TOP]}
    return {
        "words found": sum(weight for weight, held in found.words if held) / whole if whole else 0.0,
        "agreement of searches": len(first & second) / TOP,
    }


def table_features(
    text: str, wording: Mapping[str, float], schema: Schema, words: Analyzer
) -> dict[str, float]:
    """Compute the features of the database: which of the question's words occur in its schema or values, and
    whether the question aggregates over them. All are 0 without tables.

    Source: schema linking as in Lei et al. 2020, "Re-examining the Role of Schema Linking in Text-to-SQL".
    """
    terms = words.terms(text[:MAX_QUESTION_CHARS])
    names = [name for table in schema.tables for name in (table.name, *(c.name for c in table.columns))]
    of_schema = {term for name in names for term in words.terms(_spaced(name))}
    values = {str(link.value).lower() for link in schema.links if link.exact}
    of_values = {term for value in values for term in words.terms(value)}
    linked = sum(term in of_schema or term in of_values for term in terms)
    schema_words = min(1.0, len(of_schema.intersection(terms)) / 2)
    value = float(bool(values))
    sums = float(any(wording[name] for name in SUMS))
    return {
        "tables": float(bool(schema.tables)),
        "share of linked words": linked / max(1, len(terms)),
        "sums over the schema": sums * schema_words,
        "value with schema words": value * schema_words,
        "value with a sum": value * sums,
        "value with an identifier": value * min(1.0, wording["identifiers"]),
    }


def _begins(text: str) -> int:
    """Return the position after the first word."""
    match = _WORD.search(text)
    return match.end() if match else 0


def _asks(words: Sequence[str]) -> bool:
    openings = frozenset({"how", "why"}).union(*(_words[one] for one in ("what", "who", "verbs", "lists")))
    return words[0] in openings or bool(_words["what"] & set(words[1:4]))


def _count(words: Sequence[str], known: Collection[str]) -> int:
    return sum(word in known for word in words)


def _spaced(name: str) -> str:
    """Split a name into words: "order_no", "orderNo" and "OrderNo" have two."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ")


# Their names, in the order of a classifier's coefficients.
FEATURES = tuple(features("", False, FirstSearch((), (), ()), Schema(), Analyzer("none")))
