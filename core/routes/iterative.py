from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query, Ranking
from core.routes.declare import Parameter, route
from core.steps import POOL, Steps


@route(
    "Iterative retrieval (IRCoT)",
    family="agentic",
    paper="Trivedi et al. 2023, arXiv:2212.10509",
    needs=[Need.LLM],
)
def iterative(
    query: Query,
    do: Steps,
    *,
    steps: Annotated[int, Parameter(1, 5, "maximum number of reasoning sentences")] = 3,
    each: Annotated[int, Parameter(1, 10, "passages collected per search")] = 3,
    keep: Annotated[int, Parameter(1, 15, "passages collected in total")] = 9,
) -> Answer:
    """Alternate between searching and writing one sentence of reasoning, which is the next query.

    The passages collected come first, in retrieval order as in the paper: hits of the question itself stay
    ahead of hits of a sentence, which a small model may have made up. The rest follows, the rounds'
    lists fused by reciprocal rank, as scores of different texts do not compare.
    """

    def find(text: str) -> Ranking:
        return do.linear((do.sparse(text), do.dense(text)))

    lists: tuple[Ranking, ...] = (find(query.text),)
    collected = do.collect((), lists[0], each, keep)
    said: tuple[str, ...] = ()
    new = len(collected)
    while do.another_round(len(said), steps, new, do.lacking(2)).decision == "go on":
        thought = do.next_sentence(query.text, collected, said)
        if thought.decision != "search":
            break
        said = (*said, thought.sentence)
        lists = (*lists, find(thought.sentence))
        grown = do.collect(collected, lists[-1], each, keep)
        new, collected = len(grown) - len(collected), grown
    merged = do.append(collected, do.rrf(lists))[: 2 * POOL]
    return do.answer(query.text, merged, None, len(collected))
