from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import route
from core.steps import Steps


@route(
    "SPLADE",
    family="scoring",
    paper="Formal, Piwowarski & Clinchant 2021, arXiv:2107.05720",
    needs=[Need.LEARNED_SPARSE],
)
def splade(query: Query, do: Steps) -> Answer:
    """Search by terms that a model finds in texts, also those they lack, and the weights it gives."""
    return do.answer(query.text, do.learned_sparse(query.text))
