from core.routes.prelude import Answer, Need, Query, Steps, route, shared


@route(
    "Contextual (headings)",
    family="index",
    paper="after Anthropic 2024, Introducing Contextual Retrieval; without its language model",
    needs=[Need.HEADINGS],
)
def contextual_headings(query: Query, do: Steps, *, alpha: shared.Alpha = 0.5) -> Answer:
    """Search passages together with their headings and neighbours, by BM25 and dense."""
    words = do.key_words(Need.HEADINGS, query.text)
    vectors = do.nearest_key(Need.HEADINGS, do.embed(query.text))
    return do.answer(query.text, do.linear((words, vectors), (1 - alpha, alpha)))
