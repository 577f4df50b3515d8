from core.routes.prelude import Answer, Need, Query, Steps, route


@route(
    "HyPE", family="index", paper="Vake, Vičič & Tošić 2025, doi:10.2139/ssrn.5139335", needs=[Need.QUESTIONS]
)
def hype(query: Query, do: Steps) -> Answer:
    """Search the hypothetical questions stored for each passage and return their passages."""
    return do.answer(query.text, do.nearest_key(Need.QUESTIONS, do.embed(query.text)))
