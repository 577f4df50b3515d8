from core.routes.prelude import Annotated, Answer, Literal, Need, Parameter, Query, Steps, route, shared


@route(
    "Hybrid (linear)",
    family="hybrid",
    paper="Bruch, Gai & Ingber 2022, arXiv:2210.11934; dbsf: Mazzeschi 2023, Distribution-Based Score Fusion",
    needs=[Need.BM25],
)
def hybrid_linear(
    query: Query,
    do: Steps,
    *,
    alpha: shared.Alpha = 0.5,
    norm: Annotated[
        Literal["min_max", "dbsf"],
        Parameter(help="normalise by minimum and maximum, or by mean and standard deviation", tunes="norm"),
    ] = "min_max",
) -> Answer:
    """Add the normalised scores of BM25 and dense."""
    lists = (do.sparse(query.text), do.dense(query.text))
    return do.answer(query.text, do.linear(lists, (1 - alpha, alpha), norm))
