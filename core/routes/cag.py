from core.routes.prelude import Answer, Need, Steps, route


@route(
    "Cache-augmented generation",
    family="baseline",
    paper="Chan et al. 2024, arXiv:2412.15605",
    needs=[Need.LLM, Need.FITS],
    measured="With a 1.5B model 4 of 20 answers were right.",
    embeds=False,
)
def cag(do: Steps) -> Answer:
    """Put the whole corpus into a cached prompt and answer the question from all of it.

    Nothing is retrieved, so there is no ranking: what is listed is what the answer cites, in that order. The
    first question costs the reading of the corpus, later ones only what differs. With the default 1.5B model
    4 of 20 answers over ten documents of `support` were correct, 1 of them with a right citation, and none of
    the 6 questions without an answer was refused.
    """
    everything = do.whole_corpus()
    draft = do.answer_from_all(do.question, everything)
    return draft.over(do.cited(everything, draft.citations))
