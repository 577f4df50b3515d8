from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route


@route(
    "Grep, patterns by a model",
    family="agentic",
    paper="Sen et al. 2026, arXiv:2605.15184",
    needs=[Need.LLM],
    embeds=False,
)
def grep_model(
    do: Steps,
    patterns: Annotated[int, Parameter(1, 12, "patterns that the model may write, each time")] = 5,
) -> Answer:
    """Let the model write the patterns to search the text for, and once more with the counts of matches.

    It sees no passage, only in how many each pattern occurs: no document can choose a pattern.
    """
    written = do.write_patterns(do.question, patterns)
    refined = do.write_patterns(do.question, patterns, do.count_matches(written))
    return do.answer(do.question, do.grep_for(refined))
