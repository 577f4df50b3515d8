"""What `new_route` finds, computed a second time by hand from the lists that its searches found."""

import pytest

from core.domain.types import Query
from core.engine.request import Request
from tests.fakes import FakeEngine

QUESTION = "How do I send a fragile item back?"


@pytest.mark.parametrize("k", [1, 60])
def test_new_route_fuses_bm25_and_dense_by_reciprocal_rank(tmp_path, k):
    request = Request(
        Query(QUESTION), "tiny", ("bm25", "dense", "new_route"), parameters={"new_route": {"k": k}}
    )
    words, meaning, mine = FakeEngine(tmp_path).ask(request).results
    assert (mine.status, mine.error) == ("ok", None)
    scores = {}
    for found in (words, meaning):
        for rank, hit in enumerate(found.hits, start=1):
            scores[hit.passage.id] = scores.get(hit.passage.id, 0) + 1 / (k + rank)
    assert {hit.passage.id: hit.score for hit in mine.hits} == pytest.approx(scores)
    assert [hit.score for hit in mine.hits] == sorted(scores.values(), reverse=True)
