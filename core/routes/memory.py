from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import POOL, Steps


@route(
    "Conversation memory",
    family="memory",
    paper="Park et al. 2023, arXiv:2304.03442, section 4.1; Zhong et al. 2023, arXiv:2305.10250",
    needs=[Need.BM25],
)
def memory(
    query: Query,
    do: Steps,
    *,
    turns: Annotated[int, Parameter(1, 20, "number of turns recalled")] = 2,
    decay: Annotated[float, Parameter(0.5, 1, "factor by which recency decays with each later turn")] = 0.8,
    relevance: Annotated[
        float, Parameter(0, 1, "weight of similarity in a turn's score; recency has 1 minus it")
    ] = 0.5,
    memory_weight: Annotated[
        float, Parameter(0, 5, "weight of the recalled turns; the question has 1", tunes="weights")
    ] = 1.0,
    enough: Annotated[
        float,
        Parameter(
            -1,
            1.01,
            "if the best cosine reaches this, the question is searched alone",
            tunes="threshold",
            cosine=True,
        ),
    ] = 0.5,
    alone: Annotated[
        float, Parameter(0, 5, "weight of what the question alone finds, beside the expanded query's 1")
    ] = 0.25,
    expand: Annotated[
        bool,
        Parameter(help="expand the query with the recalled turns; otherwise rank them among the passages"),
    ] = True,
) -> Answer:
    """Search earlier turns of the conversation as well as the corpus and combine both.

    Expanding is the default because the ranking stays one of passages. Defaults were chosen with the default
    embedder on dev questions of `support`: its follow-ups, alone and after a change of subject, and its other
    questions after turns that have nothing to do with them. `alone` keeps what earlier turns were about from
    standing before what this question asks for.
    """
    sparse, dense = do.sparse(query.text), do.dense(query.text)
    recalled = do.remembered(query.text, decay, relevance, turns)
    if not recalled or memory_weight == 0 or do.stands_alone(dense, enough):
        return do.answer(query.text, do.rrf((sparse, dense)))
    text = do.in_context(query.text, recalled)
    if not expand:
        fused = do.rrf((sparse, dense, recalled), 60, (1.0, 1.0, memory_weight))
        return do.answer(text, fused[: 2 * POOL])
    drawn = do.nearest(do.drawn_to(query.text, recalled, memory_weight))
    lists = (do.sparse(text), drawn, sparse, dense)
    return do.answer(text, do.rrf(lists, 60, (1.0, 1.0, alone, alone)))
