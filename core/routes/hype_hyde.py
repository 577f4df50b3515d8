from core.routes.prelude import Answer, Need, Steps, route, shared


@route(
    "HyPE + HyDE",
    family="index",
    paper="Vake, Vičič & Tošić 2025, doi:10.2139/ssrn.5139335; Gao et al. 2022, arXiv:2212.10496",
    needs=[Need.QUESTIONS, Need.LLM],
)
def hype_hyde(do: Steps, n: shared.Imagined = 1) -> Answer:
    """Merge the hits of HyPE's hypothetical questions with those of a HyDE passage."""
    asked = do.nearest_key(Need.QUESTIONS, do.embed(do.question))
    imagined = do.nearest(do.mean_of(do.hypothesize(do.question, n), do.question))
    return do.answer(do.question, do.rrf((asked, imagined)))
