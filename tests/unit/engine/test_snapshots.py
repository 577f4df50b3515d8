"""What a page sees of a run under way is cheap to look at."""

from dataclasses import replace

from core.domain.types import Query
from core.engine.request import Request
from tests.fakes import FakeEngine


def asked(tmp_path):
    """An ended job that shows less than its steps found, and what is read of its corpus."""
    texts = {f"p:{n}-{n + 1}": f"The refund of order {n} is paid on day {n % 7}." for n in range(60)}
    engine = FakeEngine(tmp_path, texts=texts)
    job = engine.start(Request(Query("When is the refund paid?"), "tiny", ("bm25", "dense")))
    corpus, read = engine.fakes["tiny"], []
    by_ids = corpus.by_ids
    corpus.by_ids = lambda ids: read.extend(ids) or by_ids(ids)
    for result in job.wait(30).results:
        job.amend(replace(result, hits=result.hits[:5]))
    return job, read


def test_no_passage_is_read_twice_however_often_one_looks(tmp_path):
    job, read = asked(tmp_path)
    run = job.snapshot()
    named = {id for one in run.results for span in one.spans for id, _ in span.hits or ()}
    assert named | {hit.passage.id for one in run.results for hit in one.hits} == run.passages.keys()
    assert len(run.passages) == 60
    read.clear()
    assert [job.snapshot() for _ in range(5)] == [run] * 5
    assert read == []


def test_an_earlier_snapshot_does_not_change(tmp_path):
    job, _ = asked(tmp_path)
    run = job.snapshot()
    before = dict(run.passages)
    del job.snapshot().passages[next(iter(before))]
    assert run.passages == before == job.snapshot().passages
