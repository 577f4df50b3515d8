from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route, shared


@route(
    "Hybrid + rerank by proximity",
    family="scoring",
    paper="Metzler & Croft 2005, A Markov Random Field Model for Term Dependencies; "
    "Khattab & Zaharia 2020, arXiv:2004.12832 (MaxSim)",
    needs=[Need.BM25],
    prepared=[Need.TOKENS],
)
def rerank_proximity(
    do: Steps,
    candidates: Annotated[int, Parameter(5, 200, "number of top hybrid hits to rerank")] = 200,
    fused_by: shared.FusedBy = "min_max",
) -> Answer:
    """Rerank all that BM25 and dense found by BM25, cosine, MaxSim and how close the question's words stand.

    Neighbouring words of the question that stand within 8 terms in a passage add to BM25, and MaxSim in the
    passage's best 64 tokens to MaxSim over all of it. Signals are scaled by mean and standard deviation.
    """
    found = do.hybrid(do.question, fused_by)
    return do.answer(do.question, do.rerank_proximity(do.question, found, candidates))
