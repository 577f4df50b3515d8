from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route, shared


@route(
    "Sentence window",
    family="index",
    paper="LlamaIndex 2023, SentenceWindowNodeParser",
    needs=[Need.SENTENCES],
)
def sentence_window(
    do: Steps,
    window: Annotated[int, Parameter(0, 20, "number of sentences read on each side of the one found")] = 3,
) -> Answer:
    """Search single sentences; what is read of a passage is the sentence found and those around it."""
    vector = do.embed(do.question)
    hits = do.nearest_key(Need.SENTENCES, vector)
    head = hits[: shared.DEFAULT_SHOWN_PASSAGES]
    return do.answer(do.question, hits, do.sentences_around(head, vector, window))
