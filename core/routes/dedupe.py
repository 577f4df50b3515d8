from core.routes.prelude import Annotated, Answer, Literal, Need, Parameter, Steps, route, shared


@route(
    "Hybrid + deduplication",
    family="scoring",
    paper="Broder 1997, doi:10.1109/SEQUEN.1997.666900",
    needs=[Need.BM25],
)
def dedupe(
    do: Steps,
    by: Annotated[
        Literal["words", "embedding"], Parameter(help="3-word shingles, or embeddings (try .95)", tunes="by")
    ] = "words",
    threshold: Annotated[
        float, Parameter(0, 1, "minimum similarity of a duplicate", tunes="threshold")
    ] = 0.8,
    fused_by: shared.FusedBy = "auto",
) -> Answer:
    """Fuse BM25 and dense, then drop near-duplicates of better-ranked passages."""
    found = do.hybrid(do.question, fused_by)
    return do.answer(do.question, do.dedupe(found, by, threshold))
