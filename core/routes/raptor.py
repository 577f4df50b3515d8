from core.routes.prelude import Answer, Need, Steps, route


@route("RAPTOR", family="index", paper="Sarthi et al. 2024, arXiv:2401.18059", needs=[Need.SUMMARIES])
def raptor(do: Steps) -> Answer:
    """Search the vectors of passages and of summaries that a language model wrote.

    A summary that is found brings all passages of its group; answers are written from these.
    """
    return do.answer(do.question, do.collapsed_tree(Need.SUMMARIES, do.embed(do.question)))
