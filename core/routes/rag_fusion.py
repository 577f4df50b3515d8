from core.routes.prelude import Answer, Need, Steps, route, shared


@route(
    "RAG-Fusion",
    family="query",
    paper="Rackauckas 2024, arXiv:2402.03367",
    needs=[Need.LLM, Need.BM25],
    first=True,
)
def rag_fusion(do: Steps, n: shared.Variants = 3, k: shared.RrfConstant = 60) -> Answer:
    """Search with the question and its variants, fuse all lists by reciprocal rank."""
    texts = (do.question, *do.variants(do.question, n))
    lists = tuple(ranking for text in texts for ranking in (do.sparse(text), do.dense(text)))
    return do.answer(do.question, do.rrf(lists, k)[: 2 * shared.POOL])
