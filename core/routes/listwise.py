from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps


@route(
    "Listwise reranking",
    family="scoring",
    needs=[Need.LLM, Need.BM25],
    paper="Sun et al. 2023, arXiv:2304.09542 (RankGPT)",
)
def listwise(
    query: Query,
    do: Steps,
    *,
    candidates: Annotated[int, Parameter(2, 100, "number of top hybrid hits to rerank")] = 10,
    window: Annotated[int, Parameter(2, 20, "passages that the model orders at a time")] = 5,
    stride: Annotated[
        int, Parameter(1, 19, "places that the window moves; at most one less than the window")
    ] = 3,
    check_order: Annotated[
        bool, Parameter(help="also rerank the reversed order and measure the agreement: twice the calls")
    ] = False,
) -> Answer:
    """Retrieve by BM25 and dense, then have the language model order the hits, a window at a time.

    The window slides from the last hit to the first. Small models favour places in the prompt over what the
    passages say: `check_order` shows how much.
    """
    found = do.linear((do.sparse(query.text), do.dense(query.text)))
    first = do.listwise(query.text, found[:candidates], window, min(stride, window - 1), check_order)
    return do.answer(query.text, do.append(first, found))
