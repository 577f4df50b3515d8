from core.routes.prelude import Annotated, Answer, Need, Parameter, Steps, route, shared


@route(
    "Tables + passages",
    family="structured",
    paper="Chen et al. 2020 (HybridQA), arXiv:2004.07347; Rajkumar et al. 2022, arXiv:2204.00498",
    needs=[Need.LLM, Need.TABLES, Need.BM25],
    measured="With a 1.5B model 7 of 8 answers were right on one set and 4 of 20 on another.",
)
def structured_hybrid(
    do: Steps,
    repairs: shared.Repairs = 1,
    shown: Annotated[
        int, Parameter(2, 10, "passages in the answer prompt; the query result comes first")
    ] = 5,
    fused_by: shared.FusedBy = "min_max",
) -> Answer:
    """Query the database and search the documents in parallel, answer from rows and passages.

    The query's result is the first passage and opens the answer in a template's words; the best hits of
    hybrid search follow, and the model adds their content. If the database returns nothing, the passages
    stand alone: the error is on its step, and the decision reports it. With the default 1.5B model 7 of 8
    development questions of text2sql-geography were answered from the rows, and 2 of 8 about the tables of
    `support`; the model's additions contributed nothing new.
    """
    asked, found = do.beside(
        lambda: do.ask_tables(do.question, repairs=repairs), lambda: do.hybrid(do.question, fused_by)
    )
    side = do.choose_side(asked, found)
    if side.decision == "both":
        return do.answer_both(do.question, asked, found, shown)
    if side.decision == "tables only":
        return do.answer_tables(asked)
    return do.answer(do.question, found, None, shown)
