from core.routes.prelude import Annotated, Answer, Parameter, Share, Steps, route


@route("Dense + Rocchio", family="query", paper="Rocchio 1971; Li et al. 2022, arXiv:2108.11044")
def prf_rocchio(
    do: Steps,
    passages: Annotated[int, Parameter(1, 50, "first passages whose vectors are averaged")] = 3,
    feedback: Annotated[Share, "weight of their mean; the question's vector has 1 minus it"] = 0.4,
) -> Answer:
    """Search by embedding again, with the vector moved towards the first passages found (Rocchio)."""
    vector = do.embed(do.question)
    moved = do.rocchio(vector, do.question, do.nearest(vector), passages, feedback)
    return do.answer(do.question, do.nearest(moved))
