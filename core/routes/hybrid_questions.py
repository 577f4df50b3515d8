from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route


@route(
    "Hybrid + hypothetical questions",
    family="index",
    paper="Bruch, Gai & Ingber 2022, arXiv:2210.11934 (fusion); Nogueira et al. 2019, arXiv:1904.08375; "
    "Vake, Vičič & Tošić 2025, doi:10.2139/ssrn.5139335",
    needs=[Need.EXPANDED, Need.QUESTIONS],
)
def hybrid_questions(
    do: Steps,
    questions: Annotated[
        float, Parameter(0, 2, "weight of the questions' vectors; BM25 and dense have 1 each")
    ] = 0.75,
) -> Answer:
    """Fuse BM25 over passages with their hypothetical questions, dense, and dense over the questions."""
    vector = do.embed(do.question)
    lists = (
        do.key_words(Need.EXPANDED, do.question),
        do.nearest(vector),
        do.nearest_key(Need.QUESTIONS, vector),
    )
    return do.answer(do.question, do.linear(lists, (1, 1, questions)))
