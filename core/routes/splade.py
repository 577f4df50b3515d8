from core.routes.prelude import Answer, Need, Query, Steps, route


@route(
    "SPLADE",
    family="scoring",
    paper="Formal, Piwowarski & Clinchant 2021, arXiv:2107.05720",
    needs=[Need.LEARNED_SPARSE],
    embeds=False,
)
def splade(query: Query, do: Steps) -> Answer:
    """Search by learned sparse term weights (SPLADE), which include related terms."""
    return do.answer(query.text, do.learned_sparse(query.text))
