from typing import Annotated

from core.route import Knob, Need, route
from core.steps import Steps
from core.steps.refine import recompose
from core.types import Answer, Query


@route(
    "CRAG",
    family="corrective",
    paper="Yan et al. 2024, arXiv:2401.15884",
    needs=[Need.LLM, Need.WEB],
    first=True,
)
def crag(
    query: Query,
    do: Steps,
    *,
    graded: Annotated[int, Knob(1, 20, "passages graded, from the top of hybrid search")] = 5,
    high: Annotated[float, Knob(0, 1, "a grade from here on is enough to trust retrieval")] = 0.83,
    low: Annotated[float, Knob(0, 1, "grades all below this discard retrieval")] = 0.68,
    strip_floor: Annotated[float, Knob(-1, 1, "cosine with the question from which a strip is kept")] = 0.25,
) -> Answer:
    """Grade what was found; keep and refine it, add a web search, or replace it by one.

    The graded passages are ordered by grade and the rest follows in its old order, unless retrieval was
    judged incorrect. The thresholds were fitted with the default model on dev questions of `support`
    (`python -m scripts.calibrate 40`): at `high` every case was relevant, below `low` four of five were not.
    """
    found = do.rrf((do.sparse(query.text), do.dense(query.text)))
    head, tail = found[:graded], found[graded:]
    verdict = do.judge(query.text, head, low, high)
    ordered = do.by_grade(head, verdict)
    if verdict.decision != "incorrect":
        excerpts = recompose(do.strips(query.text, ordered, strip_floor))
    if verdict.decision == "correct":
        return do.answer(query.text, do.append(ordered, tail), excerpts)
    web = do.web(do.web_keywords(query.text))
    if verdict.decision == "incorrect":
        return do.answer(query.text, web)
    return do.answer(query.text, do.append(do.rrf((ordered, web)), tail), excerpts)
