from core.routes.prelude import Answer, Need, Steps, route, shared


@route(
    "Contextual",
    family="index",
    paper="Anthropic 2024, Introducing Contextual Retrieval, anthropic.com/news/contextual-retrieval",
    needs=[Need.CONTEXTS],
)
def contextual(do: Steps, alpha: shared.Alpha = 0.5) -> Answer:
    """Search passages together with a context that the model wrote for each, by BM25 and dense."""
    words = do.key_words(Need.CONTEXTS, do.question)
    vectors = do.nearest_key(Need.CONTEXTS, do.embed(do.question))
    return do.answer(do.question, do.linear((words, vectors), (1 - alpha, alpha)))
