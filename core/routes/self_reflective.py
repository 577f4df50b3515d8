from core.domain.types import Ranking
from core.routes.prelude import Annotated, Answer, Need, Parameter, Share, Steps, route, shared
from core.steps.reflect import Reason, Reflection


@route(
    "Self-reflective retrieval",
    family="corrective",
    paper="Madaan et al. 2023, arXiv:2303.17651 (feedback); Kadavath et al. 2022, arXiv:2207.05221 (P(Yes))",
    needs=[Need.LLM, Need.BM25],
    decides=["evidence"],
    measured=shared.NO_GAIN,
)
def self_reflective(
    do: Steps,
    graded: Annotated[int, Parameter(1, 10, "number of top hybrid hits the model reads per round")] = 5,
    threshold: Annotated[Share, "minimum P(Yes) that they hold the answer; 0: calibrated"] = 0.0,
    gain: Annotated[Share, "minimum gain in P(Yes) to continue"] = 0.05,
    rounds: Annotated[int, Parameter(1, 3, "maximum number of searches")] = 2,
    fused_by: shared.FusedBy = "rrf",
) -> Answer:
    """Ask whether the first passages hold the answer; if they do not, search with another query.

    Every round is judged on the user's own question. The passages judged in the round with the highest P(Yes)
    come first, whatever ended the search, including a spent budget; the fused results of all rounds follow.
    """
    cut = do.calibrated("evidence", threshold, shared.EVIDENCE).cut
    found: tuple[Ranking, ...] = ()
    seen: tuple[Reflection, ...] = ()
    tried: tuple[str, ...] = (do.question,)
    reason: Reason | None = None
    while True:
        found += (do.hybrid(tried[-1], fused_by),)
        if len(found) == 1:
            do.ranked(found[0])
        head, scores = found[-1][:graded], tuple(one.score for one in seen)
        one = do.afford(do.reflect, do.question, tried[-1], head, scores, cut, gain, rounds)
        if one is None:
            reason = "budget spent"
            break
        seen += (one,)
        reason = one.reason
        if one.decision != "try again":
            break
        other = do.afford(do.reformulate, do.question, head, tried)
        if other is None:
            reason = "budget spent"
            break
        if not do.another(other, tried):
            reason = "same question"
            break
        tried += (other,)
    best = do.best_round(found, seen, reason)
    return do.answer(do.question, do.append(best[:graded], do.rrf(found)) if len(found) > 1 else best)
