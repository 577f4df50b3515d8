from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route, shared


@route("Step-back", family="query", paper="Zheng et al. 2023, arXiv:2310.06117", needs=[Need.LLM, Need.BM25])
def step_back(
    do: Steps,
    weight: Annotated[
        float, Parameter(0, 10, "weight of the general question; 0: skip it", tunes="weights")
    ] = 1.0,
    k: shared.RrfConstant = 60,
) -> Answer:
    """Search with the question and a more general version of it, fuse by reciprocal rank."""
    # The question is searched before the general one is written, which therefore does not replace it.
    own = (do.sparse(do.question), do.dense(do.question))
    general = do.step_back(do.question)
    if general == do.question or not weight:
        return do.answer(do.question, do.rrf(own, k))
    lists = (*own, do.sparse(general), do.dense(general))
    return do.answer(do.question, do.rrf(lists, k, (1.0, 1.0, weight, weight))[: 2 * shared.POOL])
