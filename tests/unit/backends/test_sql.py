"""The guard around queries, the database behind it, CSV files as tables, and what a question is linked to."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.sql import Database, QueryLimits
from core.backends.sql.child import connected
from core.backends.sql.csv_tables import MAX_BYTES, identifier, kind, load
from core.backends.sql.guard import (
    FUNCTIONS,
    Authorizer,
    ForbiddenSql,
    NotASelect,
    NotOneStatement,
    SqlError,
    SqlFailed,
    TooBig,
    TooSlow,
    in_words,
    named_parts,
    ordered,
)
from core.backends.sql.linking import connect, link, literal, names, phrases, schema_text
from core.domain.errors import BadInput, Unavailable

pytestmark = pytest.mark.process

SCHEMA = """
CREATE TABLE shop (id INTEGER PRIMARY KEY, city TEXT, opened INTEGER);
CREATE TABLE sale (id INTEGER PRIMARY KEY, shop_id INTEGER REFERENCES shop (id), item TEXT, price REAL);
CREATE TABLE note (sale_id INTEGER REFERENCES sale (id), body TEXT);
CREATE VIEW dear AS SELECT item FROM sale WHERE price > 10;
CREATE TABLE far (x TEXT);
INSERT INTO shop VALUES (101, 'Leipzig', 2011), (102, 'New York', 2015);
INSERT INTO sale VALUES (9001, 101, 'vase', 12.5), (9002, 101, 'lamp', 7), (9003, 102, 'vase', 13);
INSERT INTO note VALUES (9001, 'code AB-1234 was used');
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(SCHEMA)
    connection.close()
    return path


@pytest.fixture
def shop(file):
    return Database(file, "shop.sqlite")


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT count(*) FROM sale", [(3,)]),
        ("select item from dear order by item;", [("vase",), ("vase",)]),
        ("WITH x AS (SELECT item FROM sale) SELECT count(*) FROM x", [(3,)]),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3) SELECT count(*) FROM n",
            [(3,)],
        ),
        ("SELECT 'a;b', \"city\" FROM shop WHERE id = 101 -- a; comment", [("a;b", "Leipzig")]),
        ("/* ; */ SELECT upper(city) FROM shop LIMIT 1", [("LEIPZIG",)]),
        ("SELECT x'00ff', 9e999, NULL", [("<2 bytes>", "inf", None)]),
        ("SELECT item, row_number() OVER (ORDER BY id) FROM sale LIMIT 1", [("vase", 1)]),
    ],
)
def test_a_select_runs(shop, sql, rows):
    assert list(shop.query(sql).rows) == rows


@pytest.mark.trust
@pytest.mark.parametrize(
    ("sql", "error", "names"),
    [
        ("", NotOneStatement, "no statement"),
        ("-- nothing", NotOneStatement, "no statement"),
        ("SELECT 1; DELETE FROM sale", NotOneStatement, "2 statements"),
        ("SELECT 1;; SELECT 2", NotOneStatement, "give one SELECT"),
        ("PRAGMA writable_schema = 1", NotASelect, "'PRAGMA'"),
        ("VALUES (1)", NotASelect, "only SELECT"),
        ("WITH x AS (SELECT 1) DELETE FROM sale", NotASelect, "DELETE is not allowed"),
        ("SELECT name FROM sqlite_master", ForbiddenSql, "'sqlite_master' may not be read; there are: dear"),
        ("WITH sqlite_master AS (SELECT 1) SELECT count(*) FROM main.sqlite_master", ForbiddenSql, "sqlite"),
        ("SELECT * FROM pragma_table_info('sale')", ForbiddenSql, "virtual tables"),
        ("SELECT load_extension('x')", ForbiddenSql, "function 'load_extension'"),
        ("SELECT randomblob(9)", ForbiddenSql, "use: abs"),
        ("SELECT missing FROM sale", SqlFailed, "no such column: missing"),
        ("SELECT * FROM nowhere", SqlFailed, "no such table: nowhere"),
        ("SELECT 'open", SqlFailed, "unrecognized token"),
        ("SELECT 1\0", SqlFailed, "null character"),
        ("SELECT " + "(" * 300 + "1" + ")" * 300, TooBig, "overflow"),
        ("SELECT " + "1 + " * 300 + "1", TooBig, "depth"),
        ("SELECT '" + "a" * 30_000 + "'", TooBig, "20000"),
        (
            "WITH a(x) AS (SELECT replace(city, 'e', 'eeeeeeeeeeeeeeeeeeee') FROM shop), "
            "b(x) AS (SELECT replace(x, 'e', x || x || x || x) FROM a) "
            "SELECT replace(x, 'e', x || x) FROM b",
            TooBig,
            "200000 bytes",
        ),
    ],
)
def test_what_the_guard_rejects_is_named_and_changes_nothing(file, shop, sql, error, names):
    before = file.read_bytes()
    with pytest.raises(error) as caught:
        shop.query(sql)
    assert names in str(caught.value)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.trust
def test_a_query_that_does_not_end_is_ended(shop):
    with pytest.raises(TooSlow, match=r"longer than 0.2 s"):
        shop.query(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
            limits=QueryLimits(seconds=0.2),
        )


def test_a_result_is_cut_and_says_so(shop):
    found = shop.query("SELECT a.item FROM sale a, sale b, sale c", limits=QueryLimits(rows=10))
    assert len(found.rows) == 10
    assert found.truncated == "only the first 10 rows"
    assert shop.query("SELECT id FROM sale", limits=QueryLimits(rows=3)).truncated == ""
    long = shop.query("SELECT replace('aaaa', 'a', '0123456789')", limits=QueryLimits(value=7))
    assert long.rows == (("0123456…",),)
    assert "1 values cut at 7" in long.truncated
    many = shop.query("SELECT 'abcdefgh' FROM sale", limits=QueryLimits(result=20))
    assert len(many.rows) == 2
    assert "more than 20 characters" in many.truncated


@pytest.mark.trust
def test_the_connection_itself_cannot_write(file):
    for source in (file, file.read_bytes()):
        with connected(source) as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM sale")


def test_several_threads_query_at_once(shop):
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda _: shop.query("SELECT count(*) FROM sale").rows, range(8))
        assert list(found) == [((3,),)] * 8


def test_the_schema_is_what_may_be_asked(tmp_path, shop):
    assert [table.name for table in shop.tables] == ["shop", "sale", "note", "dear", "far"]
    assert shop.tables[1].keys == (("shop_id", "shop", "id"),)
    assert shop.reads("SELECT item FROM dear") == ("sale", "dear")
    with pytest.raises(NotASelect):
        shop.reads("DELETE FROM sale")
    odd = tmp_path / "odd.sqlite"
    with sqlite3.connect(odd) as connection:
        connection.executescript(
            'CREATE VIRTUAL TABLE texts USING fts5(body); CREATE TABLE "a ""b" (x); '
            "CREATE VIEW broken AS SELECT * FROM gone"
        )
    connection.close()
    database = Database(odd, "odd")
    assert [table.name for table in database.tables] == ['a "b']
    with pytest.raises(ForbiddenSql):
        database.query("SELECT body FROM texts")


def test_what_is_no_database_says_so(tmp_path):
    (tmp_path / "a.sqlite").write_text("not a database" * 100)
    for name in ("a.sqlite", "gone.sqlite"):
        with pytest.raises(Unavailable, match=f"{name} cannot be read as a SQLite database"):
            Database(tmp_path / name, name)
    assert not (tmp_path / "gone.sqlite").exists()


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", False),
        ("SELECT a FROM t WHERE b = 'ORDER BY'", False),
        ("SELECT max(a) OVER (ORDER BY b) FROM t", False),
        ("SELECT a FROM t order /* so */ by a LIMIT 3", True),
    ],
)
def test_order_counts_at_the_top_only(sql, wanted):
    assert ordered(sql) is wanted


@given(st.text(max_size=60))
def test_any_text_is_rows_or_a_typed_error(text):
    database = _memory()
    for sql in (text, f"SELECT {text}", f"SELECT * FROM sale WHERE item = {text}"):
        with suppress(SqlError):  # any other error fails the test
            database.query(sql, limits=QueryLimits(seconds=0.5))
    assert database.query("SELECT count(*) FROM sale").rows == ((3,),)


@cache
def _memory():
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    return Database(connection.serialize(), "memory")


@pytest.mark.trust
def test_no_function_of_the_list_reaches_files_or_memory():
    reaching = "load_extension readfile writefile edit randomblob zeroblob printf"
    assert not FUNCTIONS & set(reaching.split())


def csv_database(tmp_path, **files):
    paths = []
    for name, text in files.items():
        path = tmp_path / f"{name}.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        paths.append(path)
    return load(paths, "tables")


def test_csv_files_become_typed_tables(tmp_path):
    database, notes = csv_database(
        tmp_path,
        **{"Price list": b"\xef\xbb\xbfSKU;Unit Price;Stock;Zip\r\nA-1;2.50;10;04109\r\nA-2;n/a;7;10115\r\n"},
    )
    (table,) = database.tables
    assert table.name == "price_list"
    kinds = {"sku": "TEXT", "unit_price": "REAL", "stock": "INTEGER", "zip": "TEXT"}
    assert {c.name: c.type for c in table.columns} == kinds
    rows = (("A-1", 2.5, 10, "04109"), ("A-2", None, 7, "10115"))
    assert database.query("SELECT * FROM price_list").rows == rows
    assert notes == ()


def test_hostile_csv_is_only_text(tmp_path):
    database, notes = csv_database(
        tmp_path,
        formulas='name,name,"sel""ect"\n=cmd|\' /C calc\'!A0,"it\'s; DROP TABLE formulas",@SUM(1)\n',
        ragged="a,b\n1\n2,3,4\n\n5,6\n",
        nul=b"a,b\n\x00x,\xff\n",
        sqlite_master="a,1st\nx,y\n",
        quote='a,b\n1,"never closed\n2,3\n',
    )
    names = ["formulas", "ragged", "nul", "_sqlite_master", "quote"]
    assert [table.name for table in database.tables] == names
    assert database.query("SELECT * FROM formulas").columns == ("name", "name_2", "sel_ect")
    assert database.query("SELECT name, name_2 FROM formulas").rows == (
        ("=cmd|' /C calc'!A0", "it's; DROP TABLE formulas"),
    )
    assert database.query("SELECT * FROM ragged").rows == ((1, None), (2, 3), (5, 6))
    assert notes == ("ragged.csv: 2 rows have not the 2 cells of the header: cut, or filled up",)
    assert database.query("SELECT * FROM nul").rows == (("�x", "�"),)
    assert database.query("SELECT _1st FROM _sqlite_master").rows == (("y",),)
    assert database.query("SELECT b FROM quote").rows == (("never closed\n2,3",),)


def test_csv_files_beyond_the_limits_are_refused(tmp_path):
    for text, said in (("", "no header"), (" , \n1,2\n", "no header"), (",".join("a" * 201), "201 columns")):
        with pytest.raises(BadInput, match=said):
            csv_database(tmp_path, t=text)
    big = tmp_path / "big.csv"
    with big.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(BadInput, match="at most 32,000,000"):
        load([big], "big")


def test_a_cell_too_long_for_a_query_is_cut(tmp_path):
    database, notes = csv_database(tmp_path, t="a,b\n" + "x" * 150_000 + ",1\n")
    assert database.query("SELECT length(a), b FROM t").rows == ((100_000, 1),)
    assert "1 cells cut" in notes[0]


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (["1", None, "-2"], "INTEGER"),
        (["1", "2.5"], "REAL"),
        (["007"], "TEXT"),
        ([None], "TEXT"),
        (["1e5"], "REAL"),
        (["9" * 19], "REAL"),
        (["1,5"], "TEXT"),
        (["٣"], "TEXT"),
    ],
)
def test_a_column_has_the_type_of_every_cell(cells, wanted):
    assert kind(cells) == wanted


@given(st.text(max_size=30))
def test_a_cleaned_name_needs_no_quotes(text):
    name = identifier(text, "column_1")
    assert name.isascii()
    assert name.replace("_", "a").isalnum()
    assert not name[0].isdigit()


def test_values_that_the_question_names_are_found(shop):
    found, note = link(shop, "How many vase did NEW YORK sell in sale 9003 with AB-1234?", {"in", "how"}, 5.0)
    assert note == ""
    assert {(one.table, one.column, one.value, one.exact) for one in found} == {
        ("shop", "city", "New York", True),
        ("sale", "item", "vase", True),
        ("dear", "item", "vase", True),
        ("sale", "id", 9003, True),
        ("note", "body", "code AB-1234 was used", False),
    }
    assert [one.exact for one in found] == [True] * 4 + [False]
    assert link(shop, "vase", (), 0.0) == ((), "not every column could be looked through in 0 s")


def test_phrases_and_names_of_a_question():
    assert phrases("the big city", {"the"}) == ["the big city", "the big", "big city", "big", "city"]
    asked = "Which Orders of 2026 from Berlin have RMA-12 or A1?"
    assert names(asked, {"which"}) == ["Orders", "Berlin", "RMA-12"]


def test_joining_tables_are_added(shop):
    assert connect(("note", "shop"), shop.tables) == ("note", "shop", "sale")
    assert connect(("far", "shop"), shop.tables) == ("far", "shop")
    assert connect((), shop.tables) == ()


def test_a_prompt_shows_statements_and_values(shop):
    made = schema_text(shop, shop.tables[:1])
    assert made == (
        "CREATE TABLE shop (\n  id INTEGER PRIMARY KEY, -- 101, 102\n  city TEXT, -- 'Leipzig', 'New York'\n"
        "  opened INTEGER, -- 2011, 2015\n)"
    )
    assert literal("it's") == "'it''s'"
    wide = "CREATE TABLE wide (" + ", ".join(f"column_number_{n} TEXT" for n in range(300)) + ")"
    connection = sqlite3.connect(":memory:")
    for n in range(5):
        connection.execute(wide.replace("wide", f"wide{n}"))
    many = Database(connection.serialize(), "wide")
    told = schema_text(many, many.tables)
    assert len(told) <= 12_010
    assert all(f"CREATE TABLE wide{n} (" in told for n in range(5))


def test_the_support_database_is_read_as_it_is():
    path = Path(__file__).parents[3] / "data" / "support" / "support.sqlite"
    before = path.stat().st_mtime_ns
    database = Database(path, path.name)
    assert len(database.tables) == 8
    found, _ = link(database, "What is the status of order #48291?", {"what", "is", "the", "of"}, 5.0)
    assert ("orders", "order_no", 48291) in {(one.table, one.column, one.value) for one in found}
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("WITH note AS (SELECT 1 AS body) SELECT body FROM note", set()),
        ("WITH note AS (SELECT item FROM sale) SELECT count(*) FROM note", {"sale"}),
        ("WITH note AS (SELECT 1) SELECT body FROM main.note", None),
        ("WITH note AS (SELECT 1) SELECT sale_id FROM main.note", None),
        ("WITH note AS (SELECT body FROM main.note) SELECT * FROM note", None),
    ],
)
def test_a_name_that_a_query_gives_opens_no_column_of_a_hidden_table_of_that_name(file, sql, read):
    guard = Authorizer({"Sale"}, named_parts(sql))
    with closing(sqlite3.connect(file)) as connection:
        connection.set_authorizer(guard)
        if read is None:
            with pytest.raises(sqlite3.DatabaseError):
                connection.execute(sql)
            assert "table 'note' may not be read; there are: sale" in str(guard.denied)
        else:
            connection.execute(sql).fetchall()
            assert (guard.denied, guard.read) == (None, read)
        connection.set_authorizer(None)


INTERRUPTED = sqlite3.OperationalError("interrupted")


@pytest.mark.parametrize(
    ("error", "late", "denied", "kind", "words"),
    [
        (INTERRUPTED, True, None, TooSlow, "the query ran longer than 1.5 s, which is the time a query has"),
        (INTERRUPTED, False, None, SqlFailed, "interrupted"),
        (sqlite3.OperationalError("no such table: x"), True, None, SqlFailed, "no such table: x"),
        (INTERRUPTED, True, ForbiddenSql("table 'x'"), ForbiddenSql, "table 'x'"),
        (MemoryError(), False, None, TooBig, "it exceeds the memory limit of a query (out of memory)"),
        (OverflowError("int"), False, None, TooBig, "int"),
        (sqlite3.DataError("string or blob too big"), False, None, TooBig, "too big"),
        (ValueError(), False, None, SqlFailed, "ValueError"),
    ],
)
def test_what_sqlite_raises_is_told_by_its_kind(error, late, denied, kind, words):
    guard = Authorizer(())
    guard.denied = denied
    found = in_words(error, guard, lambda: late, QueryLimits(seconds=1.5, length=9))
    assert type(found) is kind
    assert words in str(found)
