from typing import Annotated, Literal

from core.domain.needs import Need
from core.domain.types import Answer, Query, Ranking
from core.routes.declare import NO_GAIN, Parameter, route
from core.steps import Steps
from core.steps.evaluate import Which
from core.steps.refine import recompose


@route(
    "CRAG",
    family="corrective",
    paper="Yan et al. 2024, arXiv:2401.15884",
    needs_if={("evaluator", "llm"): Need.LLM, ("evaluator", "cross-encoder"): Need.CROSS_ENCODER},
    uses=[Need.WEB, Need.LLM],
    first=True,
    measured=NO_GAIN,
    prepared=[Need.TOKENS],
)
def crag(
    query: Query,
    do: Steps,
    *,
    evaluator: Annotated[
        Which,
        Parameter(help="grader: a logistic regression over search features, the model, or a cross-encoder"),
    ] = "lightweight",
    graded: Annotated[int, Parameter(1, 20, "number of top hybrid hits to grade")] = 5,
    high: Annotated[
        float,
        Parameter(0, 1, "minimum grade to trust retrieval; 0: the calibrated threshold", tunes="high"),
    ] = 0.0,
    low: Annotated[
        float,
        Parameter(
            0,
            1,
            "retrieval is replaced if all grades are below this; 0: the calibrated threshold",
            tunes="low",
        ),
    ] = 0.0,
    margin: Annotated[
        float, Parameter(0, 0.5, "distance from a calibrated threshold within which it is ambiguous")
    ] = 0.05,
    web_passages: Annotated[
        int, Parameter(1, 5, "number of web passages added where retrieval is ambiguous")
    ] = 2,
    reads: Annotated[
        Literal["sentences", "whole passages"],
        Parameter(help="what an answer is written from: the sentences near the question, or all of them"),
    ] = "sentences",
    strip_floor: Annotated[
        float, Parameter(-1, 1, "minimum cosine of a sentence with the question", tunes="floor")
    ] = 0.3,
) -> Answer:
    """Grade the retrieved passages, then refine them, add a web search, or put one before them.

    The graded passages are ordered by grade and the rest follows in its old order. What was judged incorrect
    stands behind what the web gave in its place; without any the answer is what is missing. The thresholds
    belong to the evaluator (`data/evaluators`) and were fitted on dev questions of `support`.
    """
    found = do.rrf((do.sparse(query.text), do.dense(query.text)))
    head, tail = found[:graded], found[graded:]
    verdict = do.evaluate(query.text, head, tail, evaluator, low, high, margin)
    ordered = do.by_grade(head, verdict)
    web, lack = ((), "") if verdict.decision == "correct" else do.beyond(query.text)
    action = do.act(verdict, lack)
    if action.decision == "knowledge gap":
        return do.knowledge_gap(query.text, verdict, lack).over(do.append(ordered, tail))

    def read(hits: Ranking) -> dict[str, str] | None:
        whole = reads == "whole passages"
        return None if whole else recompose(do.whole_sentences(query.text, hits, strip_floor))

    if action.decision == "replace it by the web":
        return do.answer(query.text, do.concat(web, ordered, tail), read(web), len(web))
    kept = do.rrf((ordered, web[:web_passages])) if web else ordered
    return do.answer(query.text, do.append(kept, tail), read(kept))
