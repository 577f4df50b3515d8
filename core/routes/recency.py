from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route, shared


@route("Recency", family="scoring", paper="Li & Croft 2003, doi:10.1145/956863.956951", needs=[Need.BM25])
def recency(
    do: Steps,
    half_life: Annotated[float, Parameter(1, 40000, "days after which a document's score is halved")] = 1460,
    fused_by: shared.FusedBy = "rrf",
) -> Answer:
    """Fuse BM25 and dense, then halve scores for each half-life of the document's age.

    Reciprocal ranks are the default because they lie close together: by scores, age hardly moves a passage.
    """
    return do.answer(do.question, do.by_age(do.hybrid(do.question, fused_by), half_life))
