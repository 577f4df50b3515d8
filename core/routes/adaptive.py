from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps
from core.steps.classes import NO_SEARCH
from core.steps.classify import Classifier


@route(
    "Adaptive routing",
    family="agentic",
    paper="Jeong et al. 2024, arXiv:2403.14403",
    needs_if={("classifier", "llm"): Need.LLM},
    uses=[Need.LLM, Need.TABLES],
)
def adaptive(
    query: Query,
    do: Steps,
    *,
    classifier: Annotated[
        Classifier,
        Parameter(
            help="classify by rules, by cosine with example questions, or by the model's probabilities"
        ),
    ] = "rules",
) -> Answer:
    """Classify the question by its text and run the route for its class.

    The routes were chosen by their figures on the modes of `support`. One that cannot run here, for lack of a
    language model or of tables, is skipped, and the decision says so.
    """
    history = bool(query.history or do.context.memory)
    kind = do.classify(query.text, history, classifier).decision
    chosen = do.choose_route(kind).decision
    return do.reply(query) if chosen == NO_SEARCH else do.run_route(chosen, query)
