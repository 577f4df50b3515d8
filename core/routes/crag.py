from core.domain.types import Ranking
from core.routes.prelude import Annotated, Answer, Literal, Need, Parameter, Steps, route, shared
from core.steps.evaluate import Which
from core.steps.refine import recompose


@route(
    "CRAG",
    family="corrective",
    paper="Yan et al. 2024, arXiv:2401.15884",
    needs=[Need.BM25],
    needs_if={("evaluator", "llm"): Need.LLM, ("evaluator", "cross-encoder"): Need.CROSS_ENCODER},
    uses=[Need.WEB, Need.LLM],
    measured=shared.NO_GAIN,
    prepared=[Need.TOKENS],
)
def crag(
    do: Steps,
    evaluator: Annotated[
        Which, "a regression over search signals, the model, a cross-encoder"
    ] = "lightweight",
    graded: Annotated[int, Parameter(1, 20, "number of top hybrid hits to grade")] = 5,
    high: Annotated[
        float, Parameter(0, 1, "minimum grade to trust retrieval; 0: calibrated", tunes="high")
    ] = 0.0,
    low: Annotated[
        float, Parameter(0, 1, "if all grades are below, retrieval is replaced; 0: calibrated", tunes="low")
    ] = 0.0,
    margin: Annotated[float, Parameter(0, 0.5, "ambiguous within this of a calibrated threshold")] = 0.05,
    web_passages: Annotated[int, Parameter(1, 5, "most web passages added where retrieval is ambiguous")] = 2,
    reads: Annotated[Literal["sentences", "whole passages"], "what an answer is written from"] = "sentences",
    strip_floor: shared.SentenceFloor = 0.3,
    fused_by: shared.FusedBy = "auto",
) -> Answer:
    """Grade the retrieved passages, then refine them, add a web search, or put one before them.

    Web results are graded by the same evaluator. Those graded at least the upper threshold, and above every
    passage of the corpus, come first, the others last. Without any such result the ranking stays as retrieved
    and the answer is written from it. Yan et al. take web results ungraded, instead of passages judged
    incorrect and in addition to ambiguous ones; here that lost passages which the corpus contained, as
    thresholds fitted on one corpus discard too much on others. Passages judged incorrect come after the web
    results that replace them; without a web search the answer states what is missing. The thresholds belong
    to the evaluator (`data/evaluators`) and were fitted on dev questions of `support`.
    """
    found = do.hybrid(do.question, fused_by)
    head, tail = found[:graded], found[graded:]
    edges = do.edges(evaluator, low, high, margin)
    verdict = do.evaluate(do.question, head, tail, evaluator, *edges)

    def read(hits: Ranking) -> dict[str, str] | None:
        whole = reads == "whole passages"
        return None if whole else recompose(do.whole_sentences(do.question, hits, strip_floor))

    if verdict.decision == "correct":
        do.act(verdict)
        ordered = do.by_grade(head, verdict)
        return do.answer(do.question, do.append(ordered, tail), read(ordered))
    web, lack = do.beyond(do.question)
    grades = do.evaluate_web(do.question, web, found, evaluator, edges[1]) if web else None
    action = do.act(verdict, lack, grades)
    if action.decision == "knowledge gap":
        return do.knowledge_gap(do.question, verdict, lack).over(found)
    if grades is None:
        return do.answer(do.question, found, read(head))
    best = do.by_grade(web, grades)
    if action.decision == "keep what was found":
        return do.answer(do.question, do.concat(found, best), read(head))
    first = action.earned or len(best)  # all of them where an audit turns a decision to keep what was found
    if action.decision == "replace it by the web":
        return do.answer(do.question, do.concat(best[:first], found, best[first:]), read(best[:first]), first)
    first = min(first, web_passages)
    ranked = do.concat(best[:first], found, best[first:])
    return do.answer(do.question, ranked, read(ranked[: first + len(head)]))
