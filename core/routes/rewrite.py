from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import POOL, Steps


@route(
    "Rewrite + hybrid", family="query", paper="Ma et al. 2023, arXiv:2305.14283", needs=[Need.LLM], first=True
)
def rewrite(
    query: Query,
    do: Steps,
    *,
    weight: Annotated[
        float,
        Parameter(
            0, 10, "weight of what the message as it was written finds; 0: not searched", tunes="weights"
        ),
    ] = 0.5,
) -> Answer:
    """Make a follow-up a question of its own, search with BM25 and dense, and a little with the message too.

    The default weight was chosen on 11 dev follow-ups of `support` and 50 questions of MTRAG: a small model's
    rewrite loses words that the message has.
    """
    question = do.standalone(query)
    own = (do.sparse(question), do.dense(question))
    if not weight or question == query.text:
        return do.answer(question, do.rrf(own))
    lists = (*own, do.sparse(query.text), do.dense(query.text))
    return do.answer(question, do.rrf(lists, 60, (1.0, 1.0, weight, weight))[: 2 * POOL])
