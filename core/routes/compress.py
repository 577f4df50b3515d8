from core.routes.prelude import Annotated, Answer, Literal, Need, Parameter, Steps, route, shared


@route(
    "Contextual compression",
    family="scoring",
    paper="Xu, Shi & Choi 2023, arXiv:2310.04408; Jiang et al. 2023, arXiv:2310.06839",
    needs=[Need.BM25],
    needs_if={("how", "llm"): Need.LLM},
    prepared=[Need.CHILDREN],
)
def compress(
    do: Steps,
    shown: Annotated[int, Parameter(1, 20, "number of top hybrid hits to compress")] = 10,
    floor: Annotated[
        float, Parameter(-1, 1, "minimum cosine of a passage with the question", tunes="floor", cosine=True)
    ] = 0.2,
    how: Annotated[
        Literal["embedding", "llm"], "by cosine, or by the model, one call per passage"
    ] = "embedding",
    strip_floor: shared.SentenceFloor = 0.3,
    fused_by: shared.FusedBy = "auto",
) -> Answer:
    """Filter the retrieved passages down to the sentences that matter and answer from those.

    Passages with at least one sentence left come first, in their retrieved order; the other hits follow, so
    that no hit is lost. The answer uses the remaining sentences only. The thresholds were chosen on dev
    questions of `support`, by the share of labelled quotes that pass.
    """
    found = do.hybrid(do.question, fused_by)
    head = found[:shown]
    near = do.near(do.question, head, floor)
    strips = (
        do.helpful(do.question, near)
        if how == "llm"
        else do.strips(do.question, near, strip_floor, titled=True)
    )
    excerpts = do.excerpts(head, strips)
    kept = do.with_excerpts(head, excerpts)
    return do.answer(do.question, do.append(kept, found), excerpts, len(kept))
