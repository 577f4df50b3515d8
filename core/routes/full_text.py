from core.routes.prelude import Answer, Need, Steps, route


@route(
    "Full text (PostgreSQL)",
    family="baseline",
    paper="Clarke, Cormack & Tudhope 1999, doi:10.1016/S0306-4573(99)00017-5",
    needs=(Need.FULL_TEXT,),
    embeds=False,
)
def full_text(do: Steps) -> Answer:
    """Rank passages by PostgreSQL's ts_rank_cd: words of the question that stand close together. Not BM25."""
    return do.answer(do.question, do.full_text(do.question))
