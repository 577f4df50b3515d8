from typing import Annotated

from core.backends.prompting.citations import Draft
from core.domain.needs import Need
from core.domain.types import Answer, Query
from core.routes.declare import Parameter, route
from core.steps import Steps
from core.steps.generate import SHOWN
from core.steps.self_refine import Ended, Weighed


@route(
    "Self-correction",
    family="corrective",
    paper="Madaan et al. 2023, arXiv:2303.17651; Gao et al. 2023, arXiv:2210.08726 (claims)",
    needs=[Need.LLM],
)
def self_correct(
    query: Query,
    do: Steps,
    *,
    rounds: Annotated[int, Parameter(0, 3, "maximum number of revisions")] = 2,
) -> Answer:
    """Draft an answer, check it claim by claim, and revise it until it stops improving.

    Always writes an answer. Every draft is checked, including the last, so a revision that is supported less
    gives way to the previous draft.
    """
    hits = do.rrf((do.sparse(query.text), do.dense(query.text)))
    do.ranked(hits)
    shown = hits[:SHOWN]
    drafts: tuple[Draft, ...] = (do.write_answer(query.text, shown),)
    weighed: tuple[Weighed, ...] = ()
    reason: Ended | None = None
    while reason is None:
        texts = tuple(draft.text for draft in drafts)
        one = do.afford(do.weigh, query.text, shown, texts, weighed, rounds)
        if one is None:
            reason = "budget spent"
            break
        weighed += (one,)
        reason = one.reason
        if reason is None:
            better = do.afford(do.refine, query.text, shown, one.draft, one.feedback, one.claims)
            if better is None:
                reason = "budget spent"
            else:
                drafts += (better,)
    return do.keep_draft(drafts, weighed, reason).over(hits)
