from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query, Ranking
from core.routes.declare import Parameter, route
from core.steps import Steps


@route("Decomposition", family="query", paper="Zhou et al. 2022, arXiv:2205.10625", needs=[Need.LLM])
def decompose(
    query: Query,
    do: Steps,
    *,
    n: Annotated[int, Parameter(2, 6, "maximum number of sub-questions")] = 4,
    sequential: Annotated[
        bool, Parameter(help="fill answers to earlier sub-questions into later ones")
    ] = False,
    with_question: Annotated[bool, Parameter(help="also search with the question itself")] = True,
) -> Answer:
    """Split the question into simpler sub-questions, search each, merge by best score.

    A score is the mean of BM25's and the embedding's, each min-max normalised within its sub-question: so the
    best of each sub-question can lead, as every one of them is needed. Cosines are on one scale too, but
    they differ more by how a sub-question is worded than by how well it is answered.
    """

    def find(text: str) -> Ranking:
        return do.linear((do.sparse(text), do.dense(text)), (0.5, 0.5))

    parts = do.decompose(query.text, n, sequential)
    if parts == (query.text,):
        return do.answer(query.text, find(query.text))
    asked = (query.text,) if with_question and query.text not in parts else ()
    if sequential:
        found = {text: find(text) for text in asked} | do.in_turn(parts, query.text, find)
    else:
        found = dict(zip((*asked, *parts), do.each(find, (*asked, *parts)), strict=True))
    return do.answer(query.text, do.best(tuple(found.values()), tuple(found)))
