from core.routes.prelude import Answer, Need, Steps, route, shared


@route(
    "Parent (small to big)",
    family="index",
    paper="Chen et al. 2023, Dense X Retrieval, arXiv:2312.06648 (granularity of what is searched)",
    needs=[Need.CHILDREN],
)
def parent(do: Steps, alpha: shared.Alpha = 1.0) -> Answer:
    """Search short pieces of one or two sentences and return the passages they are part of."""
    vectors = do.nearest_key(Need.CHILDREN, do.embed(do.question))
    if alpha == 1:
        return do.answer(do.question, vectors)
    words = do.key_words(Need.CHILDREN, do.question)
    return do.answer(do.question, do.linear((words, vectors), (1 - alpha, alpha)))
