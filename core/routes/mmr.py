from core.routes.prelude import Annotated, Answer, Parameter, Steps, route


@route(
    "Dense + MMR",
    family="scoring",
    paper="Carbonell & Goldstein 1998, doi:10.1145/290941.291025",
    first=True,
)
def mmr(
    do: Steps,
    lam: Annotated[
        float, Parameter(0, 1, "weight of relevance; diversity has 1 minus it", tunes="lam")
    ] = 0.7,
    pool: Annotated[int, Parameter(10, 100, "number of nearest passages to choose from", tunes="pool")] = 50,
    k: Annotated[int, Parameter(1, 100, "number of passages chosen; the others follow", tunes="k")] = 10,
) -> Answer:
    """Search by embedding, then rerank for relevance and diversity (MMR)."""
    vector = do.embed(do.question)
    return do.answer(do.question, do.mmr(vector, do.nearest(vector), lam, k, pool))
