from core.route import route
from core.steps import Steps
from core.types import Answer, Query


@route("BM25", family="baseline", paper="Robertson & Zaragoza 2009, doi:10.1561/1500000019")
def bm25(query: Query, do: Steps) -> Answer:
    """Rank passages by the words they share with the question."""
    return do.answer(query.text, do.sparse(query.text))
