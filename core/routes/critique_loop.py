from core.routes.prelude import Annotated, Answer, Need, Parameter, Share, Steps, route, shared


@route(
    "Critique loop",
    family="corrective",
    paper="after Asai et al. 2023, arXiv:2310.11511, prompted; the model is not trained for it",
    needs=[Need.LLM, Need.BM25],
    decides=["look up", "passage relevance"],
    measured="No more right answers shown with a 1.5B model, but more of its citations are right.",
)
def critique_loop(
    do: Steps,
    passages: Annotated[int, Parameter(1, 5, "number of passages, each of which gets a separate answer")] = 3,
    search_from: Annotated[Share, "minimum P(Yes) that it must be looked up; 0: calibrated"] = 0.0,
    relevant_from: Annotated[Share, "minimum P(Yes) that a passage states the answer; 0: calibrated"] = 0.0,
    supported_from: Annotated[Share, "minimum support of a segment by its passage, to be the answer"] = 0.5,
    w_rel: shared.Relevance = 1.0,
    w_sup: shared.Support = 1.0,
    w_use: Annotated[float, Parameter(0, 5, "weight of the critique that the segment is useful")] = 0.5,
    fused_by: shared.FusedBy = "rrf",
) -> Answer:
    """Answer from each relevant passage separately, judge each answer, and return the best that is supported.

    This imitates Self-RAG by prompts and is not Self-RAG: the model was not trained to reflect, its
    judgements are replies to questions instead of tokens in the text, one segment is written per passage, no
    beam goes on from it, and how likely a segment was is no part of its score. Whether to search at all is
    asked only of a model whose reply to that was found to carry a signal.
    """
    look_up = do.calibrated("look up", search_from, 0.5)
    relevance = do.calibrated("passage relevance", relevant_from, 0.5)
    asks = look_up.decision == "calibrated" or search_from > 0
    if asks and do.worth_searching(do.question, look_up.cut).decision == "no retrieval":
        return do.unaided(do.question).over(())
    found = do.hybrid(do.question, fused_by)
    head, weights = found[:passages], {"relevance": w_rel, "support": w_sup, "utility": w_use}
    segments = do.judged_segments(do.question, head, relevance.cut)
    hits = do.append(do.by_judged(head, segments, weights), found)
    return do.choose_segment(segments, weights, supported_from).over(hits)
