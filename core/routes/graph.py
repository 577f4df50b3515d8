from core.routes.prelude import Annotated, Answer, Literal, Need, Parameter, Steps, route


@route(
    "Graph",
    family="index",
    paper="Gutiérrez et al. 2025, arXiv:2502.14802",
    needs_if={("relations", "rules"): Need.GRAPH, ("relations", "triples"): Need.GRAPH_TRIPLES},
)
def graph(
    do: Steps,
    relations: Annotated[
        Literal["rules", "triples"], "rules: without a model; triples: by a model"
    ] = "rules",
    passage_weight: Annotated[
        float, Parameter(0, 5, "weight of the dense scores where the walk begins; a rare entity has 1")
    ] = 0.05,
    damping: Annotated[float, Parameter(0, 0.95, "probability that the walk goes on from a node")] = 0.85,
    facts: Annotated[int, Parameter(0, 50, "relations nearest to the question that it begins at")] = 5,
) -> Answer:
    """Walk the corpus' graph of entities from those of the question (personalised PageRank)."""
    vector = do.embed(do.question)
    entities = do.entities(do.question, vector, relations, facts)
    dense = do.nearest(vector)
    walked = do.walk(entities, dense, relations, passage_weight, damping) if entities.seeds else dense
    return do.answer(do.question, walked)
