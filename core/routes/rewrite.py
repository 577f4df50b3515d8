from core.route import Need, route
from core.steps import Steps
from core.types import Answer, Query


@route(
    "Rewrite + hybrid", family="query", paper="Ma et al. 2023, arXiv:2305.14283", needs=[Need.LLM], first=True
)
def rewrite(query: Query, do: Steps) -> Answer:
    """Make a follow-up a question of its own, then search with BM25 and dense."""
    question = do.standalone(query)
    return do.answer(question, do.rrf((do.sparse(question), do.dense(question))))
