"""The rule which labelled passages count as relevant."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

FULL = 2  # the grade from which a passage answers the question or a part of it
NuggetSupport = Literal["not_support", "partial_support", "support"]
# How far an answer contains a nugget, and what that counts: Pradeep et al. 2025, arXiv:2504.15068.
SUPPORT: Mapping[NuggetSupport, float] = {"not_support": 0.0, "partial_support": 0.5, "support": 1.0}


def floor(gold: Mapping[str, int]) -> int:
    """Return the lowest relevant grade: background (1) counts only if there is nothing better."""
    return min(FULL, max(1, *gold.values())) if gold else 1


def relevant(gold: Mapping[str, int]) -> list[str]:
    """Ids of the passages that count, best grade first."""
    least = floor(gold)
    return sorted((id for id, grade in gold.items() if grade >= least), key=lambda id: (-gold[id], id))


UNMATCHED = "unmatched:"
MAX_DOCUMENT_ID_CHARS = 200  # characters of a document's id that are repeated in a passage's


def unmatched_id(doc_id: str, content: str) -> str:
    """Return a passage's id, equal for equal document and `content`, whichever pipeline returned it."""
    digest = hashlib.sha256("\0".join((doc_id, content)).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{UNMATCHED}{doc_id[:MAX_DOCUMENT_ID_CHARS]}#{digest}"


def is_unmatched(passage_id: str) -> bool:
    """Return True if the run's corpus does not contain this passage, so that it cannot have been labelled."""
    return passage_id.startswith(UNMATCHED)


@dataclass(frozen=True, slots=True)
class RelevantLabel:
    """A passage, a quote or a document that counts as relevant. Any of its `passages` found is it found."""

    id: str
    grade: int
    passages: tuple[str, ...]
    document: bool = False  # the label is a whole document


def labels_of(gold: Mapping[str, int]) -> tuple[RelevantLabel, ...]:
    """Return a label for each relevant passage, best grade first."""
    wanted = relevant(gold) if any(grade > 0 for grade in gold.values()) else []
    return tuple(RelevantLabel(id, gold[id], (id,)) for id in wanted)
