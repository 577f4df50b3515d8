from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route, shared


@route(
    "Listwise reranking",
    family="scoring",
    needs=[Need.LLM, Need.BM25],
    paper="Sun et al. 2023, arXiv:2304.09542 (RankGPT)",
)
def listwise(
    do: Steps,
    candidates: shared.FewCandidates = 10,
    window: Annotated[int, Parameter(2, 20, "passages that the model orders at a time")] = 5,
    stride: Annotated[int, Parameter(1, 19, "places that the window moves; less than the window")] = 3,
    check_order: shared.CheckOrder = False,
    fused_by: shared.FusedBy = "min_max",
) -> Answer:
    """Retrieve by BM25 and dense, then have the language model order the hits, a window at a time.

    The window slides from the last hit to the first. Small models favour places in the prompt over what the
    passages say: `check_order` shows how much.
    """
    found = do.hybrid(do.question, fused_by)
    first = do.listwise(do.question, found[:candidates], window, min(stride, window - 1), check_order)
    return do.answer(do.question, do.append(first, found))
