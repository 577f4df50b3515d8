from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query, Ranking
from core.routes.declare import Parameter, route
from core.steps import Steps
from core.steps.self_rag import Tree, When, Written


@route(
    "Self-RAG",
    family="corrective",
    paper="Asai et al. 2023, arXiv:2310.11511",
    needs=[Need.SELF_RAG],
)
def self_rag(
    query: Query,
    do: Steps,
    *,
    retrieve: Annotated[When, Parameter(help="adaptive: where the model asks for passages")] = "adaptive",
    threshold: Annotated[
        float, Parameter(0, 1, "share of P([Retrieval]) from which passages are fetched", tunes="threshold")
    ] = 0.2,
    passages: Annotated[int, Parameter(1, 10, "passages, from each of which a segment is written")] = 5,
    beam: Annotated[int, Parameter(1, 5, "paths kept after each segment")] = 2,
    segments: Annotated[int, Parameter(1, 7, "segments of an answer at most")] = 3,
    w_rel: Annotated[float, Parameter(0, 5, "weight of: the passage is relevant")] = 1.0,
    w_sup: Annotated[float, Parameter(0, 5, "weight of: the passage supports the segment")] = 1.0,
    w_use: Annotated[float, Parameter(0, 5, "weight of: the answer is useful")] = 0.5,
) -> Answer:
    """Let a model trained for it ask for passages, write from each, judge what it wrote, and keep the best.

    Answers are built segment by segment: each open path of the beam is continued from each passage found for
    the question and its last segment. The weights are the paper's; the tree can be ranked by others later.
    """

    def find(said: str) -> Ranking:
        text = f"{query.text} {said}".strip()
        return do.rrf((do.sparse(text), do.dense(text)))

    if do.wants_passages(query.text, retrieve, threshold).decision == "no retrieval":
        return do.answer_unaided(query.text).over(())
    cut = threshold if retrieve == "adaptive" else None
    tree = Tree({"relevance": w_rel, "support": w_sup, "utility": w_use}, beam, segments)
    first = find("")

    def write(before: tuple[str, str]) -> Written:
        said, raw = before
        return do.write_segments(query.text, raw, (find(said) if said else first)[:passages], cut)

    for _ in range(segments):
        ends = [(tree.said(at), tree.raw(at)) for at in tree.open]
        grown = do.afford(do.each, write, ends) if tree.branches else do.each(write, ends)
        if grown is None:  # the budget is spent: what was written counts
            break
        tree = do.keep_best(tree, grown)
        if not tree.open:
            break
    hits = do.append(do.by_segments(tree), first)
    return do.choose_path(tree, hits).over(hits)
