from core.domain.types import Ranking
from core.routes.prelude import Annotated, Answer, Literal, Need, Parameter, Share, Steps, route, shared
from core.steps.agent import Action, Did, files_of


@route(
    "Agent that reads files",
    family="agentic",
    paper="Sen et al. 2026, arXiv:2605.15184; Yao et al. 2023, arXiv:2210.03629",
    needs_if={("chooser", "model"): Need.LLM, ("tools", "both"): Need.BM25, ("tools", "search"): Need.BM25},
    decides=["evidence"],
)
def read_files(
    do: Steps,
    tools: Annotated[Literal["both", "search", "grep"], "what passages are located with"] = "both",
    retriever: Annotated[Literal["hybrid", "bm25", "dense"], "what search means"] = "hybrid",
    chooser: Annotated[
        Literal["model", "script"], "who chooses: the model, or a script without a model"
    ] = "model",
    steps: Annotated[int, Parameter(1, 20, "maximum number of actions after the first")] = 8,
    length: Annotated[int, Parameter(1, 10, "passages that one reading opens")] = 3,
    keep: Annotated[int, Parameter(1, 30, "passages read in total")] = 9,
    calls: Annotated[int, Parameter(1, 100, "budget of model calls, the answer included")] = 30,
    tokens: Annotated[int, Parameter(100, 1000000, "budget of model tokens, the answer included")] = 30_000,
    seconds: Annotated[float, Parameter(1, 3600, "seconds after which no action begins")] = 300.0,
    threshold: Annotated[Share, "minimum P(Yes) that what was read answers; 0: calibrated"] = 0.0,
    fused_by: shared.FusedBy = "auto",
) -> Answer:
    """Let the model list, find, grep, search and read files until what was read answers, within a budget.

    The model that chooses sees counts of what was found; another call that sees names of files can only
    choose one of them: no document can choose an action. If nothing was read at the end, the best passages
    found are. What was read comes first and is what an answer cites; the rest is fused by reciprocal rank.
    """
    cut = do.calibrated("evidence", threshold, shared.EVIDENCE).cut if chooser == "model" else 0.0
    do.limit(calls, tokens)

    def act(action: Action, text: str, found: Ranking, read: Ranking) -> Ranking:
        if action == "read":
            files = files_of(found, read)
            at = do.choose_file(do.question, files[:5]) if chooser == "model" else 0
            return do.read_range(found, files[at], min(length, keep - len(read)), read)
        if action in ("list", "find"):
            return do.list_files(text)
        if action == "grep":
            return do.grep(text)
        return do.found_with(retriever, text, fused_by)

    def spent() -> str:
        return do.spent(seconds, len(read), keep) or (do.lacking(8) if chooser == "model" else "")

    read: Ranking = ()
    first = do.first_tool(do.question, tools)
    found = act(first, do.question, (), ())
    done: tuple[Did, ...] = (Did(first, do.question, len(found), len(found)),)
    results: tuple[tuple[str, Ranking], ...] = ((do.question, found),)  # of each action: asked, found
    located = [found]
    while do.may_choose(done, steps, 1, spent(), 2).decision == "choose":
        offered = do.file_tools(tools, done, bool(files_of(found, read)))
        action: Action = "read"
        words = ""
        if chooser == "model" and offered != ("read",):
            choice = do.choose_action(do.question, done, offered)
            if choice.decision == "answered" or choice.decision == "unusable choice":
                break
            action, words = choice.decision, choice.input
        elif chooser == "script" and (done[-1].action == "read" or "read" not in offered):
            action = "grep" if tools == "grep" else "search"
            words = do.next_query(do.question, read)
        guard = do.asked_before(action, words, done).decision if action != "read" else "new"
        if guard == "repeated":
            break
        if guard == "asked before":
            done, results = (*done, Did(action, words, before=True)), (*results, ("", ()))
            continue
        text = do.with_answers(action, words, do.question, results)
        hits = act(action, text, found, read)
        new = len({hit.passage.id for hit in hits} - {hit.passage.id for hit in (*found, *read)})
        did = Did(action, words, len(hits), new)
        if action == "read":
            read = do.collect(read, hits, length, keep)
            enough = do.enough(do.question, read, cut).decision if chooser == "model" else "unknown"
            did = Did(action, "", len(hits), len(hits), enough=enough)
        elif hits:
            found = do.concat(hits, found)
            located.append(hits)
        done, results = (*done, did), (*results, (text, hits))
    if not read and found:
        read = do.collect(
            (), do.read_range(found, files_of(found, ())[0], min(length, keep), ()), length, keep
        )
    merged = do.append(read, do.rrf(tuple(located)))[: 2 * shared.POOL]
    return do.answer(do.question, merged, None, max(1, len(read)))
