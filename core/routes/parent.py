from core.routes.prelude import Answer, Need, Query, Steps, route, shared


@route(
    "Parent (small to big)",
    family="index",
    paper="Chen et al. 2023, Dense X Retrieval, arXiv:2312.06648 (granularity of what is searched)",
    needs=[Need.CHILDREN],
)
def parent(query: Query, do: Steps, *, alpha: shared.Alpha = 1.0) -> Answer:
    """Search short pieces of one or two sentences and return the passages they are part of."""
    vectors = do.nearest_key(Need.CHILDREN, do.embed(query.text))
    if alpha == 1:
        return do.answer(query.text, vectors)
    words = do.key_words(Need.CHILDREN, query.text)
    return do.answer(query.text, do.linear((words, vectors), (1 - alpha, alpha)))
