from core.domain.types import Ranking
from core.routes.prelude import Annotated, Answer, Need, Parameter, Share, Steps, route, shared
from core.steps.agent import Action, Did


@route(
    "Agent (ReAct)",
    family="agentic",
    paper="Yao et al. 2023, arXiv:2210.03629",
    needs=[Need.LLM, Need.BM25],
    decides=["evidence"],
    measured=shared.NO_GAIN,
)
def agentic(
    do: Steps,
    steps: Annotated[int, Parameter(1, 8, "maximum number of actions the model may choose")] = 4,
    each: Annotated[int, Parameter(1, 10, "passages collected per action")] = 3,
    keep: shared.Collected = 9,
    threshold: Annotated[Share, "minimum P(Yes) that what was collected answers; 0: calibrated"] = 0.0,
    fused_by: shared.FusedBy = "rrf",
) -> Answer:
    """Let the model choose the next action (search, look up, query tables) without showing it the passages.

    The first search is with the question itself, before there is anything to choose by; where what it found
    answers the question, there is no choice. What is found is read by calls that can only say yes or no, or
    copy a few words: no document can choose an action. The passages collected come first, in the order of
    finding; the rest follows, fused by reciprocal rank.
    """
    cut = do.calibrated("evidence", threshold, shared.EVIDENCE).cut

    def act(action: Action, text: str, had: Ranking) -> Ranking:
        if action == "sql":
            return do.result_passage(do.ask_tables(text))
        if action == "look_up":
            return do.look_up(text, had)
        return do.hybrid(text, fused_by)

    def take_in(action: Action, words: str, found: Ranking, had: Ranking) -> tuple[Did, Ranking]:
        seen = do.seen(do.question, found, had, each)
        has = do.collect(had, found, each, keep)
        enough = do.enough(do.question, has, cut).decision
        return Did(action, words, seen.passages, seen.new, seen.nearest, enough), has

    offered = do.offered()
    first = act("search", do.question, ())
    did, collected = take_in("search", do.question, first, ())
    done: tuple[Did, ...] = (did,)
    results: tuple[tuple[str, Ranking], ...] = ((do.question, first),)  # of each action: asked, found
    while do.may_choose(done, steps, len(collected), do.lacking(8)).decision == "choose":
        choice = do.choose_action(do.question, done, offered)
        if choice.decision == "answered" or choice.decision == "unusable choice":
            break
        guard = do.asked_before(choice.decision, choice.input, done)
        if guard.decision == "repeated":
            break
        if guard.decision == "asked before":
            done, results = (*done, Did(choice.decision, choice.input, before=True)), (*results, ("", ()))
            continue
        text = do.with_answers(choice.decision, choice.input, do.question, results)
        found = act(choice.decision, text, collected) if text else ()
        did, collected = take_in(choice.decision, choice.input, found, collected)
        done, results = (*done, did), (*results, (text, found))
    merged = do.append(collected, do.rrf(tuple(hits for _, hits in results)))[: 2 * shared.POOL]
    return do.answer(do.question, merged, None, len(collected))
