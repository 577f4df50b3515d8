from core.backends.prompting.citations import NOT_ANSWERED, Draft
from core.routes.prelude import Annotated, Answer, Need, Share, Steps, route, shared


@route(
    "Self-Route",
    family="corrective",
    paper="Li et al. 2024, arXiv:2407.16833",
    needs=[Need.LLM, Need.BM25],
    decides=["evidence"],
)
def self_route(
    do: Steps,
    threshold: Annotated[Share, "minimum P(Yes) that what was found holds the answer; 0: calibrated"] = 0.0,
    fused_by: shared.FusedBy = "rrf",
) -> Answer:
    """Answer from a hybrid search; where it lacks the answer, from the whole corpus if that fits, else not.

    What is cited from the whole corpus is listed before what was found.
    """
    hits = do.hybrid(do.question, fused_by)
    do.ranked(hits)
    worth = do.calibrated("evidence", threshold, shared.EVIDENCE)
    chosen = do.found_or_all(do.question, hits[: shared.DEFAULT_SHOWN_PASSAGES], worth.cut).decision
    if chosen == "abstain":
        return Draft(NOT_ANSWERED, abstained=True).over(hits)
    if chosen == "answer from what was found":
        return do.write_answer(do.question, hits[: shared.DEFAULT_SHOWN_PASSAGES], evidence=0.0).over(hits)
    everything = do.whole_corpus()
    draft = do.answer_from_all(do.question, everything)
    return draft.over(do.append(do.cited(everything, draft.citations), hits))
