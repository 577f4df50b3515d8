from core.domain.types import Ranking
from core.routes.prelude import Annotated, Answer, Literal, Need, Parameter, Steps, route, shared
from core.steps.linked_names import LOOK_UP_FROM

FIRST_READ_PASSAGES = 5  # passages of the question's own search in which names are looked for


@route(
    "Iterative retrieval",
    family="agentic",
    paper="Trivedi et al. 2023, arXiv:2212.10509; Godbole et al. 2019, arXiv:1909.07598",
    needs=[Need.BM25],
)
def iterative(
    do: Steps,
    steps: Annotated[int, Parameter(1, 5, "maximum number of further searches")] = 2,
    each: Annotated[int, Parameter(1, 10, "passages collected per further search")] = 1,
    keep: shared.Collected = 9,
    lead: Annotated[int, Parameter(1, 10, "passages of the question's own search that stay first")] = 3,
    threshold: Annotated[
        float, Parameter(0, 1, "minimum score to look up a name", tunes="threshold")
    ] = LOOK_UP_FROM,
    retriever: Annotated[Literal["hybrid", "bm25", "dense", "grep"], "what each search uses"] = "hybrid",
    fused_by: shared.FusedBy = "auto",
) -> Answer:
    """Search, then look up the name that the passages mention and none is about, until nothing is missing.

    A question of two hops rarely shares a word with its second passage; the first one names what that is
    about. The question's first hits lead, what the names found follows, and then the rest of the question's
    own list, so that a needless search costs the end of the list only.
    """

    def find(text: str) -> Ranking:
        return do.grep(text) if retriever == "grep" else do.found_with(retriever, text, fused_by)

    own = find(do.question)
    read = do.collect((), own, FIRST_READ_PASSAGES, FIRST_READ_PASSAGES)
    collected = do.collect((), own, lead, keep)
    searched: tuple[str, ...] = ()
    new = len(collected)
    while do.another_round(len(searched), steps, new).decision == "go on":
        missing = do.find_name(do.question, read, threshold, searched)
        if missing.decision == "nothing missing" or not missing.names:
            break
        searched = (*searched, missing.query)
        found = find(missing.query)
        grown = do.collect(collected, found, each, keep)
        new, collected = len(grown) - len(collected), grown
        read = do.collect(read, found, each, FIRST_READ_PASSAGES + steps * each)
    merged = do.append(collected, own)[: 2 * shared.POOL]
    return do.answer(do.question, merged, None, max(shared.DEFAULT_SHOWN_PASSAGES, len(collected)))
