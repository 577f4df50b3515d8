"""The store: what is saved comes back exactly, is found, and survives what may happen to a file."""

import statistics
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.domain.errors import BadInput
from core.domain.outputs import Pass, Recalled, Search
from core.domain.types import Hit, Passage, Query, RouteResult, Run, Span
from core.store import Store, files, runs, search
from core.store.exchange import same
from core.store.postgres import Dsn
from tests.postgres_server import fresh
from tests.runs import make_run
from tests.strategies import some_runs, texts


def stored(connection, run):
    """The run as its row gives it."""
    return runs.read(
        connection,
        connection.execute("SELECT number FROM runs WHERE id = ?", (runs.bind(run.id),)).fetchone()[0],
    )


@pytest.fixture(scope="module", params=["file", pytest.param("server", marks=pytest.mark.postgres)])
def connection(request, tmp_path_factory):
    place = tmp_path_factory.mktemp("rows") / "a.sqlite" if request.param == "file" else Dsn(fresh())
    with closing(files.open_to_write(place)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        yield connection


# --- exactness


def test_a_run_loaded_again_is_kept_until_somebody_writes_it(store, tmp_path):
    run = make_run(run_id="one")
    store.save(run)
    assert store.flush()
    first = store.load("one")
    assert store.load("one") is first
    assert all(hit.passage is first.passages[hit.passage.id] for r in first.results for hit in r.hits)
    answered = replace(run, results=(replace(run.results[0], answer="Within 48 hours."), *run.results[1:]))
    with closing(Store(store.path)) as other:
        other.save(answered)
        assert other.flush()
    assert store.load("one") == answered
    store.delete("one")
    with pytest.raises(BadInput, match="was deleted"):
        store.load("one")
    for n in range(9):
        store.save(make_run(run_id=f"run{n}"))
    assert store.flush()
    for n in range(9):
        assert store.load(f"run{n}").id == f"run{n}"
    assert len(store._kept) == 4


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(run=some_runs(), picks=st.lists(st.sets(st.integers(0, 2)), max_size=4))
def test_a_run_that_grows_is_always_as_it_was_last_saved(connection, run, picks):
    """Results come, go and change places; what was written before is not written again but stays right."""
    grower = runs.RunWriter()
    for pick in picks:
        some = tuple(run.results[i] for i in sorted(pick) if i < len(run.results))
        now = replace(run, results=some, status="running")
        grower.write(connection, now)
        assert stored(connection, now) == now
    grower.write(connection, run)
    assert stored(connection, run) == run


def test_of_a_run_that_shrinks_nothing_is_left_to_be_found_or_counted(store):
    """Its rows of before would stand in the history of a route that the run no longer has."""
    run = replace(make_run(mishaps=False, run_id="shrinks"), status="running")
    gone, stays = run.results[2:], run.results[:2]
    store.save(run)
    assert store.flush()
    store.save(replace(run, results=(replace(stays[1], ms=1234.0), stays[0])))
    assert store.flush()
    assert store.load(run.id).results == (replace(stays[1], ms=1234.0), stays[0])
    rows = store.write(lambda connection: connection.execute("SELECT route, ms FROM results").fetchall())
    assert sorted(tuple(row) for row in rows) == sorted(
        [(stays[0].route, stays[0].ms), (stays[1].route, 1234.0)]
    )
    assert set(store.route_history(run.corpus)) == {one.route for one in stays}
    assert [store.count(one.route) for one in (*gone, *stays)] == [0] * len(gone) + [1, 1]


def test_nan_and_infinite_scores_and_times_are_kept(store):
    nan = float("nan")
    passage = Passage("a", "a", "", "text")
    hits = (Hit(passage, nan), Hit(passage, float("-inf")))
    output = Recalled("a", nan, 1, float("inf"), nan)
    span = Span(1, None, "s", "CHAIN", nan, 1.0, {"x": nan}, Search(recalled=(output,)), (("a", nan),))
    passing = Span(2, 1, "s", "CHAIN", 0.0, 1.0, output=Pass([nan]), attributes={"at": nan})
    result = RouteResult("r", "R", "ok", nan, nan, nan, hits, spans=(span, passing))
    run = Run("n", "2026", Query("q"), "c", "f", {"t": nan}, (result,), {"a": passage}, nan)
    store.save(run)
    store.flush()
    loaded = store.load("n")
    assert same(loaded, run)
    assert repr(loaded) == repr(run)


def test_a_growing_run_writes_only_what_is_new(connection, monkeypatch):
    run, grower = replace(make_run(run_id="grows"), status="running"), runs.RunWriter()
    statements = []
    grower.write(connection, replace(run, results=run.results[:4]))
    if hasattr(connection, "set_trace_callback"):
        connection.set_trace_callback(statements.append)
    else:  # note each statement, those of `executemany` once a row, as SQLite's own trace does
        execute, many = connection.execute, connection.executemany
        one = lambda sql, *values: statements.append(sql) or execute(sql, *values)  # noqa: E731
        each = lambda sql, rows: [statements.extend([sql] * len(rows := list(rows))), many(sql, rows)]  # noqa: E731
        monkeypatch.setattr(connection, "execute", one)
        monkeypatch.setattr(connection, "executemany", each)
    grower.write(connection, replace(run, results=run.results[:5]))
    if hasattr(connection, "set_trace_callback"):
        connection.set_trace_callback(None)
    assert sum("INTO results" in s for s in statements) == 1
    assert not any("INTO passages" in s or "DELETE FROM results" in s for s in statements)


def test_what_is_not_a_run_is_told_and_hinders_no_other(store):
    good = make_run(run_id="good")
    stray = Hit(Passage("stray", "d", "", "not among the passages"), 1.0)
    store.save(replace(good, id="bad1", settings={"a": object()}))
    store.save(replace(good, id="bad2", results=(replace(good.results[0], hits=(stray,)),)))
    store.save(good)
    store.flush()
    assert store.load("good") == good
    assert store.count() == 1
    bad1, bad2 = store.warnings
    assert "run 'bad1' is not stored" in bad1
    assert "'stray'" in bad2
    store.save(replace(good, id="bad1"))
    store.flush()
    assert len(store.warnings) == 1


def test_unknown_and_deleted_runs_are_refused_by_name(store):
    store.save(make_run())
    id = make_run().id
    with pytest.raises(BadInput, match="'nothing'"):
        store.load("nothing")
    store.delete(id)
    for call in (store.load, store.session, store.delete, lambda id: store.tag(id, ["x"])):
        with pytest.raises(BadInput, match="was deleted"):
            call(id)
    assert store.sessions() == []
    assert store.count() == 0
    store.undelete(id)
    assert store.load(id) == make_run()
    with pytest.raises(BadInput, match="is not deleted"):
        store.undelete(id)


def test_saving_again_keeps_what_people_wrote(store):
    run = make_run()
    store.save(run)
    store.tag(run.id, [" demo ", "two  words", "demo"])
    store.note(run.id, "look \ud83d at rank 3")
    store.save(replace(run, wall_ms=1.0))
    row = store.session(run.id)
    assert (row.tags, row.note, row.wall_ms) == (("demo", "two words"), "look \ud83d at rank 3", 1.0)
    for tags in ([""], ["x" * 65], ["a"] * 3 + [None], "word", [str(n) for n in range(51)]):
        with pytest.raises(BadInput):
            store.tag(run.id, tags)
    assert store.session(run.id) == row


# --- finding


def asked(id, question="q", created="2026-01-01", corpus="support", answer=None, ms=1.0, status="ok"):
    results = (
        RouteResult("bm25", "BM25", status, ms, answer=answer),
        RouteResult("hybrid_rrf", "Hybrid", "ok", 2 * ms),
    )
    return Run(id, created, Query(question), corpus, "f", {}, results, {}, 5.0)


def ids(rows):
    return [row.id for row in rows]


def test_sessions_are_listed_newest_first_page_by_page(store):
    for n in range(10):
        store.save(asked(f"r{n}", created=f"2026-01-0{n // 2}", corpus="ab"[n % 2]))
    assert ids(store.sessions()) == [f"r{n}" for n in range(9, -1, -1)]
    first = store.sessions(limit=4)
    store.delete("r6")  # the page goes on from a run that is gone
    assert ids(store.sessions(before=first[-1].id, limit=3)) == ["r5", "r4", "r3"]
    assert ids(store.sessions(corpus="b")) == ["r9", "r7", "r5", "r3", "r1"]
    assert (store.count(), store.count(corpus="a"), store.count("bm25", corpus="a")) == (9, 4, 4)
    with pytest.raises(BadInput, match="'nothing'"):
        store.sessions(before="nothing")
    with pytest.raises(BadInput, match="limit=0"):
        store.sessions(limit=0)


def test_a_run_is_found_by_question_answer_route_tag_and_note(store):
    store.save(asked("one", "Where is my Café receipt?", answer="Look into the idempotency log"))
    store.save(asked("two", "label"))
    store.tag("two", ["warehouse clerk"])
    store.note("two", "shown to Ada")
    for words in ("cafe rec", "IDEMPOTENCY", "where look"):
        assert ids(store.sessions(words)) == ["one"], words
    for words in ("warehouse", "ada", "lab clerk"):
        assert ids(store.sessions(words)) == ["two"], words
    assert ids(store.sessions("hybrid_rrf")) == ["two", "one"]
    assert store.sessions("cafe clerk") == []
    store.tag("two", [])
    assert store.sessions("warehouse") == []
    store.save(replace(asked("two"), query=Query("changed")))
    assert store.sessions("label") == []
    assert ids(store.sessions("changed ada")) == ["two"]


RAW = (
    """"|""|'|a OR b|NOT|a AND|question:x|^a|a*b|NEAR(a b)|{a b}:c|-a|a\x00b|\ud83d|"a" OR "b|; DROP TABLE"""
)
SCRIPTS = ["🙂", "مرحبا", "日本語", "²", "\u0300"]
HOSTILE = [*RAW.split("|"), *"(*+%_\\", *SCRIPTS, "x" * 20_000, "a " * 10_000, "  ", "a\nb"]


def test_no_text_breaks_the_search(store):
    for n, text in enumerate(HOSTILE):
        store.save(asked(f"r{n}", f"before {text} after"))
    assert store.flush()
    for n, text in enumerate(HOSTILE):
        found = ids(store.sessions(text, limit=100))
        assert f"r{n}" in found or text in ("\ud83d", "a\x00b"), text
        assert store.count(text) == len(found)
    assert store.warnings == []


@given(text=texts)
def test_any_text_can_be_searched_for(connection, text):
    search.sessions(connection, search=text, only={}, before=None, limit=1)


def test_route_history_is_the_median_of_recent_good_results(store):
    for n in range(30):
        store.save(asked(f"r{n}", ms=float(n), status="ok" if n % 2 else "failed"))
    store.save(asked("other", corpus="pydocs", ms=1e6))
    store.flush()
    recent_odd = [float(n) for n in range(30) if n % 2][-search.RECENT :]
    assert store.route_history("support") == {
        "bm25": statistics.median(recent_odd),
        "hybrid_rrf": statistics.median(2.0 * n for n in range(10, 30)),
    }
    assert store.route_history("nothing") == {}
