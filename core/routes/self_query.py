from core.routes.prelude import Annotated, Answer, Need, Steps, route, shared
from core.steps.conditions import By


@route(
    "Self-query",
    family="query",
    paper="LangChain 2023, SelfQueryRetriever",
    needs=[Need.BM25],
    needs_if={("by", "model"): Need.LLM},
)
def self_query(
    do: Steps,
    by: Annotated[By, "filters read by rules, or by the language model"] = "rules",
    fused_by: shared.FusedBy = "auto",
) -> Answer:
    """Read filters on metadata from the question, then search only what meets them (BM25 and dense)."""
    filters = do.read_filters(do.question, by)
    with do.filtered(filters.kept):
        found = do.hybrid(do.question, fused_by)
    return do.answer(do.question, found)
