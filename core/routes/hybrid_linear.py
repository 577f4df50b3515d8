from typing import Annotated, Literal

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps


@route(
    "Hybrid (linear)",
    family="hybrid",
    paper="Bruch, Gai & Ingber 2022, arXiv:2210.11934; dbsf: Mazzeschi 2023, Distribution-Based Score Fusion",
    needs=[Need.BM25],
)
def hybrid_linear(
    query: Query,
    do: Steps,
    *,
    alpha: Annotated[
        float, Parameter(0, 1, "weight of the dense scores; BM25 has 1 minus it", tunes="alpha")
    ] = 0.5,
    norm: Annotated[
        Literal["min_max", "dbsf"],
        Parameter(help="normalise by minimum and maximum, or by mean and standard deviation", tunes="norm"),
    ] = "min_max",
) -> Answer:
    """Add the normalised scores of BM25 and dense."""
    lists = (do.sparse(query.text), do.dense(query.text))
    return do.answer(query.text, do.linear(lists, (1 - alpha, alpha), norm))
