from core.routes.prelude import Answer, Need, Steps, route, shared


@route("HyDE, gated", family="query", paper="Gao et al. 2022, arXiv:2212.10496", needs=[Need.LLM])
def hyde_gated(
    do: Steps,
    n: shared.Imagined = 1,
    with_question: shared.WithQuestion = True,
    fused_by: shared.FusedBy = "auto",
) -> Answer:
    """Search with HyDE passages, or with BM25 and dense when the question has exact identifiers."""
    if do.gate(do.question).decision == "hybrid":
        return do.answer(do.question, do.hybrid(do.question, fused_by))
    imagined = do.hypothesize(do.question, n)
    vector = do.mean_of(imagined, do.question if with_question else None)
    return do.answer(do.question, do.nearest(vector))
