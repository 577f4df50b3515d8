from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route, shared


@route(
    "Conversation memory",
    family="memory",
    paper="Park et al. 2023, arXiv:2304.03442, section 4.1; Zhong et al. 2023, arXiv:2305.10250",
    needs=[Need.BM25],
)
def memory(
    do: Steps,
    turns: shared.Turns = 2,
    decay: shared.Decay = 0.8,
    relevance: shared.Similarity = 0.5,
    memory_weight: Annotated[float, Parameter(0, 5, "weight of the recalled turns", tunes="weights")] = 1.0,
    enough: shared.Enough = 0.5,
    alone: Annotated[float, Parameter(0, 5, "weight of what the question alone finds")] = 0.25,
    expand: Annotated[bool, "expand the query with recalled turns; else rank them among passages"] = True,
) -> Answer:
    """Search earlier turns of the conversation as well as the corpus and combine both.

    Expanding is the default because the ranking stays one of passages. Defaults were chosen with the default
    embedder on dev questions of `support`: its follow-ups, alone and after a change of subject, and its other
    questions after turns that have nothing to do with them. `alone` keeps what earlier turns were about from
    standing before what this question asks for.
    """
    sparse, dense = do.sparse(do.question), do.dense(do.question)
    recalled = do.remembered(do.question, decay, relevance, turns)
    if not recalled or memory_weight == 0 or do.stands_alone(dense, enough):
        return do.answer(do.question, do.rrf((sparse, dense)))
    text = do.in_context(do.question, recalled)
    if not expand:
        fused = do.rrf((sparse, dense, recalled), 60, (1.0, 1.0, memory_weight))
        return do.answer(text, fused[: 2 * shared.POOL])
    drawn = do.nearest(do.drawn_to(do.question, recalled, memory_weight))
    lists = (do.sparse(text), drawn, sparse, dense)
    return do.answer(text, do.rrf(lists, 60, (1.0, 1.0, alone, alone)))
