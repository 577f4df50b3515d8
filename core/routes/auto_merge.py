from core.routes.prelude import Annotated, Answer, Need, Parameter, Share, Steps, route, shared


@route("Auto-merging", family="index", paper="LlamaIndex 2023, AutoMergingRetriever", needs=[Need.CHILDREN])
def auto_merge(
    do: Steps,
    pieces: Annotated[int, Parameter(1, 500, "number of nearest pieces that count as found")] = 12,
    share: Annotated[Share, "share of a passage's pieces above which the whole passage is read"] = 0.5,
) -> Answer:
    """Search short pieces; a passage is read whole where many of its pieces are found, else those alone.

    The ranking is that of the route `parent`: only what is read differs.
    """
    vector = do.embed(do.question)
    hits = do.nearest_key(Need.CHILDREN, vector)
    return do.answer(
        do.question,
        hits,
        do.merge_pieces(hits[: shared.DEFAULT_SHOWN_PASSAGES], vector, pieces, share).excerpts,
    )
