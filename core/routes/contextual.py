from core.routes.prelude import Answer, Need, Query, Steps, route, shared


@route(
    "Contextual",
    family="index",
    paper="Anthropic 2024, Introducing Contextual Retrieval, anthropic.com/news/contextual-retrieval",
    needs=[Need.CONTEXTS],
)
def contextual(query: Query, do: Steps, *, alpha: shared.Alpha = 0.5) -> Answer:
    """Search passages together with a context that the model wrote for each, by BM25 and dense."""
    words = do.key_words(Need.CONTEXTS, query.text)
    vectors = do.nearest_key(Need.CONTEXTS, do.embed(query.text))
    return do.answer(query.text, do.linear((words, vectors), (1 - alpha, alpha)))
