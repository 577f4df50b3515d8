from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route


@route(
    "Learned fusion",
    family="hybrid",
    paper="Bartell, Cottrell & Belew 1994, Automatic Combination of Multiple Ranked Retrieval Systems; "
    "against weights set by hand: Bruch, Gai & Ingber 2022, arXiv:2210.11934",
    needs=[Need.WEIGHTS],
)
def learned_fusion(
    do: Steps,
    weights: Annotated[str, "name of the fitted weights; empty: the newest of the corpus"] = "",
    candidates: Annotated[int, Parameter(1, 100, "number of top passages per list to score")] = 100,
) -> Answer:
    """Run several searches and fuse their scores with weights fitted on the labels of the corpus."""
    fitted = do.fitted(weights)
    lists = do.found_by(fitted.lists, do.question)
    return do.answer(do.question, do.fuse_fitted(lists, fitted, candidates))
