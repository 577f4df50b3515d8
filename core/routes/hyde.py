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
    n: Annotated[int, Parameter(1, 8, "hypothetical passages averaged")] = 1,
    with_question: Annotated[bool, Parameter(help="average the question's own vector in")] = True,
    instruction: Annotated[str, Parameter(help="instruction to the model in place of the default one")] = "",
    per_sample: Annotated[bool, Parameter(help="also show what each passage alone would find")] = True,
) -> Answer:
    """Search with imagined answers instead of the question."""
    imagined = do.hypothesize(query.text, n, instruction)
    if per_sample:
        do.search_each(imagined)
    vector = do.mean_of(imagined, query.text if with_question else None)
    return do.answer(query.text, do.nearest(vector))
