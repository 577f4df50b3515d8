"""A route of few lines with slices, lists put one behind another and Python of its own, on the pages that say
why a passage is where it is.
"""

import pytest
from markupsafe import escape

from core.analysis.passage_trace import PassageTrace
from core.analysis.what_if.fusion import fusions, recompute
from core.domain.background_job import jobs
from core.domain.types import Query
from core.engine.request import Request
from core.evaluation.gold import Gold
from tests.added import added
from tests.pages.reading import html, shown
from tests.unit.analysis.test_lineage import QUESTION, made, texts

FUSED = "fuse by reciprocal rank"


@pytest.fixture
def asked(engine):
    """Runs of such a route over sixty passages, with and without its own list."""
    engine.fakes["tiny"] = type(engine.fakes["tiny"])(texts(60))
    with added():

        def ask(route):
            run = engine.ask(Request(Query(QUESTION), "tiny", (route, "hybrid_rrf")))
            assert [(one.status, one.error) for one in run.results] == [("ok", None)] * 2
            assert engine.store.flush()
            jobs.clear()
            return run

        yield ask


def test_why_says_what_is_recorded_and_where_the_trace_ends(visit, asked, monkeypatch):
    run = asked("own_python")
    own = run.results[0]
    sparse, dense, fused = (made(own, name) for name in ("search BM25", "search vectors", FUSED))
    high = {id for id, _ in (*fused.hits, *sparse.hits[:20], *dense.hits[:20])}
    gone = next(id for id, _ in dense.hits if id not in high)
    cut = fused.hits[12][0]
    monkeypatch.setattr("ui.components.gold.gold_of", lambda _: Gold({gone: 3, cut: 2}))
    page = html(visit("why.py", run=run.id, depth="20"))
    for id in (gone, cut):
        assert escape(PassageTrace(own).fate(id, 20).words) in page
    assert "At rank 13 in “fuse by reciprocal rank”, but the route returned only the first 12 of" in page
    assert "own code made the list for “fuse by reciprocal rank”, so its trace cannot" in page
    assert "✕ not recorded" in page
    assert "own code combined lists, not recorded" in page


def test_fusion_says_which_list_the_run_does_not_keep(visit, asked):
    run = asked("own_python")
    app = visit("steps.py?view=Fusion", run=run.id, route="own_python")
    assert "list 3 was made by the route's own code" in shown(app)


def test_fusion_names_the_parts_that_were_fused_and_does_it_again(visit, asked):
    run = asked("cut_lists")
    app = visit("steps.py?view=Fusion", run=run.id, route="cut_lists")
    page = html(app) + shown(app)
    assert "search BM25, the first 20" in page
    assert "search vectors, the first 20" in page
    (fusion,) = fusions(run.results[0])
    assert [len(one) for one in fusion.lists] == [20, 20]
    assert recompute(fusion, {}) == fusion.span.hits
    moved = recompute(fusion, {"weights.0": 9.0})
    assert [id for id, _ in moved][:5] == [id for id, _ in made(run.results[0], "search BM25").hits[:5]]
