from core.routes.prelude import Annotated, Answer, Need, Steps, route, shared


@route("HyDE", family="query", paper="Gao et al. 2022, arXiv:2212.10496", needs=[Need.LLM], first=True)
def hyde(
    do: Steps,
    n: shared.Imagined = 1,
    with_question: shared.WithQuestion = True,
    instruction: Annotated[str, "custom instruction to the model; empty: the default"] = "",
    per_sample: Annotated[bool, "also search with each hypothetical passage alone"] = True,
) -> Answer:
    """Search with hypothetical passages (HyDE) instead of the question."""
    imagined = do.hypothesize(do.question, n, instruction)
    if per_sample:
        do.search_each(imagined)
    vector = do.mean_of(imagined, do.question if with_question else None)
    return do.answer(do.question, do.nearest(vector))
