from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps


@route(
    "Listwise rerank (RankGPT)",
    family="scoring",
    paper="Sun et al. 2023, arXiv:2304.09542",
    needs=[Need.LLM],
)
def listwise(
    query: Query,
    do: Steps,
    *,
    candidates: Annotated[int, Parameter(2, 50, "number of top hybrid hits to order")] = 20,
    window: Annotated[int, Parameter(2, 20, "passages in one prompt")] = 8,
    stride: Annotated[int, Parameter(1, 19, "how far a window begins before the one behind it")] = 4,
    check_order: Annotated[
        bool,
        Parameter(help="also give them in reverse, to show how far their order sways it; its time counts"),
    ] = False,
) -> Answer:
    """Retrieve by BM25 and dense; a language model then orders several passages at a time."""
    found = do.linear((do.sparse(query.text), do.dense(query.text)))
    ordered = do.order_windows(query.text, found, candidates, window, stride)
    if check_order:
        reverse = do.order_windows(query.text, found, candidates, window, stride, reverse=True)
        do.sway(ordered, reverse, candidates)
    return do.answer(query.text, ordered)
