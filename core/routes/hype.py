from core.routes.prelude import Answer, Need, Steps, route


@route(
    "HyPE", family="index", paper="Vake, Vičič & Tošić 2025, doi:10.2139/ssrn.5139335", needs=[Need.QUESTIONS]
)
def hype(do: Steps) -> Answer:
    """Search the hypothetical questions stored for each passage and return their passages."""
    return do.answer(do.question, do.nearest_key(Need.QUESTIONS, do.embed(do.question)))
