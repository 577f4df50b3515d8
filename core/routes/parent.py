from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps


@route(
    "Parent (small to big)",
    family="index",
    paper="Chen et al. 2023, Dense X Retrieval, arXiv:2312.06648 (granularity of what is searched)",
    needs=[Need.CHILDREN],
)
def parent(
    query: Query,
    do: Steps,
    *,
    alpha: Annotated[
        float, Parameter(0, 1, "share of the dense scores; the rest is BM25's", tunes="alpha")
    ] = 1.0,
) -> Answer:
    """Search pieces of a sentence or two, and return the passages they stand in."""
    vectors = do.nearest_key(Need.CHILDREN, do.embed(query.text))
    if alpha == 1:
        return do.answer(query.text, vectors)
    words = do.key_words(Need.CHILDREN, query.text)
    return do.answer(query.text, do.linear((words, vectors), (1 - alpha, alpha)))
