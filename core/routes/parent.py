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
        float, Parameter(0, 1, "weight of the dense scores; BM25 has 1 minus it", tunes="alpha")
    ] = 1.0,
) -> Answer:
    """Search short pieces of one or two sentences and return the passages they are part of."""
    vectors = do.nearest_key(Need.CHILDREN, do.embed(query.text))
    if alpha == 1:
        return do.answer(query.text, vectors)
    words = do.key_words(Need.CHILDREN, query.text)
    return do.answer(query.text, do.linear((words, vectors), (1 - alpha, alpha)))
