from core.domain.types import Answer, Query
from core.routes.declare import route
from core.steps import Steps


@route(
    "Dense",
    family="baseline",
    paper="Karpukhin et al. 2020, arXiv:2004.04906; Reimers & Gurevych 2019, arXiv:1908.10084",
    first=True,
)
def dense(query: Query, do: Steps) -> Answer:
    """Rank passages by the similarity of their embedding to the question's embedding."""
    return do.answer(query.text, do.dense(query.text))
