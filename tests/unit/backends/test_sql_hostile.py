"""SQL that was written to break out, to break in, or never to end: each gets one clear refusal, in time."""

import sqlite3
import threading
import time

import psutil
import pytest

from core.backends.sql import Database, QueryLimits
from core.backends.sql.guard import (
    ForbiddenSql,
    NotASelect,
    NotOneStatement,
    SqlError,
    SqlFailed,
    TooBig,
    TooSlow,
)
from core.domain.errors import Unavailable

pytestmark = pytest.mark.process

SCHEMA = """
CREATE TABLE sale (id INTEGER PRIMARY KEY, item TEXT, price REAL);
INSERT INTO sale VALUES (1, 'vase', 12.5), (2, 'lamp', 7), (3, 'vase', 13);
CREATE TABLE long (id INTEGER PRIMARY KEY, body TEXT);
CREATE VIEW dear AS SELECT item FROM sale WHERE price > 10;
CREATE VIRTUAL TABLE texts USING fts5(body);
INSERT INTO texts VALUES ('a secret that no query may read');
CREATE TABLE "texts_owner" (name TEXT);
INSERT INTO "texts_owner" VALUES ('hidden with the virtual table it is named after');
"""
NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("sql") / "shop.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    connection.executemany(
        "INSERT INTO long (body) VALUES (?)", [("a" * 90_000 + str(n),) for n in range(100)]
    )
    connection.commit()
    connection.close()
    return path


@pytest.fixture(scope="module")
def shop(file):
    return Database(file, "shop.sqlite")


HOSTILE = [
    # writes
    ("INSERT INTO sale VALUES (9, 'x', 1)", NotASelect),
    ("REPLACE INTO sale VALUES (1, 'x', 1)", NotASelect),
    ("DROP TABLE sale", NotASelect),
    ("ALTER TABLE sale RENAME TO gone", NotASelect),
    ("CREATE TABLE x (y)", NotASelect),
    ("CREATE TRIGGER t AFTER INSERT ON sale BEGIN DELETE FROM sale; END", NotOneStatement),
    ("CREATE VIRTUAL TABLE v USING fts5(a)", NotASelect),
    ("WITH x AS (SELECT 1) UPDATE sale SET price = 0", NotASelect),
    ("WITH x AS (SELECT 1) INSERT INTO sale SELECT 9, 'x', 1 FROM x", NotASelect),
    ("ANALYZE", NotASelect),
    ("VACUUM INTO 'copy.sqlite'", NotASelect),
    ("BEGIN EXCLUSIVE", NotASelect),
    # other files, settings, code
    ("ATTACH 'other.sqlite' AS other", NotASelect),
    ("SELECT * FROM other.sale", SqlFailed),
    ("DETACH main", NotASelect),
    ("PRAGMA query_only = OFF", NotASelect),
    ("SELECT * FROM pragma_database_list", ForbiddenSql),
    ("WITH pragma_database_list AS (SELECT 1) SELECT count(*) FROM main.pragma_database_list", SqlError),
    ("SELECT readfile('/etc/passwd')", SqlFailed),
    ("SELECT fts3_tokenizer('simple')", SqlError),
    ("SELECT sqlite_version()", ForbiddenSql),
    ("SELECT * FROM json_each('[1]')", ForbiddenSql),
    ("SELECT * FROM generate_series(1, 9)", SqlError),
    # what is hidden
    ("SELECT name FROM sqlite_schema", ForbiddenSql),
    ("SELECT count(*) FROM sqlite_temp_master", ForbiddenSql),
    ("SELECT body FROM texts", ForbiddenSql),
    ("SELECT c0 FROM texts_content", ForbiddenSql),
    ("SELECT name FROM texts_owner", ForbiddenSql),
    ("SELECT (SELECT name FROM texts_owner LIMIT 1) FROM sale", ForbiddenSql),
    ("SELECT item FROM sale UNION SELECT name FROM texts_owner", ForbiddenSql),
    ("WITH texts AS (SELECT 1) SELECT body FROM main.texts", ForbiddenSql),
    ("WITH texts_owner AS (SELECT 1) SELECT name FROM main.texts_owner", ForbiddenSql),
    ("WITH texts_owner AS (SELECT 1) SELECT count(*) FROM main.texts_owner", ForbiddenSql),
    ("SELECT 1 FROM texts_owner, (WITH texts_owner AS (SELECT 1) SELECT 1 FROM texts_owner)", ForbiddenSql),
    # several statements, none, and what hides one
    ("SELECT 1 /* ; */ ; -- \n DROP TABLE sale", NotOneStatement),
    ("/* DELETE FROM sale */", NotOneStatement),
    ("/* never closed DELETE FROM sale", NotOneStatement),
    ("-- SELECT 1\nDELETE FROM sale", NotASelect),
    ("; ;", NotOneStatement),
    ("EXPLAIN QUERY PLAN SELECT * FROM sale", NotASelect),
    # sizes
    ("SELECT zeroblob(2000000000)", ForbiddenSql),
    ("SELECT printf('%.*c', 2000000000, 'a')", ForbiddenSql),
    ("SELECT replace(replace(body, 'a', 'aaaa'), 'a', 'aaaa') FROM long", TooBig),
    (f"{NUMBERS} SELECT group_concat('0123456789') FROM (SELECT i FROM n LIMIT 100000)", TooBig),
    ("SELECT " + ", ".join(["1"] * 3_000), TooBig),
    ("SELECT " + " UNION SELECT ".join(["1"] * 600), TooBig),
    ("SELECT * FROM " + ", ".join(f"sale s{n}" for n in range(80)), SqlFailed),
    ("SELECT " + "abs(" * 500 + "1" + ")" * 500, TooBig),
]


@pytest.mark.trust
@pytest.mark.parametrize(("sql", "error"), HOSTILE, ids=[sql[:60] for sql, _ in HOSTILE])
def test_a_hostile_statement_is_refused_and_changes_nothing(file, shop, sql, error):
    before = file.read_bytes()
    with pytest.raises(error) as caught:
        shop.query(sql)
    said = str(caught.value)
    assert "\n" not in said
    assert 0 < len(said) < 2_100
    assert "secret" not in said
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_part_of_a_statement_may_have_any_name_that_hides_nothing(shop):
    assert shop.query("WITH mine AS (SELECT 1) SELECT count(*) FROM mine").rows == ((1,),)
    assert shop.query("WITH sale AS (SELECT 7 AS item) SELECT item FROM sale").rows == ((7,),)


LONG = "FROM long a, long b, long c"
NEEDLE = "substr(body, 1, 45000) || 'b'"
INSTR = " + ".join(["instr(body || body, substr(body, 1, 90000) || 'b')"] * 150)
RUNAWAY = {
    "150 instr": f"SELECT {INSTR} FROM long",
    "instr in a condition": f"SELECT id FROM long WHERE instr(body, {NEEDLE}) > 0",
    "replace over rows": f"SELECT sum(length(replace(body, {NEEDLE}, 'x'))) FROM long",
    "like": f"SELECT count(*) {LONG} WHERE a.body || c.id LIKE '%b%'",
    "trim": f"SELECT sum(length(trim(a.body || b.id, substr(a.body, 1, 2000)))) {LONG}",
    "a row that never comes": f"{NUMBERS} SELECT i FROM n WHERE i < 0",
    "recursion without doubles": (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i * 48271 % 2147483647 FROM n) SELECT count(*) FROM n"
    ),
    "sorted joins": f"SELECT a.id {LONG}, long d ORDER BY a.id * b.id % 7, c.id * d.id LIMIT 1",
    "different values of joins": f"SELECT count(DISTINCT a.id * b.id * c.id * d.id) {LONG}, long d",
    "correlated": "SELECT sum((SELECT count(*) FROM long b, long c, long d WHERE b.id > a.id)) FROM long a",
    "window": (
        f"SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY a.id * b.id % 13, c.id) r {LONG}, long d)"
    ),
    "intersection": f"{NUMBERS} SELECT i FROM n INTERSECT SELECT -i FROM n",
}


@pytest.mark.trust
@pytest.mark.parametrize("name", RUNAWAY)
def test_a_statement_that_would_run_on_is_ended_with_one_message(shop, name):
    began = time.monotonic()
    with pytest.raises(TooSlow, match=r"^the query ran longer than 0\.2 s, which is the time a query has$"):
        shop.query(RUNAWAY[name], limits=QueryLimits(seconds=0.2))
    assert time.monotonic() - began < 5  # a busy machine; without an end it is ten times that
    assert shop.query("SELECT count(*) FROM sale").rows == ((3,),)


@pytest.mark.trust
def test_a_query_has_one_and_a_half_seconds():
    assert QueryLimits().seconds == 1.5


def children():
    found = []
    for child in psutil.Process().children():
        try:
            if "core.backends.sql.child" in child.cmdline():
                found.append(child)
        except psutil.Error:
            continue
    return found


@pytest.mark.trust
def test_stop_ends_a_query_inside_a_function_and_its_process(file):
    shop = Database(file, "shop.sqlite")
    mine = {child.pid for child in children()}
    stop, looks = threading.Event(), []

    def cancelled():
        looks.append(time.monotonic())
        if len(looks) == 5:  # it has been at work for a while
            stop.set()
        return stop.is_set()

    with pytest.raises(SqlFailed, match="was stopped"):
        shop.query(RUNAWAY["150 instr"], limits=QueryLimits(seconds=100), cancelled=cancelled)
    assert looks[-1] - looks[0] < 10
    assert len(mine & {child.pid for child in children()}) == len(mine) - 1


def test_a_process_that_was_lost_is_replaced(file):
    shop = Database(file, "shop.sqlite")
    before = {child.pid for child in children()}
    for child in children():
        child.kill()
        child.wait(10)
    assert shop.query("SELECT count(*) FROM sale").rows == ((3,),)
    assert not before & {child.pid for child in children()}


def test_a_process_that_cannot_be_started_is_told(file, monkeypatch):
    monkeypatch.setattr("core.backends.sql.database.sys.executable", "/nothing/here")
    with pytest.raises(Unavailable, match="cannot start the query process"):
        Database(file, "shop.sqlite")


def test_memory_is_bounded(shop):
    sql = (
        "WITH RECURSIVE n(i, x) AS (SELECT 1, body FROM long UNION ALL SELECT i + 1, x || i FROM n) "
        "SELECT count(*) FROM (SELECT x FROM n ORDER BY x)"
    )
    with pytest.raises((TooBig, SqlFailed), match=r"memory|ended the process"):
        shop.query(sql, limits=QueryLimits(seconds=60))


def test_views_of_views_do_not_hold_up_the_opening(tmp_path, monkeypatch):
    path = tmp_path / "views.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE VIEW v0 AS SELECT 1 AS x")
    for n in range(40):
        connection.execute(f"CREATE VIEW v{n + 1} AS SELECT a.x FROM v{n} a, v{n} b")
    connection.close()
    monkeypatch.setattr("core.backends.sql.database.SCHEMA_S", 0.3)
    with pytest.raises(Unavailable, match=r"views\.sqlite cannot be read as a SQLite database: its schema"):
        Database(path, "views.sqlite")


@pytest.mark.trust
def test_no_secret_is_in_the_environment_of_the_process(file, monkeypatch):
    monkeypatch.setenv("ROUTESCOPE_LLM_API_KEY", "sk-canary-0123456789")
    before = {child.pid for child in children()}
    shop = Database(file, "shop.sqlite")
    (mine,) = [child for child in children() if child.pid not in before]
    assert "sk-canary-0123456789" not in mine.environ().values()
    assert shop.query("SELECT 1").rows == ((1,),)
