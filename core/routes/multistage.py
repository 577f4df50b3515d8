from core.routes.prelude import Annotated, Answer, Literal, Need, Parameter, Ranking, Steps, route


@route(
    "Multi-stage",
    family="scoring",
    paper="Nogueira et al. 2019, arXiv:1910.14424; Gao et al. 2023, arXiv:2312.10997, section III",
    needs=[Need.LLM, Need.BM25],
)
def multistage(
    do: Steps,
    transformation: Annotated[
        Literal["auto", "none", "rewrite", "decompose", "hyde", "variants"],
        "auto: chosen by analysing the question",
    ] = "auto",
    strange: Annotated[
        float, Parameter(0, 1, "choose HyDE if the best cosine is below", tunes="strange", cosine=True)
    ] = 0.45,
    candidates: Annotated[int, Parameter(5, 100, "number of passages to rerank")] = 50,
    alike: Annotated[float, Parameter(0, 1, "minimum similarity of a duplicate", tunes="threshold")] = 0.8,
    lam: Annotated[float, Parameter(0, 1, "weight of relevance against diversity", tunes="lam")] = 0.9,
) -> Answer:
    """Analyse and transform the question, search, fuse, rerank, deduplicate, diversify."""

    def find(text: str) -> tuple[Ranking, ...]:
        return do.sparse(text), do.dense(text)

    own = find(do.question)
    analysis = do.analyse(do.query, own[1], strange)
    chosen = analysis.transformation if transformation == "auto" else transformation
    text = do.question
    if chosen == "rewrite":
        text = do.standalone(do.query)
        lists = find(text)
    elif chosen == "hyde":
        lists = (*own, do.nearest(do.mean_of(do.hypothesize(text, 1), text)))
    elif chosen == "none":
        lists = own
    else:
        others = do.decompose(text, 4) if chosen == "decompose" else do.variants(text, 3)
        lists = (*own, *(one for other in others if other != text for one in find(other)))
    reranked = do.rerank(text, do.rrf(lists), candidates)
    distinct = do.dedupe(reranked, "words", alike)
    return do.answer(text, do.mmr(text, distinct, lam, 10, candidates, "rank"))
