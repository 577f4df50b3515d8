from core.routes.prelude import Answer, Steps, route


@route("Grep", family="baseline", paper="Sen et al. 2026, arXiv:2605.15184", embeds=False, first=True)
def grep(do: Steps) -> Answer:
    """Match the question's words, identifiers and quoted phrases in the text itself, without an index."""
    return do.answer(do.question, do.grep(do.question))
