from core.routes.prelude import Answer, Query, Steps, route


@route("Grep", family="baseline", paper="Sen et al. 2026, arXiv:2605.15184", embeds=False, first=True)
def grep(query: Query, do: Steps) -> Answer:
    """Match the question's words, identifiers and quoted phrases in the text itself, without an index."""
    return do.answer(query.text, do.grep(query.text))
