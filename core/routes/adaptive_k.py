from core.routes.prelude import Annotated, Answer, Parameter, Steps, route


@route("Adaptive k", family="scoring", paper="Taguchi, Maekawa & Bhutani 2025, arXiv:2506.08479")
def adaptive_k(
    do: Steps,
    least: Annotated[int, Parameter(1, 50, "passages kept in any case")] = 3,
    beyond: Annotated[int, Parameter(0, 50, "passages kept behind the largest drop")] = 5,
    pool: Annotated[int, Parameter(2, 100, "first passages whose scores are looked at")] = 50,
) -> Answer:
    """Search by embedding and end the list at the largest drop of scores."""
    found = do.dense(do.question, pool)
    return do.answer(do.question, do.cut_at_drop(found, least, beyond))
