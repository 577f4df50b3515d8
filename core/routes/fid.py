from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route, shared


@route(
    "Fusion-in-Decoder",
    family="baseline",
    paper="Izacard & Grave 2021, arXiv:2007.01282; arXiv:2012.04584 (attention as relevance)",
    needs=[Need.FID, Need.BM25],
    measured="Not measured with its trained weights.",
)
def fid(
    do: Steps,
    passages: Annotated[int, Parameter(1, 20, "number of top hybrid hits to read")] = 5,
    fused_by: shared.FusedBy = "min_max",
) -> Answer:
    """Retrieve by BM25 and dense; a T5 encodes each passage separately and writes one answer from all.

    The ranking stays as retrieved. What each passage contributed is the decoder's attention, on the step;
    the passage with most of it is cited.
    """
    found = do.hybrid(do.question, fused_by)
    do.ranked(found)
    return do.read_together(do.question, found[:passages]).over(found)
