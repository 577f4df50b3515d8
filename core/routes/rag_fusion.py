from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import POOL, Steps


@route(
    "RAG-Fusion",
    family="query",
    paper="Rackauckas 2024, arXiv:2402.03367",
    needs=[Need.LLM, Need.BM25],
    first=True,
)
def rag_fusion(
    query: Query,
    do: Steps,
    *,
    n: Annotated[int, Parameter(1, 8, "number of query variants besides the question")] = 3,
    k: Annotated[int, Parameter(1, 1000, "RRF constant", tunes="k")] = 60,
) -> Answer:
    """Search with the question and its variants, fuse all lists by reciprocal rank."""
    texts = (query.text, *do.variants(query.text, n))
    lists = tuple(ranking for text in texts for ranking in (do.sparse(text), do.dense(text)))
    return do.answer(query.text, do.rrf(lists, k)[: 2 * POOL])
