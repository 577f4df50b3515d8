from core.routes.prelude import Annotated, Answer, Need, Parameter, Query, Steps, route


@route("Recency", family="scoring", paper="Li & Croft 2003, doi:10.1145/956863.956951", needs=[Need.BM25])
def recency(
    query: Query,
    do: Steps,
    *,
    half_life: Annotated[float, Parameter(1, 40000, "days after which a document's score is halved")] = 1460,
) -> Answer:
    """Fuse BM25 and dense by reciprocal rank, then halve scores for each half-life of the document's age."""
    lists = (do.sparse(query.text), do.dense(query.text))
    return do.answer(query.text, do.by_age(do.rrf(lists), half_life))
