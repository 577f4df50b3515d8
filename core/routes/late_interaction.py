from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route, shared


@route(
    "Late interaction (MaxSim)",
    family="scoring",
    paper="Khattab & Zaharia 2020, ColBERT, arXiv:2004.12832",
    needs=[Need.TOKENS, Need.BM25],
)
def late_interaction(
    do: Steps,
    candidates: Annotated[
        int, Parameter(0, 1000, "passages scored of each list; 0: the whole corpus", tunes="candidates")
    ] = 100,
) -> Answer:
    """Match each question token with its most similar passage token and sum the similarities (MaxSim).

    The vectors are those of the model that is set: MiniLM was never trained for this, a ColBERT model was.
    """
    asked = do.embed_tokens(do.question)
    if candidates == 0:
        return do.answer(do.question, do.maxsim_all(asked))
    depth = max(candidates, shared.POOL)  # not less, so that the searches are those of other routes
    lists = (do.sparse(do.question, depth), do.dense(do.question, depth))
    return do.answer(do.question, do.maxsim(asked, lists, candidates))
