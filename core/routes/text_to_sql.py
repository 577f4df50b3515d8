from core.routes.prelude import Answer, Need, Steps, route, shared


@route(
    "Text-to-SQL",
    family="structured",
    paper="Rajkumar et al. 2022, arXiv:2204.00498; Yu et al. 2018 (Spider), arXiv:1809.08887",
    needs=[Need.LLM, Need.TABLES],
)
def text_to_sql(
    do: Steps,
    tables: shared.Tables = 10,
    repairs: shared.Repairs = 1,
    rows: shared.Rows = 200,
) -> Answer:
    """Write a SQL query for the corpus's database, run it read-only, answer from the rows.

    The model sees the tables with some of their values, the columns that join them, and the stored values
    that the question names; the embedded model can write only what these allow. A template formats the rows;
    the result is one passage, which the answer cites. Without rows, or without a query that runs, there is no
    answer.
    """
    return do.answer_tables(do.query_database(do.question, tables, repairs, rows, "tables"))
