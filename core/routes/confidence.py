from core.routes.prelude import Annotated, Answer, Need, Share, Steps, route, shared
from core.steps.confidence import How


@route(
    "Retrieve when unsure",
    family="agentic",
    paper="Jiang et al. 2023, arXiv:2305.06983 (probabilities); Tian et al. 2023, arXiv:2305.14975 (stated)",
    needs=[Need.LLM, Need.BM25],
    decides=["closed-book answer"],
)
def confidence(
    do: Steps,
    how: Annotated[How, "mean or minimum token probability; verbalised: stated by the model"] = "mean",
    threshold: Annotated[Share, "minimum confidence to answer without a search; 0: calibrated"] = 0.0,
    fused_by: shared.FusedBy = "rrf",
) -> Answer:
    """Answer from the model's own knowledge; retrieve only when its confidence is low.

    An answer without a search has no passages and cites none. Without a threshold, and where the model's
    confidence could not be calibrated, it is not asked: a small model is often sure of what is wrong.
    """
    worth = do.calibrated("closed-book answer", threshold, 1.0)
    if worth.decision == "calibrated" or threshold > 0:
        unaided = do.answer_unsearched(do.question)
        sure = do.decide_by_confidence(do.question, unaided, how, worth.cut)
        if sure.decision == "answer without retrieval":
            return unaided.over()
    hits = do.hybrid(do.question, fused_by)
    do.ranked(hits)
    return do.write_answer(do.question, hits[: shared.DEFAULT_SHOWN_PASSAGES]).over(hits)
