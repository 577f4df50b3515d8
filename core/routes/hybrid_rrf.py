from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route, shared


@route(
    "Hybrid (RRF)",
    family="hybrid",
    paper="Cormack, Clarke & Buettcher 2009, doi:10.1145/1571941.1572114",
    needs=[Need.BM25],
)
def hybrid_rrf(
    do: Steps,
    k: shared.RrfConstant = 60,
    dense_weight: Annotated[float, Parameter(0, 10, "weight of the dense list", tunes="weights")] = 1.0,
    bm25_weight: Annotated[float, Parameter(0, 10, "weight of the BM25 list", tunes="weights")] = 1.0,
) -> Answer:
    """Fuse BM25 and dense by reciprocal rank."""
    lists = (do.sparse(do.question), do.dense(do.question))
    return do.answer(do.question, do.rrf(lists, k, (bm25_weight, dense_weight)))
