from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps


@route(
    "Hybrid (RRF)",
    family="hybrid",
    paper="Cormack, Clarke & Buettcher 2009, doi:10.1145/1571941.1572114",
    needs=[Need.BM25],
)
def hybrid_rrf(
    query: Query,
    do: Steps,
    *,
    k: Annotated[
        int,
        Parameter(
            1, 1000, "RRF constant, added to each rank; larger values flatten the top ranks", tunes="k"
        ),
    ] = 60,
    dense_weight: Annotated[float, Parameter(0, 10, "weight of the dense list", tunes="weights")] = 1.0,
    bm25_weight: Annotated[float, Parameter(0, 10, "weight of the BM25 list", tunes="weights")] = 1.0,
) -> Answer:
    """Fuse BM25 and dense by reciprocal rank."""
    lists = (do.sparse(query.text), do.dense(query.text))
    return do.answer(query.text, do.rrf(lists, k, (bm25_weight, dense_weight)))
