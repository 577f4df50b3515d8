from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route, shared


@route(
    "Rewrite + hybrid",
    family="query",
    paper="Ma et al. 2023, arXiv:2305.14283",
    needs=[Need.LLM, Need.BM25],
    first=True,
)
def rewrite(
    do: Steps,
    weight: Annotated[
        float, Parameter(0, 10, "weight of the original message; 0: the rewrite alone", tunes="weights")
    ] = 0.5,
) -> Answer:
    """Rewrite a follow-up into a standalone question and search with it and, at low weight, the message.

    The default weight was chosen on 11 dev follow-ups of `support` and 50 questions of MTRAG: a small model's
    rewrite loses words that the message has.
    """
    question = do.standalone(do.query)
    own = (do.sparse(question), do.dense(question))
    if not weight or question == do.question:
        return do.answer(question, do.rrf(own))
    lists = (*own, do.sparse(do.question), do.dense(do.question))
    return do.answer(question, do.rrf(lists, 60, (1.0, 1.0, weight, weight))[: 2 * shared.POOL])
