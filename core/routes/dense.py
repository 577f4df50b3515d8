from core.routes.prelude import Annotated, Answer, Literal, Parameter, Steps, route


@route(
    "Dense",
    family="baseline",
    paper="Karpukhin et al. 2020, arXiv:2004.04906; Reimers & Gurevych 2019, arXiv:1908.10084",
    first=True,
)
def dense(
    do: Steps,
    search: Annotated[Literal["index", "exact"], "index: by the vector index; exact: past it"] = "index",
    ef_search: Annotated[int, Parameter(0, 1000, "candidates a graph keeps; 0: 200, or 100 more")] = 0,
) -> Answer:
    """Rank passages by the similarity of their embedding to the question's embedding."""
    return do.answer(do.question, do.dense(do.question, search=search, ef_search=ef_search))
