from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps


@route(
    "Contextual",
    family="index",
    paper="Anthropic 2024, Introducing Contextual Retrieval, anthropic.com/news/contextual-retrieval",
    needs=[Need.CONTEXTS],
)
def contextual(
    query: Query,
    do: Steps,
    *,
    alpha: Annotated[
        float, Parameter(0, 1, "weight of the dense scores; BM25 has 1 minus it", tunes="alpha")
    ] = 0.5,
) -> Answer:
    """Search passages together with a context that the model wrote for each, by BM25 and dense."""
    words = do.key_words(Need.CONTEXTS, query.text)
    vectors = do.nearest_key(Need.CONTEXTS, do.embed(query.text))
    return do.answer(query.text, do.linear((words, vectors), (1 - alpha, alpha)))
