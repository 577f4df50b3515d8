from core.backends.prompting.citations import Draft
from core.routes.prelude import Annotated, Answer, Need, Parameter, Share, Steps, route, shared
from core.steps.claims import CheckedDraft, Revision


@route(
    "Self-correction",
    family="corrective",
    paper="Gao et al. 2023 (RARR), arXiv:2210.08726; Madaan et al. 2023, arXiv:2303.17651",
    needs=[Need.LLM, Need.BM25],
    decides=["claim support", "evidence"],
    measured=shared.NO_GAIN,
)
def self_correct(
    do: Steps,
    evidence: Annotated[Share, "minimum P(Yes) that the passages hold the answer; 0: as other routes"] = 0.0,
    threshold: Annotated[Share, "minimum P(Yes) that a claim is supported; 0: calibrated"] = 0.0,
    rounds: Annotated[int, Parameter(0, 3, "maximum number of revisions")] = 1,
    fused_by: shared.FusedBy = "rrf",
) -> Answer:
    """Draft an answer, check each claim against the sentences it cites, and rewrite only unsupported ones.

    A claim that stays unsupported is left out; if no claim is supported, the route abstains. Whether to draft
    at all is decided as in every other route: the check compares a draft with its passages, and cannot detect
    a supported sentence that does not answer the question.
    """
    hits = do.hybrid(do.question, fused_by)
    do.ranked(hits)
    shown = hits[: shared.DEFAULT_SHOWN_PASSAGES]
    cut = do.calibrated("claim support", threshold, 0.5).cut
    drafts: tuple[Draft, ...] = (do.write_answer(do.question, shown, evidence=evidence or None),)
    checked: tuple[CheckedDraft, ...] = ()
    plan: Revision | None = None
    while plan is None or plan.decision == "rewrite":
        one = do.afford(do.check_claims, do.question, shown, drafts[-1], cut)
        if one is None:
            plan = None
            break
        checked += (one,)
        plan = do.revise(one, len(checked) - 1, rounds, do.lacking(2 * len(one.claims)))
        if plan.decision == "rewrite":
            better = do.afford(do.rewrite_claims, do.question, shown, one)
            if better is None:
                plan = None
                break
            drafts += (better,)
    return do.keep_supported(drafts, checked, plan, shown).over(hits)
