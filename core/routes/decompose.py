from core.routes.prelude import Annotated, Answer, Need, Parameter, Ranking, Steps, route, shared
from core.steps.linked_names import LOOK_UP_FROM

READ_PER_SUBQUESTION = 3  # passages of each sub-question in which names are looked for


@route(
    "Decomposition", family="query", paper="Zhou et al. 2022, arXiv:2205.10625", needs=[Need.LLM, Need.BM25]
)
def decompose(
    do: Steps,
    split_from: Annotated[int, Parameter(1, 30, "minimum number of different terms to split a question")] = 9,
    n: Annotated[int, Parameter(2, 6, "maximum number of sub-questions")] = 4,
    sequential: Annotated[bool, "fill answers to earlier sub-questions into later ones"] = False,
    look_up: Annotated[bool, "look up names that a sub-question's passages only mention"] = True,
    lead: Annotated[int, Parameter(0, 10, "passages of the question's own search that stay first")] = 4,
    each: Annotated[int, Parameter(1, 10, "passages collected per sub-question")] = 1,
    fused_by: shared.FusedBy = "rrf",
) -> Answer:
    """Split a question that asks for several things, search each part, and add what the whole one missed.

    The question's first hits lead, the best of each sub-question follow, and then the rest of the question's
    own list: a bad split costs the end of the list only.
    """

    def find(text: str) -> Ranking:
        return do.hybrid(text, fused_by)

    own = find(do.question)
    if do.worth_splitting(do.question, split_from).decision == "keep":
        return do.answer(do.question, own)
    parts = do.decompose(do.question, n, sequential)
    if parts == (do.question,):
        return do.answer(do.question, own)
    if sequential:
        found = do.in_turn(parts, do.question, find)
    else:
        found = dict(zip(parts, do.each(find, parts), strict=True))
    collected = do.collect((), own, lead, 2 * shared.POOL)
    searched: tuple[str, ...] = ()
    for part, ranking in found.items():
        collected = do.collect(collected, ranking, each, 2 * shared.POOL)
        if not look_up:
            continue
        missing = do.find_name(
            part, do.collect((), ranking, READ_PER_SUBQUESTION, READ_PER_SUBQUESTION), LOOK_UP_FROM, searched
        )
        if missing.decision == "look up":
            searched = (*searched, missing.query)
            collected = do.collect(collected, find(missing.query), 1, 2 * shared.POOL)
    return do.answer(do.question, do.append(collected, own)[: 2 * shared.POOL])
