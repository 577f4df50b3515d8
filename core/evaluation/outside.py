"""Passages that external pipelines found and the corpus does not have, distinguished from unjudged
passages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.domain.relevance import is_unmatched
from core.evaluation.outcome import Outcomes

DEPTH = 10


def remarks(outcomes: Outcomes, routes: Sequence[str], qrels: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a sentence for each route with such passages among its first ten: their share, and how many of
    them are labelled.
    """
    found = []
    for route in routes:
        tops = [
            (question, [id for id, _ in by[route].hits[:DEPTH]])
            for question, by in outcomes.items()
            if route in by
        ]
        total = sum(len(ids) for _, ids in tops)
        strange = [(question, id) for question, ids in tops for id in ids if is_unmatched(id)]
        if not strange:
            continue
        labelled = sum(id in qrels.get(question, {}) for question, id in strange)
        judged = f"{labelled:,} of {len(strange):,} are labelled"
        found.append(
            f"{route}: {len(strange) / total:.1%} of its first {DEPTH} passages are not in the corpus; "
            f"{judged}, and those without a label count as not relevant, as unjudged ones do"
        )
    return found
