from core.routes.prelude import Answer, Need, Steps, route


@route(
    "SPLADE",
    family="scoring",
    paper="Formal, Piwowarski & Clinchant 2021, arXiv:2107.05720",
    needs=[Need.LEARNED_SPARSE],
    embeds=False,
)
def splade(do: Steps) -> Answer:
    """Search by learned sparse term weights (SPLADE), which include related terms."""
    return do.answer(do.question, do.learned_sparse(do.question))
