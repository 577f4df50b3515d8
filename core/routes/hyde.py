from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps


@route("HyDE", family="query", paper="Gao et al. 2022, arXiv:2212.10496", needs=[Need.LLM], first=True)
def hyde(
    query: Query,
    do: Steps,
    *,
    n: Annotated[int, Parameter(1, 8, "number of hypothetical passages, whose embeddings are averaged")] = 1,
    with_question: Annotated[bool, Parameter(help="include the question's embedding in the average")] = True,
    instruction: Annotated[str, Parameter(help="custom instruction to the model; empty: the default")] = "",
    per_sample: Annotated[bool, Parameter(help="also search with each hypothetical passage alone")] = True,
) -> Answer:
    """Search with hypothetical passages (HyDE) instead of the question."""
    imagined = do.hypothesize(query.text, n, instruction)
    if per_sample:
        do.search_each(imagined)
    vector = do.mean_of(imagined, query.text if with_question else None)
    return do.answer(query.text, do.nearest(vector))
