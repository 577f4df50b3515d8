from core.routes.prelude import Answer, Need, Query, Steps, route, shared


@route("HyDE, gated", family="query", paper="Gao et al. 2022, arXiv:2212.10496", needs=[Need.LLM])
def hyde_gated(
    query: Query,
    do: Steps,
    *,
    n: shared.Imagined = 1,
    with_question: shared.WithQuestion = True,
    fused_by: shared.FusedBy = "auto",
) -> Answer:
    """Search with HyDE passages, or with BM25 and dense when the question has exact identifiers."""
    if do.gate(query.text).decision == "hybrid":
        return do.answer(query.text, do.hybrid(query.text, fused_by))
    imagined = do.hypothesize(query.text, n)
    vector = do.mean_of(imagined, query.text if with_question else None)
    return do.answer(query.text, do.nearest(vector))
