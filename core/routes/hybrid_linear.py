from core.routes.prelude import Annotated, Answer, Literal, Need, Parameter, Steps, route, shared


@route(
    "Hybrid (linear)",
    family="hybrid",
    paper="Bruch, Gai & Ingber 2022, arXiv:2210.11934; dbsf: Mazzeschi 2023, Distribution-Based Score Fusion",
    needs=[Need.BM25],
)
def hybrid_linear(
    do: Steps,
    alpha: shared.Alpha = 0.5,
    norm: Annotated[
        Literal["z", "min_max", "dbsf"],
        Parameter(
            help="normalise by mean and standard deviation, by minimum and maximum, or by distribution, "
            "clipped at 3 standard deviations",
            tunes="norm",
        ),
    ] = "z",
) -> Answer:
    """Add the normalised scores that BM25 and dense give to every candidate of either."""
    return do.answer(do.question, do.linear(do.both(do.question), (1 - alpha, alpha), norm))
