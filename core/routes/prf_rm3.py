from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps


@route(
    "BM25 + RM3",
    family="query",
    paper="Abdul-Jaleel et al. 2004, UMass at TREC 2004",
    needs=[Need.BM25],
    embeds=False,
)
def prf_rm3(
    query: Query,
    do: Steps,
    *,
    passages: Annotated[int, Parameter(1, 50, "first passages whose terms are taken")] = 10,
    terms: Annotated[int, Parameter(1, 100, "terms taken from them")] = 10,
    original: Annotated[
        float, Parameter(0, 1, "weight of the question's own terms; the taken have 1 minus it")
    ] = 0.5,
) -> Answer:
    """Search BM25 again with terms of the first passages found (RM3 relevance feedback)."""
    first = do.sparse(query.text)
    return do.answer(query.text, do.weighted_terms(do.rm3(query.text, first, passages, terms, original)))
