from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route, shared


@route(
    "Setwise reranking",
    family="scoring",
    needs=[Need.LLM, Need.BM25],
    paper="Zhuang et al. 2024, arXiv:2310.09497",
)
def setwise(
    do: Steps,
    candidates: shared.FewCandidates = 10,
    size: Annotated[int, Parameter(2, 20, "passages compared in one call")] = 4,
    top: Annotated[int, Parameter(1, 20, "places to fill by comparison; the rest keep their order")] = 3,
    check_order: shared.CheckOrder = False,
    fused_by: shared.FusedBy = "min_max",
) -> Answer:
    """Retrieve by BM25 and dense, then pick the best hits by asking the model for the best of a set.

    The probabilities of the labels decide, so that each comparison costs one token. Heap sort makes as few
    comparisons as the places to fill need.
    """
    found = do.hybrid(do.question, fused_by)
    first = do.setwise(do.question, found[:candidates], size, top, check_order)
    return do.answer(do.question, do.append(first, found))
