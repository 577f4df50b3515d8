from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps


@route(
    "Learned fusion",
    family="hybrid",
    paper="Bartell, Cottrell & Belew 1994, Automatic Combination of Multiple Ranked Retrieval Systems; "
    "against weights set by hand: Bruch, Gai & Ingber 2022, arXiv:2210.11934",
    needs=[Need.WEIGHTS],
)
def learned_fusion(
    query: Query,
    do: Steps,
    *,
    weights: Annotated[
        str, Parameter(help="the name of fitted weights; empty: the newest of the corpus")
    ] = "",
    candidates: Annotated[int, Parameter(1, 100, "passages scored, from the top of each list")] = 100,
) -> Answer:
    """Search in several ways and add the scores up with weights that were fitted on labels of the corpus."""
    fitted = do.fitted(weights)
    lists = do.found_by(fitted.lists, query.text)
    return do.answer(query.text, do.fuse_fitted(lists, fitted, candidates))
