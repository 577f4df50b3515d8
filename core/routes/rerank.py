from core.routes.prelude import Annotated, Answer, Need, Share, Steps, route, shared
from core.steps.rerank import Which


@route(
    "Hybrid + rerank",
    family="scoring",
    paper="Nogueira & Cho 2019, arXiv:1901.04085; Khattab & Zaharia 2020, arXiv:2004.12832 (MaxSim)",
    needs=[Need.BM25],
    needs_if={("reranker", "llm"): Need.LLM},
    first=True,
    prepared=[Need.TOKENS],
)
def rerank(
    do: Steps,
    candidates: shared.Candidates = 50,
    reranker: Annotated[Which, "reranker; configured: the one in the settings"] = "configured",
    share: Annotated[Share, "weight of a cross-encoder's or server's score; 0: the model's own"] = 0.0,
    fused_by: shared.FusedBy = "min_max",
) -> Answer:
    """Retrieve by BM25 and dense, then rerank by scoring question and passage together.

    The first stage adds min-max normalised scores. The embedded reranker adds MaxSim
    over token vectors, in which a word of the question counts by its IDF, to BM25 and the cosine of each
    passage's nearest piece, or its own where no pieces were made.
    """
    found = do.hybrid(do.question, fused_by)
    return do.answer(do.question, do.rerank(do.question, found, candidates, reranker, share))
