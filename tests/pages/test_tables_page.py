"""What routes asked a database is shown from a stored run, and only as text."""

from markupsafe import Markup

from core.domain.types import Query
from core.engine.request import Request
from tests.fakes import ScriptedLLM
from tests.runs import HOSTILE
from ui.compare.answers import tables


def shown(engine, llm, route="text_to_sql", question="Which orders were shipped?"):
    engine.fake_llm = ScriptedLLM(llm)
    run = engine.ask(Request(Query(question), "tiny", (route, "bm25")))
    assert engine.store.flush()
    return tables(engine.store.load(run.id))


def test_the_query_its_rows_and_what_was_tried_before(engine):
    page = shown(
        engine,
        {
            "sql": "DELETE FROM orders",
            "sql-repair": "SELECT order_no, status, total FROM orders WHERE total IS NULL",
        },
    )
    assert isinstance(page, Markup)
    assert "<code>SELECT order_no, status, total FROM orders WHERE total IS NULL</code>" in page
    assert "Attempt 1 </span><code>DELETE FROM orders</code>" in page
    assert "only SELECT, or WITH ... SELECT, runs" in page
    for cell in (
        "<th>status</th>",
        '<td class="num">48293</td>',
        ">shipped</td>",
        '<td class="dim">NULL</td>',
        ">1 row<",
    ):
        assert cell in page
    assert "<b>repaired</b>" in page
    assert "shop.sqlite" in page
    assert page.count("rs-block") == 1


def test_a_query_inside_another_step_is_shown_once(engine):
    page = shown(engine, {"sql": "SELECT name FROM items"}, "structured_hybrid")
    assert page.count("rs-block") == 1
    assert page.count("<code>") == 1


def test_what_the_model_was_given_and_told_is_shown(engine):
    page = shown(
        engine,
        {"sql": "SELECT name FROM items WHERE quantity < 0", "sql-repair": "SELECT order_no FROM orders"},
        question="Which were shipped?",
    )
    assert "Values of the question: </span>&#39;shipped&#39; in orders.status" in page
    assert "Joins: </span>items.order_no = orders.order_no" in page
    assert "Told before: The query found no rows. &#39;shipped&#39; is in orders.status." in page
    assert page.count("Attempt ") == 2
    assert "could be written" not in page, "the scripted model is bound by no grammar"


def test_a_query_that_came_to_nothing_shows_why(engine):
    page = shown(engine, {"sql": "SELECT gone FROM orders", "sql-repair": "SELECT load_extension('x')"})
    assert "<b>rejected by the guard</b>" in page
    assert "no such column: gone" in page
    assert "0 rows" in page
    assert "<table" not in page


def test_hostile_queries_and_values_are_only_text(engine):
    for text in HOSTILE:
        quoted = text.replace("'", "''")
        page = shown(
            engine, {"sql": f"SELECT '{quoted}' AS \"<b onclick=x>\", 1 -- {' '.join(text.split())}"}
        )
        for mark in ("<script", "<img", "<b onclick", "<svg", "<iframe", "<a "):
            assert mark not in page


def test_a_run_that_asked_no_database_says_so(stored):
    assert "No route in this run queried a database." in tables(stored["good"])


def test_a_long_result_is_cut_on_the_page(engine):
    page = shown(engine, {"sql": "SELECT a.order_no FROM orders a, orders b, orders c, orders d, orders e"})
    assert "200 rows · showing the first 50 · only the first 200 rows" in page
    assert page.count("<tr>") == 51
