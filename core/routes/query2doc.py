from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route


@route(
    "Query2doc",
    family="query",
    paper="Wang, Yang & Wei 2023, arXiv:2303.07678",
    needs=[Need.LLM, Need.BM25],
    embeds=False,
)
def query2doc(
    do: Steps,
    n: Annotated[int, Parameter(1, 8, "number of hypothetical passages")] = 1,
    times: Annotated[int, Parameter(1, 20, "times that the question stands before them")] = 5,
) -> Answer:
    """Search BM25 with the question and a hypothetical passage."""
    imagined = do.hypothesize(do.question, n)
    return do.answer(do.question, do.sparse(do.query_to_document(do.question, imagined, times)))
