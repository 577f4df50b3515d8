from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route, shared


@route(
    "Hybrid with noise (control)",
    family="hybrid",
    paper="Cuconasu et al. 2024, arXiv:2401.14887",
    needs=[Need.BM25],
)
def noise(
    do: Steps,
    count: Annotated[int, Parameter(0, 50, "number of unrelated passages")] = 2,
    top: Annotated[int, Parameter(1, 50, "first places among which they are put")] = 5,
    seed: Annotated[int, Parameter(0, 1000000, "seed of what is drawn, and where it is put")] = 0,
    fused_by: shared.FusedBy = "auto",
) -> Answer:
    """Hybrid search with unrelated passages put among the first: a control that shows which answers break."""
    found = do.hybrid(do.question, fused_by)
    return do.answer(do.question, do.with_noise(found, count, top, seed))
