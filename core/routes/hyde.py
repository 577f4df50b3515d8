from typing import Annotated

from core.route import Knob, Need, route
from core.steps import Steps
from core.types import Answer, Query


@route("HyDE", family="query", paper="Gao et al. 2022, arXiv:2212.10496", needs=[Need.LLM])
def hyde(
    query: Query,
    do: Steps,
    *,
    n: Annotated[int, Knob(1, 8, "hypothetical passages averaged")] = 1,
    with_question: Annotated[bool, Knob(help="average the question's own vector in")] = True,
    instruction: Annotated[str, Knob(help="instruction to the model in place of the default one")] = "",
) -> Answer:
    """Search with imagined answers instead of the question."""
    imagined = do.hypothesize(query.text, n, instruction)
    vector = do.mean_of((*imagined, query.text) if with_question else imagined)
    return do.answer(query.text, do.nearest(vector))
