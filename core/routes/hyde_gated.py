from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps


@route("HyDE, gated", family="query", paper="Gao et al. 2022, arXiv:2212.10496", needs=[Need.LLM])
def hyde_gated(
    query: Query,
    do: Steps,
    *,
    n: Annotated[int, Parameter(1, 8, "number of hypothetical passages, whose embeddings are averaged")] = 1,
    with_question: Annotated[bool, Parameter(help="include the question's embedding in the average")] = True,
) -> Answer:
    """Search with HyDE passages, or with BM25 and dense when the question has exact identifiers."""
    if do.gate(query.text).decision == "hybrid":
        return do.answer(query.text, do.rrf((do.sparse(query.text), do.dense(query.text))))
    imagined = do.hypothesize(query.text, n)
    vector = do.mean_of(imagined, query.text if with_question else None)
    return do.answer(query.text, do.nearest(vector))
