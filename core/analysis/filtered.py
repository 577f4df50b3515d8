"""The conditions of a search that a passage does not meet, according to the corpus as indexed now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from core.domain.errors import BadInput, shortened
from core.domain.filters import Filter

if TYPE_CHECKING:
    from core.corpus.corpus import Corpus

LONGEST = 60  # characters of a value that a sentence quotes
# For conditions and a passage's id those that it does not meet, each as a clause.
Unmet = Callable[[Sequence[Filter], str], list[str]]


def not_known(_where: Sequence[Filter], _id: str) -> list[str]:
    """Return [], as nothing is known without a corpus."""
    return []


def unmet_in(corpus: Corpus | None) -> Unmet:
    """Return the reader of the passages of `corpus`; nothing if it is not at hand, or no longer has a
    field.
    """
    if corpus is None:
        return not_known

    def unmet(where: Sequence[Filter], id: str) -> list[str]:
        try:
            row = corpus.row(id)
            failed = [one for one in where if (met := corpus.allowed([one])) is not None and not met[row]]
        except BadInput:
            return []
        return [f"{one} ({_has(corpus.value(id, one.field), one.field)})" for one in failed]

    return unmet


def _has(value: str | None, field: str) -> str:
    if value is None:
        return f"its document has no {field}"
    return f"its {field} is “{shortened(value, LONGEST)}”"
