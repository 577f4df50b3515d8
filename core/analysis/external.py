"""The records of external pipelines in a run: how deep their steps are visible, and what was matched."""

from __future__ import annotations

from core.analysis.run_view import Recorded, recorded
from core.domain.outputs import External
from core.domain.types import RouteResult

OUTSIDE = "measured from outside"


def call(result: RouteResult) -> Recorded[External] | None:
    """Return the call of the pipeline, where the route is one and it replied."""
    return next(iter(recorded(result.spans, External)), None)


def depth(result: RouteResult) -> str | None:
    """Return a sentence on how deep a passage can be followed in an external pipeline, or None for a built-in
    route.
    """
    made = call(result)
    if made is None:
        return None
    below = [span for span in result.spans if span.parent == made.span.id]
    lists = [f"“{span.name}”" for span in below if span.hits is not None]
    silent = [f"“{span.name}”" for span in below if span.hits is None]
    if not lists:
        return (
            f"{result.title} reported its final list only: a passage is found or not found, and what "
            "happened inside is not known."
        )
    without = f" It gave no list for {', '.join(silent)}." if silent else ""
    return (
        f"{result.title} reported the lists of {', '.join(lists)}: a passage is followed no deeper.{without}"
    )


def facts(result: RouteResult) -> list[str]:
    """Return remarks on a pipeline's figures, a line each, or [] for a route of ours."""
    made = call(result)
    if made is None:
        return []
    found = [OUTSIDE]
    if made.output.made:
        found = [f"replayed, reply of {made.output.made[:10]}; {OUTSIDE} then"]
    if made.output.hits:
        found.append(f"{made.output.matched} of {made.output.hits} passages matched to the corpus")
    return found
