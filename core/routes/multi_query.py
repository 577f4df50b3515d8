from core.routes.prelude import Annotated, Answer, Literal, Need, Steps, route, shared


@route(
    "Multi-query (union)",
    family="query",
    paper="LangChain 2023, MultiQueryRetriever",
    needs=[Need.LLM, Need.BM25],
)
def multi_query(
    do: Steps,
    n: shared.Variants = 3,
    search: Annotated[Literal["dense", "bm25", "hybrid"], "search used for each query variant"] = "hybrid",
    fused_by: shared.FusedBy = "rrf",
) -> Answer:
    """Search with the question and its variants, merge the lists by best rank."""

    texts = (do.question, *do.variants(do.question, n))
    found = tuple(do.found_with(search, text, fused_by) for text in texts)
    return do.answer(do.question, do.union(found, texts))
