from typing import Annotated

from core.domain.needs import Need
from core.domain.types import Answer, Query, Ranking
from core.routes.declare import Parameter, route
from core.steps import Steps
from core.steps.reflect import Reason, Reflection


@route(
    "Self-reflective retrieval",
    family="corrective",
    paper="Liu et al. 2023, arXiv:2303.16634 (grades); Madaan et al. 2023, arXiv:2303.17651 (feedback)",
    needs=[Need.LLM],
)
def self_reflective(
    query: Query,
    do: Steps,
    *,
    graded: Annotated[int, Parameter(1, 10, "number of top hybrid hits to grade per round")] = 5,
    threshold: Annotated[float, Parameter(1, 5, "minimum mean grade to stop", tunes="threshold")] = 2.5,
    gain: Annotated[float, Parameter(0, 4, "minimum gain in mean grade to continue", tunes="gain")] = 0.1,
    rounds: Annotated[int, Parameter(1, 3, "maximum number of searches", tunes="rounds")] = 3,
    check: Annotated[bool, Parameter(help="check a written answer against the passages")] = False,
) -> Answer:
    """Grade the passages from 1 to 5; while they score low, rewrite the question from the feedback and retry.

    Every round is graded on the user's own question. The round with the best mean is kept, whatever ended
    the search, a spent budget included.
    """
    found: tuple[Ranking, ...] = ()
    seen: tuple[Reflection, ...] = ()
    tried: tuple[str, ...] = (query.text,)
    reason: Reason | None = None
    while reason is None:
        found += (do.rrf((do.sparse(tried[-1]), do.dense(tried[-1]))),)
        head, means = found[-1][:graded], tuple(one.mean for one in seen)
        one = do.afford(do.reflect, query.text, tried[-1], head, means, threshold, gain, rounds)
        if one is None:
            reason = "budget spent"
            break
        seen += (one,)
        reason = one.reason
        if reason is None:
            other = do.afford(do.reformulate, query.text, head, one.grades, tried)
            if other is None:
                reason = "budget spent"
            elif not do.another(other, tried):
                reason = "same question"
            else:
                tried += (other,)
    hits = do.best_round(found, seen, reason)
    answer = do.afford(do.answer, query.text, hits) or Answer(hits)
    if check:
        do.afford(do.check_answer, query.text, answer.text or "", hits)
    return answer
