from typing import Annotated, Literal

from core.routes.prelude import Answer, Need, Query, Ranking, Steps, route, shared


@route(
    "Multi-query (union)",
    family="query",
    paper="LangChain 2023, MultiQueryRetriever",
    needs=[Need.LLM, Need.BM25],
)
def multi_query(
    query: Query,
    do: Steps,
    *,
    n: shared.Variants = 3,
    search: Annotated[Literal["dense", "bm25", "hybrid"], "search used for each query variant"] = "hybrid",
    fused_by: shared.FusedBy = "rrf",
) -> Answer:
    """Search with the question and its variants, merge the lists by best rank."""

    def find(text: str) -> Ranking:
        if search == "hybrid":
            return do.hybrid(text, fused_by)
        return do.dense(text) if search == "dense" else do.sparse(text)

    texts = (query.text, *do.variants(query.text, n))
    return do.answer(query.text, do.union(tuple(find(text) for text in texts), texts))
