"""Times of many stored runs, against the same runs loaded one by one."""

from dataclasses import replace

import pytest

from core.analysis.timeline import by_route, by_step, usage
from core.domain.errors import BadInput
from core.domain.outputs import NOTHING
from core.store import Store, search
from tests.runs import make_run


def bare(result):
    """What `traces` keeps of a result."""
    gone = {"args": {}, "output": NOTHING, "hits": None, "links": (), "set_by": {}, "attributes": {}}
    spans = tuple(replace(span, **gone) for span in result.spans)
    return type(result)(
        result.route, result.title, result.status, result.ms, answer=result.answer, spans=spans
    )


def saved(store, count, **kwargs):
    ids = []
    for n in range(count):
        run = make_run(mishaps=bool(n % 2), run_id=f"run{n:03}", corpus=["a", "b"][n % 3 == 0])
        store.save(replace(run, created=f"2026-11-20T10:{n // 60:02}:{n % 60:02}.000+00:00", **kwargs))
        ids.append(run.id)
    assert store.flush()
    return ids


@pytest.mark.parametrize("corpus", [None, "a", "b", "none of these"])
def test_they_are_those_of_the_runs_loaded_one_by_one(store, corpus):
    ids = saved(store, 7)
    store.delete(ids[3])
    runs = [store.load(id) for id in reversed(ids) if id != ids[3]]
    runs = [run for run in runs if corpus in (None, run.corpus)]
    found = store.traces(corpus)
    assert (found.runs, found.of, found.elsewhere) == (len(runs), len(runs), 0)
    assert list(found.results) == [run.id for run in runs]
    for run in runs:
        by_name = sorted(run.results, key=lambda result: result.route)
        assert found.results[run.id] == tuple(bare(result) for result in by_name)
    loaded = [run.results for run in runs]
    some = list(found.results.values())
    assert {(x.name, x.n, x.at[50], x.largest) for x in by_route(some)} == {
        (x.name, x.n, x.at[50], x.largest) for x in by_route(loaded)
    }
    assert {(x.name, x.kind, x.n, x.largest) for x in by_step(some)} == {
        (x.name, x.kind, x.n, x.largest) for x in by_step(loaded)
    }
    assert {(x.route, x.sum) for x in usage(some)} == {(x.route, x.sum) for x in usage(loaded)}


def test_the_newest_are_read_and_the_rest_counted(store, monkeypatch):
    assert store.traces() == search.Traces(0, 0, {}, 0)
    with pytest.raises(BadInput, match="limit=0 must be 1 or more"):
        store.traces(limit=0)
    ids = saved(store, 6)
    assert list(store.traces(limit=2).results) == [ids[5], ids[4]]
    assert (store.traces(limit=2).runs, store.traces(limit=2).of) == (2, 6)
    monkeypatch.setattr(search, "RESULTS", 17)  # eight results a run
    assert list(store.traces().results) == [ids[5], ids[4]]
    monkeypatch.setattr(search, "RESULTS", 1)
    assert list(store.traces().results) == [ids[5]]


def test_what_another_machine_timed_and_what_still_runs_is_left_out(store, tmp_path):
    saved(store, 1)
    other = Store(tmp_path / "other.sqlite")
    other.save(make_run(run_id="imported", corpus="a"))
    assert other.flush()
    store.import_bundle(other.export_bundle(["imported"]))
    other.close()
    store.save(make_run(run_id="under way", corpus="a"))
    store.save(replace(make_run(run_id="under way 2", corpus="a"), status="running"))
    found = store.traces("a")
    assert "under way" in found.results
    assert {"imported", "under way 2"}.isdisjoint(found.results)
    assert found.elsewhere == 8
    assert found.runs == 2
