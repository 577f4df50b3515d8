from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import route
from core.steps import Steps


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
