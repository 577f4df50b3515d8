from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route


@route(
    "New route",
    family="hybrid",
    paper="Cormack, Clarke & Buettcher 2009, doi:10.1145/1571941.1572114",  # the source of your method
    needs=[Need.BM25],  # what has to be there: it shows as unavailable where that is not
)
def new_route(
    do: Steps,
    k: Annotated[int, Parameter(1, 1000, "RRF constant, added to each rank", tunes="k")] = 60,
) -> Answer:
    """Fuse BM25 and dense search by reciprocal rank."""
    words = do.sparse(do.question)
    meaning = do.dense(do.question)
    return do.answer(do.question, do.rrf((words, meaning), k))
