from typing import Annotated, Literal

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps


@route(
    "Contextual compression",
    family="scoring",
    paper="Xu, Shi & Choi 2023, arXiv:2310.04408; Jiang et al. 2023, arXiv:2310.06839",
    needs_if={("how", "llm"): Need.LLM},
)
def compress(
    query: Query,
    do: Steps,
    *,
    shown: Annotated[int, Parameter(1, 20, "passages compressed, from the top of hybrid search")] = 10,
    floor: Annotated[
        float, Parameter(-1, 1, "cosine with the question below which a passage is dropped", tunes="floor")
    ] = 0.2,
    how: Annotated[
        Literal["embedding", "llm"],
        Parameter(
            help="what chooses sentences: their cosine with the question, or the model, a call each passage"
        ),
    ] = "embedding",
    strip_floor: Annotated[
        float,
        Parameter(
            -1, 1, "cosine from which a sentence is kept; each passage's best always is", tunes="floor"
        ),
    ] = 0.3,
) -> Answer:
    """Keep of the passages found only the sentences that matter, and answer from those.

    Passages of which something was kept come first, in their old order; the others of the search follow them,
    so that nothing found is lost. An answer is written from what was kept alone. The floors were chosen on
    dev questions of `support`, by the share of labelled quotes that they keep.
    """
    found = do.rrf((do.sparse(query.text), do.dense(query.text)))
    head = found[:shown]
    near = do.near(query.text, head, floor)
    strips = (
        do.helpful(query.text, near)
        if how == "llm"
        else do.strips(query.text, near, strip_floor, titled=True)
    )
    excerpts = do.excerpts(head, strips)
    kept = do.with_excerpts(head, excerpts)
    return do.answer(query.text, do.append(kept, found), excerpts, len(kept))
