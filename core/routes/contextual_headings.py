from core.routes.prelude import Answer, Need, Steps, route, shared


@route(
    "Contextual (headings)",
    family="index",
    paper="after Anthropic 2024, Introducing Contextual Retrieval; without its language model",
    needs=[Need.HEADINGS],
)
def contextual_headings(do: Steps, alpha: shared.Alpha = 0.5) -> Answer:
    """Search passages together with their headings and neighbours, by BM25 and dense."""
    words = do.key_words(Need.HEADINGS, do.question)
    vectors = do.nearest_key(Need.HEADINGS, do.embed(do.question))
    return do.answer(do.question, do.linear((words, vectors), (1 - alpha, alpha)))
