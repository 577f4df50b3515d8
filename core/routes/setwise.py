from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps


@route("Setwise rerank", family="scoring", paper="Zhuang et al. 2024, arXiv:2310.09497", needs=[Need.LLM])
def setwise(
    query: Query,
    do: Steps,
    *,
    candidates: Annotated[int, Parameter(2, 50, "number of top hybrid hits to compare")] = 10,
    size: Annotated[int, Parameter(2, 8, "passages in one choice")] = 4,
    top: Annotated[int, Parameter(1, 20, "places that are filled by choices")] = 3,
) -> Answer:
    """Retrieve by BM25 and dense; a language model then chooses the best of a few passages at a time."""
    found = do.linear((do.sparse(query.text), do.dense(query.text)))
    return do.answer(query.text, do.best_of_sets(query.text, found, candidates, size, top))
