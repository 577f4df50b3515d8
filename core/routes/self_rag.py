from core.routes.prelude import Annotated, Answer, Need, Parameter, Ranking, Steps, route, shared
from core.steps.self_rag import GrowingTree, When, Written


@route(
    "Self-RAG",
    family="corrective",
    paper="Asai et al. 2023, arXiv:2310.11511",
    needs=[Need.SELF_RAG, Need.BM25],
    measured="Not measured with its trained weights.",
)
def self_rag(
    do: Steps,
    retrieve: Annotated[When, "when to retrieve; adaptive: when the model asks for it"] = "adaptive",
    threshold: Annotated[
        float, Parameter(0, 1, "minimum P([Retrieval]) to retrieve", tunes="threshold")
    ] = 0.2,
    passages: Annotated[int, Parameter(1, 10, "number of passages; one segment is written from each")] = 5,
    beam: Annotated[int, Parameter(1, 5, "beam width: paths that continue after each segment")] = 2,
    segments: Annotated[int, Parameter(1, 7, "maximum number of segments per answer")] = 3,
    w_rel: shared.Relevance = 1.0,
    w_sup: shared.Support = 1.0,
    w_use: Annotated[float, Parameter(0, 5, "weight of the critique that the answer is useful")] = 0.5,
    fused_by: shared.FusedBy = "rrf",
) -> Answer:
    """Let a trained model request passages, write a segment from each, critique them and keep the best path.

    Answers are built segment by segment: each open path of the beam is continued from each passage found for
    the question and its last segment. The weights are the paper's; the tree can be ranked with other weights
    later.
    """

    def find(said: str) -> Ranking:
        text = f"{do.question} {said}".strip()
        return do.hybrid(text, fused_by)

    if do.wants_passages(do.question, retrieve, threshold).decision == "no retrieval":
        return do.answer_unaided(do.question).over(())
    cut = threshold if retrieve == "adaptive" else None
    tree = GrowingTree({"relevance": w_rel, "support": w_sup, "utility": w_use}, beam, segments)
    first = find("")

    def write(before: tuple[str, str]) -> Written:
        said, raw = before
        return do.write_segments(do.question, raw, (find(said) if said else first)[:passages], cut)

    for _ in range(segments):
        ends = [(tree.text_of(at), tree.raw(at)) for at in tree.open]
        grown = do.afford(do.each, write, ends) if tree.branches else do.each(write, ends)
        if grown is None:  # the budget is spent: what was written counts
            break
        tree = do.keep_best(tree, grown)
        if not tree.open:
            break
    hits = do.append(do.by_segments(tree), first)
    return do.choose_path(tree, hits).over(hits)
