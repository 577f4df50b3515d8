"""Execution accuracy against its definition, on small results and on a public set's gold queries."""

import itertools
import json
import random
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.sql import Database
from core.backends.sql.guard import ordered
from core.domain.outputs import TableResult
from core.domain.types import Query
from core.evaluation import sets
from core.evaluation.answers import WHOLE, measured, rows_of, same, tells
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.outcome import Outcome
from core.steps.table_result import result_draft

GEOGRAPHY = Path(__file__).parents[4] / "shared" / "data" / "text2sql-geography"
needs_geography = pytest.mark.skipif(not GEOGRAPHY.is_dir(), reason=f"{GEOGRAPHY} is not on this machine")


@pytest.fixture
def database():
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE t (name TEXT, size REAL, kind TEXT);"
        "INSERT INTO t VALUES ('a', 1.0, 'x'), ('b', 3.0000001, 'x'), ('c', 2, 'y'), ('c', 2, 'y');"
    )
    return Database(connection.serialize(), "t")


@pytest.mark.parametrize(
    ("gold", "given", "right"),
    [
        ("SELECT name FROM t", "SELECT name AS other FROM t ORDER BY name DESC", 1.0),
        ("SELECT name FROM t", "SELECT DISTINCT name FROM t", 0.0),
        ("SELECT name, size FROM t", "SELECT size, name FROM t", 1.0),
        ("SELECT name FROM t", "SELECT name, size FROM t", 0.0),
        ("SELECT name FROM t ORDER BY size", "SELECT name FROM t ORDER BY size DESC", 0.0),
        ("SELECT name FROM t ORDER BY size", "SELECT name FROM t ORDER BY round(size)", 1.0),
        ("SELECT name FROM (SELECT * FROM t ORDER BY size)", "SELECT name FROM t ORDER BY name DESC", 1.0),
        ("SELECT max(size) FROM t", "SELECT 3", 1.0),
        ("SELECT max(size) FROM t", "SELECT '3'", 0.0),
        ("SELECT name FROM t WHERE 0", "SELECT 1 WHERE 0", 1.0),
        ("SELECT name FROM t WHERE 0", "SELECT count(*) FROM t", 0.0),
        ("SELECT name FROM t", "", 0.0),
        ("SELECT name FROM t", "DROP TABLE t", 0.0),
        ("SELECT name FROM t", "SELECT nothing_there.x FROM t", 0.0),
    ],
)
@pytest.mark.slow
def test_a_query_is_right_if_its_rows_are(database, gold, given, right):
    rows = rows_of(given, database)
    wanted = rows_of(gold, database)
    assert (rows is not None and same(wanted, rows, in_order=ordered(gold))) == right


values = st.sampled_from([None, 0, 1, 1.0, 2, "1", "a", "b"])
results = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.tuples(*[values] * width), min_size=1, max_size=4)
)


@given(results, results, st.booleans())
def test_equal_results_by_trying_every_order_of_columns(one, other, in_order):
    def oracle():
        if len(one) != len(other) or len(one[0]) != len(other[0]):
            return False
        for order in itertools.permutations(range(len(one[0]))):
            turned = [tuple(row[at] for at in order) for row in other]
            if in_order and turned == one:
                return True
            if not in_order and any(list(rows) == one for rows in itertools.permutations(turned)):
                return True
        return False

    assert same(one, other, in_order=in_order) is oracle()


@given(results, st.randoms(use_true_random=False))
def test_a_result_equals_itself_shuffled(rows, chance):
    order = chance.sample(range(len(rows[0])), len(rows[0]))
    turned = [tuple(row[at] for at in order) for row in rows]
    assert same(rows, chance.sample(turned, len(turned)), in_order=False)


def test_what_is_counted_and_what_is_not(database):
    gold = ["SELECT name FROM t", "SELECT gone FROM t", "SELECT 1", None, "SELECT 1"]
    asked = tuple(Question(f"q{n}", Query("?"), sql=sql) for n, sql in enumerate(gold, 1))

    def wrote(sql, status="ok", **more):
        return Outcome(status, 1.0, said={"sql": sql}, **more)

    said = ["SELECT name FROM t", "SELECT 1", "", "SELECT 1"]
    outcomes = {f"q{n}": {"sql": wrote(sql), "words": Outcome("ok", 1.0)} for n, sql in enumerate(said, 1)}
    outcomes["q5"] = {"sql": wrote("SELECT 1", "failed")}
    outcomes["q1"]["both"] = wrote("SELECT name FROM t", answer="c and c, then a, b")
    found = measured(LabelledSet("s", asked, {}), outcomes, ("sql", "words", "both"), database)
    assert found.values == {
        "sql": {"q1": {"execution_accuracy": 1.0}, "q3": {"execution_accuracy": 0.0}},
        "both": {"q1": {"execution_accuracy": 1.0, "answer_accuracy": 1.0}},
    }
    assert found.excluded == ("q2",)
    assert "1 questions are excluded" in found.remark()


FIFTY = tuple((f"v{n}",) for n in range(60))
LISTED = ", ".join(value for (value,) in FIFTY[:50])


@pytest.mark.parametrize(
    ("answer", "rows", "right"),
    [
        ("population: 345,496 [1]", ((345496,),), True),
        ("about 345.5 thousand [1]", ((345496,),), False),
        ("3454961", ((345496,),), False),
        ("the average is 4,415,591", ((4415590.6666667,),), True),
        ("4.4 million", ((4415590.6666667,),), False),
        ("area 266807", ((266807.0,),), True),
        ("-85 feet", ((-85,),), True),
        ("[5] is where it stands", ((5,),), False),
        ("ST LOUIS, in Missouri.", (("st. louis",), ("missouri",)), True),
        ("St. Louis", (("st. louis",), ("missouri",)), False),
        ("Austin, 20", (("austin", 20), ("austin", 30)), False),
        ("austin, austin", (("austin",), ("austin",), (None,)), True),
        ("kansas city", (("arkansas",),), False),
        ("alpha " + "beta " * 40, (("alpha",),), False),
        (LISTED, FIFTY, False),
        (f"{LISTED}; 10 more rows of 60", FIFTY, True),
        ("nothing", (), False),
        ("0", ((None,),), False),
    ],
)
def test_an_answer_is_right_if_it_tells_the_rows(answer, rows, right):
    assert tells(answer, False, rows) is right
    assert tells(answer, True, rows) is (not [value for row in rows for value in row if value is not None])


table_rows = st.lists(
    st.tuples(st.one_of(st.integers(), st.text("abc. '", max_size=9), st.floats(-1e9, 1e9), st.none())),
    max_size=60,
)


@given(table_rows, st.data())
def test_the_sentence_of_a_result_tells_it_and_tells_no_row_it_lacks(rows, data):
    def asked(given):
        return result_draft(TableResult("SELECT 1", ("a",), tuple(given), ("t",), "d", "answered", (), "why"))

    whole = asked(rows)
    known = [row for row in rows if row[0] is not None]
    if known or not rows:
        assert tells(whole.text, whole.abstained, rows)
    numbers = sorted({row[0] for row in rows if type(row[0]) is int})[:50]
    if numbers:
        gone = data.draw(st.sampled_from(numbers))
        fewer = asked([(one,) for one in numbers if one != gone])
        assert not tells(fewer.text, fewer.abstained, [(one,) for one in numbers])


@pytest.mark.process
@needs_geography
def test_gold_queries_of_a_public_set_are_right_and_are_labelled_with_their_tables():
    written = sets.read("geography", GEOGRAPHY, split="all")
    database = Database(GEOGRAPHY / "geography.sqlite", "geography.sqlite")
    rows = {}
    for line in (GEOGRAPHY / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        rows[item["_id"]] = item
    drawn = random.Random(3).sample(written.questions, 40)
    for one in drawn:
        told = rows[one.id]
        assert (rows_of(one.sql, database) is not None) is told["executes"]
        assert bool(written.evidence[one.id]) is told["executes"]
        if told["executes"] and len(told["gold_rows"]) == told["n_rows"]:
            given = database.query(one.sql, limits=WHOLE).rows
            assert same([tuple(row) for row in told["gold_rows"]], given, in_order=False)
    assert {len(sets.read("g", GEOGRAPHY, split=split).questions) for split in ("dev", "test")} == {159, 182}
