from core.routes.prelude import Answer, Need, Steps, route


@route(
    "Doc2query",
    family="index",
    paper="Nogueira, Yang, Lin & Cho 2019, arXiv:1904.08375",
    needs=[Need.EXPANDED],
    embeds=False,
)
def doc2query(do: Steps) -> Answer:
    """Search BM25 over passages with the hypothetical questions stored for each."""
    return do.answer(do.question, do.key_words(Need.EXPANDED, do.question))
