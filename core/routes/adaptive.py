from core.backends.question_classifier import DEFAULT_ROUTE, NO_SEARCH
from core.routes.prelude import Answer, Need, Steps, route


@route(
    "Adaptive routing",
    family="agentic",
    paper="Jeong et al. 2024, arXiv:2403.14403",
    needs=[Need.BM25],
    uses=[Need.LLM, Need.TABLES],
    measured="Without earlier turns or tables it ranks as `rerank` does, and is not worth choosing.",
)
def adaptive(do: Steps) -> Answer:
    """Classify the question by features and run the route that earned its class, else `rerank`.

    A route earns a class by beating `rerank` on questions of sets that the classifier was not trained on.
    Two did: `memory_rerank` for follow-ups of a conversation, `text_to_sql` for questions about tables. On
    four held-out sets without either, every question got the ranking of `rerank`. A route that cannot run
    here, for lack of a language model or of tables, is skipped, and the decision reports it. If the chosen
    route finds nothing, `rerank` searches.
    """
    kind = do.classify(do.query).decision
    chosen = do.choose_route(kind).decision
    if chosen == NO_SEARCH:
        return do.reply(do.query)
    found = do.run_route(chosen, do.query)
    if chosen == DEFAULT_ROUTE or do.keep_found(chosen, found.hits).decision == "keep":
        return found
    return do.run_route(DEFAULT_ROUTE, do.query)
