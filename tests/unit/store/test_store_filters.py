"""The list of runs by corpus, route, tag, status and day: what is found, what is offered, and how fast."""

import json
import random
import statistics
import time
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.domain.types import Query, RouteResult, Run
from core.store import Choices, Store

CORPORA = ("support", "web", "a\ud83db")
ROUTES = ("bm25", "dense", "hybrid_rrf")
TAGS = ("demo", "customer A", 'a"b', "[", ",", "\ud83d")
STATUSES = ("done", "cancelled", "interrupted", "running")
DAYS = (date(2026, 11, 19), date(2026, 11, 20), date(2026, 11, 21))
TIMES = ("00:00:00.000+00:00", "12:30:00.000+00:00", "23:59:59.999+00:00")


def asked(id, *, corpus="support", routes=("bm25",), status="done", created="2026-11-20T10:00:00.000+00:00"):
    results = tuple(RouteResult(route, route, "ok", 1.0) for route in routes)
    return Run(id, created, Query(f"question {id}"), corpus, "f", {}, results, status=status)


@pytest.fixture
def store(store_place):
    store = Store(store_place)
    yield store
    store.close()


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """80 runs of every kind, each with its tags and whether it was deleted; one was left running."""
    store = Store(tmp_path_factory.mktemp("crowd") / "sessions.sqlite")
    chance = random.Random(7)
    made = {}
    for n in range(80):
        run = asked(
            f"{n:03}",
            corpus=chance.choice(CORPORA),
            routes=chance.sample(ROUTES, chance.randint(0, 3)),
            status=chance.choice(STATUSES),
            created=f"{chance.choice(DAYS)}T{chance.choice(TIMES)}",
        )
        tags = chance.sample(TAGS, chance.randint(0, 3))
        store.save(run)
        store.tag(run.id, tags)
        gone = chance.random() < 0.2
        if gone:
            store.delete(run.id)
        made[run.id] = (run, tags, gone)
    left = next(id for id, (run, _, gone) in made.items() if run.status == "running" and not gone)
    store.write(lambda c: c.execute("UPDATE runs SET born = born - 60 WHERE id = ?", (left,)))
    run, tags, gone = made[left]
    made[left] = (replace(run, status="interrupted"), tags, gone)
    yield store, list(made.values())
    store.close()


def fits(run, tags, only):
    day = date.fromisoformat(run.created[:10])
    return (
        only.get("corpus") in (None, run.corpus)
        and (only.get("route") is None or only["route"] in [result.route for result in run.results])
        and (only.get("tag") is None or only["tag"] in tags)
        and only.get("status") in (None, run.status)
        and (only.get("since") is None or only["since"] <= day)
        and (only.get("until") is None or day <= only["until"])
    )


filters = st.fixed_dictionaries(
    {},
    optional={
        "corpus": st.sampled_from([None, *CORPORA, "nowhere"]),
        "route": st.sampled_from([None, *ROUTES, "nothing"]),
        "tag": st.sampled_from([None, *TAGS, "dem", "a", '","']),
        "status": st.sampled_from([None, *STATUSES, "odd"]),
        "since": st.sampled_from([None, *DAYS, date.min, date.max]),
        "until": st.sampled_from([None, *DAYS, date.min, date.max]),
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(only=filters)
def test_filters_find_exactly_the_runs_that_fit(crowd, only):
    store, made = crowd
    expected = sorted(
        ((run.created, run.id) for run, tags, gone in made if not gone and fits(run, tags, only)),
        reverse=True,
    )
    ids = [id for _, id in expected]
    assert [row.id for row in store.sessions(limit=100, **only)] == ids
    assert store.ids(**only) == ids
    assert store.count(**only) == len(ids)
    if len(ids) > 3:
        assert [row.id for row in store.sessions(limit=2, before=ids[1], **only)] == ids[2:4]


def test_what_is_offered_is_what_would_be_found(crowd):
    store, made = crowd
    here = [(run, tags) for run, tags, gone in made if not gone]
    days = [run.created[:10] for run, _ in here]
    assert store.choices() == Choices(
        tuple(sorted({run.corpus for run, _ in here})),
        tuple(sorted({result.route for run, _ in here for result in run.results})),
        tuple(sorted({tag for _, tags in here for tag in tags})),
        tuple(sorted({run.status for run, _ in here})),
        min(days),
        max(days),
    )


def test_nothing_is_offered_of_nothing(store):
    assert store.choices() == Choices((), (), (), (), "", "")
    assert (store.ids(), store.count(tag="x")) == ([], 0)


def test_what_only_a_deleted_run_has_is_not_offered(store):
    store.save(asked("a", corpus="one", routes=("bm25",)))
    store.save(asked("b", corpus="two", routes=("dense",), created="2026-11-22"))
    store.tag("b", ["gone"])
    store.delete("b")
    assert store.choices() == Choices(("one",), ("bm25",), (), ("done",), "2026-11-20", "2026-11-20")


def test_a_search_and_filters_hold_together(store):
    store.save(asked("a", routes=("bm25", "dense")))
    store.save(asked("zz", routes=("dense",)))
    assert store.ids("question", route="bm25") == ["a"]
    assert store.ids("question zz", route="bm25") == []


def large(store, count):
    """`count` runs of 12 of 24 routes with settings as long as real ones, written by SQL."""
    names = [f"route{n:02}" for n in range(24)]
    routes = [json.dumps(names[first : first + 12]) for first in range(13)]
    long, passages = json.dumps({"s": "x" * 400}), json.dumps(list(range(200)))

    def work(connection):
        connection.execute("INSERT INTO texts VALUES (x'00', 'How do I return a parcel?')")
        connection.executemany(
            "INSERT INTO runs (id, created, corpus, fingerprint, question, history, settings, status, "
            "wall_ms, routes, passages, tags) VALUES (?, ?, ?, 'f', x'00', '[]', ?, ?, 1.0, ?, ?, ?)",
            (
                (
                    f"{n:08}",
                    f"2026-{1 + n // 1000:02}-{1 + n % 28:02}T{n:08}",
                    f"c{n % 20}",
                    long,
                    "done" if n % 40 else "cancelled",
                    routes[n % 13],
                    passages,
                    json.dumps([] if n % 3 else ["demo", f"t{n % 200}"]),
                )
                for n in range(count)
            ),
        )
        connection.execute(
            "INSERT INTO results (run, route, nth, title, status, ms, start_ms, wall_ms, hits, "
            "citations, abstained, parameters, recorded, spans) "
            "SELECT number, value, 0, '', 'ok', 1.0, 0, 0, ?, '[]', 'false', '{}', '{}', ? "
            "FROM runs, json_each(routes)",
            ("h" * 200, "s" * 400),
        )

    store.write(work, durable=False)


@pytest.mark.slow
def test_every_filter_of_10_000_runs_answers_in_a_moment(tmp_path):
    """Some 5 ms of the processor here; the limit is a hundred times that, as it may be busy and slow."""
    store = Store(tmp_path / "large.sqlite")
    large(store, 10_000)
    for only in (
        {},
        {"route": "route03"},
        {"route": "no such"},
        {"tag": "t3"},
        {"tag": "no such"},
        {"status": "cancelled"},
        {"status": "interrupted"},
        {"since": date(2026, 3, 1), "until": date(2026, 3, 31)},
        {"corpus": "c7", "route": "route03", "tag": "demo", "status": "done", "since": date(2026, 2, 1)},
    ):
        assert seconds(lambda: store.sessions(limit=51, **only)) < 0.5, only  # noqa: B023
        assert seconds(lambda: store.count(**only)) < 0.5, only  # noqa: B023
    assert seconds(store.choices) < 0.5
    assert len(store.choices().routes) == 24
    assert store.count(tag="demo") == 3334
    store.close()


def seconds(work):
    """The median of the processor seconds that `work` takes."""
    taken = []
    for _ in range(5):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return statistics.median(taken)
