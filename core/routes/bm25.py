from core.routes.prelude import Annotated, Answer, Literal, Need, Steps, route


@route(
    "BM25",
    family="baseline",
    paper="Robertson & Zaragoza 2009, doi:10.1561/1500000019",
    needs=[Need.BM25],
    first=True,
    embeds=False,
)
def bm25(
    do: Steps,
    engine: Annotated[
        Literal["bm25s", "rank-bm25"], "the stored index, or a second implementation"
    ] = "bm25s",
) -> Answer:
    """Rank passages by the words they share with the question (BM25)."""
    return do.answer(do.question, do.sparse(do.question, engine=engine))
