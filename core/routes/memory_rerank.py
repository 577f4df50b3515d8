from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps


@route(
    "Conversation memory + rerank",
    family="memory",
    paper="Park et al. 2023, arXiv:2304.03442, section 4.1; Nogueira & Cho 2019, arXiv:1901.04085",
    needs=[Need.BM25],
    prepared=[Need.TOKENS],
)
def memory_rerank(
    query: Query,
    do: Steps,
    *,
    turns: Annotated[int, Parameter(1, 20, "number of turns recalled")] = 2,
    decay: Annotated[float, Parameter(0.5, 1, "factor by which recency decays with each later turn")] = 0.8,
    relevance: Annotated[
        float, Parameter(0, 1, "weight of similarity in a turn's score; recency has 1 minus it")
    ] = 0.5,
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
    candidates: Annotated[int, Parameter(5, 100, "number of top hybrid hits to rerank")] = 50,
) -> Answer:
    """Rerank for the question alone and again with the recalled turns before it, and fuse both rankings.

    A question that needs no earlier turn keeps the ranking of `rerank`: without a conversation, or when it is
    near a passage by itself. Fusing both lists was chosen on the follow-ups of `support`, `pydocs` and mtRAG.
    """
    sparse, dense = do.sparse(query.text), do.dense(query.text)
    alone = do.rerank(query.text, do.linear((sparse, dense)), candidates)
    recalled = do.remembered(query.text, decay, relevance, turns)
    if not recalled or do.stands_alone(dense, enough):
        return do.answer(query.text, alone)
    text = do.in_context(query.text, recalled)
    drawn = do.nearest(do.drawn_to(query.text, recalled, 1.0))
    together = do.rerank(text, do.linear((do.sparse(text), drawn)), candidates)
    return do.answer(text, do.rrf((together, alone)))
