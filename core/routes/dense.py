from typing import Annotated, Literal

from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps


@route(
    "Dense",
    family="baseline",
    paper="Karpukhin et al. 2020, arXiv:2004.04906; Reimers & Gurevych 2019, arXiv:1908.10084",
    first=True,
)
def dense(
    query: Query,
    do: Steps,
    *,
    search: Annotated[
        Literal["index", "exact"],
        Parameter(
            help="index: by the corpus' vector index, which a large corpus has as a graph; exact: past it"
        ),
    ] = "index",
    ef_search: Annotated[
        int,
        Parameter(0, 1000, "candidates a graph keeps while it is searched; 0: the usual 200, or 100 more"),
    ] = 0,
) -> Answer:
    """Rank passages by the similarity of their embedding to the question's embedding."""
    return do.answer(query.text, do.dense(query.text, search=search, ef_search=ef_search))
