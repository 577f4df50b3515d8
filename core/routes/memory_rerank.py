from core.routes.prelude import Answer, Need, Steps, route, shared


@route(
    "Conversation memory + rerank",
    family="memory",
    paper="Park et al. 2023, arXiv:2304.03442, section 4.1; Nogueira & Cho 2019, arXiv:1901.04085",
    needs=[Need.BM25],
    prepared=[Need.TOKENS],
)
def memory_rerank(
    do: Steps,
    turns: shared.Turns = 2,
    decay: shared.Decay = 0.8,
    relevance: shared.Similarity = 0.5,
    enough: shared.Enough = 0.5,
    candidates: shared.Candidates = 50,
) -> Answer:
    """Rerank for the question alone and again with the recalled turns before it, and fuse both rankings.

    A question that needs no earlier turn keeps the ranking of `rerank`: without a conversation, or when it is
    near a passage by itself. Fusing both lists was chosen on the follow-ups of `support`, `pydocs` and mtRAG.
    """
    sparse, dense = do.sparse(do.question), do.dense(do.question)
    alone = do.rerank(do.question, do.linear((sparse, dense)), candidates)
    recalled = do.remembered(do.question, decay, relevance, turns)
    if not recalled or do.stands_alone(dense, enough):
        return do.answer(do.question, alone)
    text = do.in_context(do.question, recalled)
    drawn = do.nearest(do.drawn_to(do.question, recalled, 1.0))
    together = do.rerank(text, do.linear((do.sparse(text), drawn)), candidates)
    return do.answer(text, do.rrf((together, alone)))
