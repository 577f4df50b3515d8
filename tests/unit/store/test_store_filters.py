"""The list of runs by corpus, route, tag, status and day: what is found, what is offered, and how fast."""

import random
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


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """80 runs of every kind, each with its tags and whether it was deleted; one was left running."""
    store, chance, made = Store(tmp_path_factory.mktemp("crowd") / "sessions.sqlite"), random.Random(7), {}
    for n in range(80):
        routes, tags = (chance.sample(some, chance.randint(0, 3)) for some in (ROUTES, TAGS))
        created = f"{chance.choice(DAYS)}T{chance.choice(TIMES)}"
        what = {"corpus": chance.choice(CORPORA), "status": chance.choice(STATUSES), "created": created}
        run, gone = asked(f"{n:03}", routes=routes, **what), chance.random() < 0.2
        store.save(run)
        store.tag(run.id, tags)
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


def test_a_search_and_filters_hold_together_and_nothing_is_offered_of_what_is_gone(store):
    assert store.choices() == Choices((), (), (), (), "", "")
    store.save(asked("a", routes=("bm25", "dense")))
    store.save(asked("zz", routes=("dense",)))
    assert store.ids("question", route="bm25") == ["a"]
    assert store.ids("question zz", route="bm25") == []
    for id in ("a", "zz"):
        store.delete(id)
    assert (store.ids(), store.choices()) == ([], Choices((), (), (), (), "", ""))
