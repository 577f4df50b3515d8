from core.domain.parameters import named
from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route


@route(
    "Hybrid (auto)",
    family="hybrid",
    paper="Bruch, Gai & Ingber 2022, arXiv:2210.11934; known items: Azzopardi, de Rijke & Balog 2007, "
    "doi:10.1145/1277741.1277820",
    needs=[Need.BM25],
    first=True,
)
def hybrid_auto(
    do: Steps,
    alpha: Annotated[
        float, Parameter(0, 1, "weight of the cosine; BM25 has 1 minus it; 0: as measured", tunes="alpha")
    ] = 0.0,
) -> Answer:
    """Add the BM25 score and the cosine of every candidate, with a weight measured for the corpus.

    Indexing measures the weight on known-item questions from the corpus' own passages, so it needs no
    labels: see `core.corpus.known_items`.
    """
    return do.answer(do.question, do.hybrid(do.question, weight=alpha or named(do.dense_weight, "alpha")))
