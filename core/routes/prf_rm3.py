from core.routes.prelude import Annotated, Answer, Need, Parameter, Share, Steps, route


@route(
    "BM25 + RM3",
    family="query",
    paper="Abdul-Jaleel et al. 2004, UMass at TREC 2004",
    needs=[Need.BM25],
    embeds=False,
)
def prf_rm3(
    do: Steps,
    passages: Annotated[int, Parameter(1, 50, "first passages whose terms are taken")] = 10,
    terms: Annotated[int, Parameter(1, 100, "terms taken from them")] = 10,
    original: Annotated[Share, "weight of the question's own terms; the taken have 1 minus it"] = 0.5,
) -> Answer:
    """Search BM25 again with terms of the first passages found (RM3 relevance feedback)."""
    first = do.sparse(do.question)
    return do.answer(do.question, do.weighted_terms(do.rm3(do.question, first, passages, terms, original)))
