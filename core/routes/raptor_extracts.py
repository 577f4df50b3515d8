from core.routes.prelude import Answer, Need, Steps, route


@route(
    "RAPTOR, extracted", family="index", paper="Sarthi et al. 2024, arXiv:2401.18059", needs=[Need.EXTRACTS]
)
def raptor_extracts(do: Steps) -> Answer:
    """Search the vectors of passages and of summaries made of their own sentences.

    A summary that is found brings all passages of its group; answers are written from these.
    """
    return do.answer(do.question, do.collapsed_tree(Need.EXTRACTS, do.embed(do.question)))
