from core.routes.prelude import Annotated, Answer, Literal, Need, Parameter, Steps, route


@route(
    "Dense",
    family="baseline",
    paper="Karpukhin et al. 2020, arXiv:2004.04906; Reimers & Gurevych 2019, arXiv:1908.10084",
    needs_if={("late", True): Need.LATE},
    first=True,
)
def dense(
    do: Steps,
    search: Annotated[Literal["index", "exact"], "index: by the vector index; exact: past it"] = "index",
    ef_search: Annotated[int, Parameter(0, 1000, "candidates a graph keeps; 0: 200, or 100 more")] = 0,
    late: Annotated[bool, "late chunking: the mean with each passage's vector within its document"] = False,
) -> Answer:
    """Rank passages by the similarity of their embedding to the question's embedding."""
    if late:
        return do.answer(do.question, do.nearest_key(Need.LATE, do.embed(do.question)))
    return do.answer(do.question, do.dense(do.question, search=search, ef_search=ef_search))
