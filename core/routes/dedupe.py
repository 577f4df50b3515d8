from typing import Annotated, Literal

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps


@route(
    "Hybrid + deduplication",
    family="scoring",
    paper="Broder 1997, doi:10.1109/SEQUEN.1997.666900",
    needs=[Need.BM25],
)
def dedupe(
    query: Query,
    do: Steps,
    *,
    by: Annotated[
        Literal["words", "embedding"],
        Parameter(
            help="compare 3-word shingles (Jaccard) or embeddings (cosine; try .95)",
            tunes="by",
        ),
    ] = "words",
    threshold: Annotated[
        float, Parameter(0, 1, "similarity from which a passage counts as a duplicate", tunes="threshold")
    ] = 0.8,
) -> Answer:
    """Fuse BM25 and dense, then drop near-duplicates of better-ranked passages."""
    found = do.rrf((do.sparse(query.text), do.dense(query.text)))
    return do.answer(query.text, do.dedupe(found, by, threshold))
