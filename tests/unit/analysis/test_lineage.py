"""What readers once guessed wrong, as routes of tests run by the real engine: where lists come from, and
where a passage was lost.
"""

import random

import pytest

from core.analysis.lineage import Lineage
from core.analysis.passage_trace import PassageTrace
from core.analysis.what_if.fusion import fusions, list_names
from core.domain.types import Query
from core.engine.request import Request
from core.routes.registry import routes
from tests.added import added
from tests.fakes import FakeEngine, ScriptedLLM

WORDS = ("parcel", "seal", "customs", "vase", "refund", "label", "photo", "carrier")
QUESTION = "parcel seal refund"


def texts(count):
    draw = random.Random(3)
    return {
        f"d{n // 2}:{n:02}-99": f"parcel seal {' '.join(draw.choices(WORDS, k=3 + n % 5))} number{n}"
        for n in range(count)
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs one of the routes of tests over `count` passages."""
    with added():

        def run(name, count=60, question=QUESTION, replies=None):
            home = tmp_path_factory.mktemp("home")
            engine = FakeEngine(home, texts=texts(count), llm=ScriptedLLM(replies or {}))
            (result,) = engine.ask(Request(Query(question), "tiny", (name,))).results
            assert (result.status, result.error) == ("ok", None)
            return result

        yield run
    assert "cut_lists" not in routes()


def made(result, name, at=0):
    return [span for span in result.spans if span.name == name][at]


def given(result, step):
    """(the step that made it, from, size) of each list that a step was given."""
    return [
        (one.span.id if one.span is not None else None, one.start, one.size)
        for one in Lineage(result).sources(step)
    ]


def fate(result, id, depth=10):
    one = PassageTrace(result).fate(id, depth)
    return one.kind, one.step.id if one.step is not None else None, one.was, one.rank


def ids(span):
    return [id for id, _ in span.hits]


def test_each_of_four_fused_lists_is_called_by_the_step_that_made_it_and_what_that_searched_with(run):
    result = run("four_ways")
    fused = made(result, "fuse by fitted weights")
    names = ("search BM25", "search vectors", "score by matching tokens", "search vectors of keys")
    made_by = [made(result, name) for name in names]
    assert given(result, fused) == [(span.id, 0, len(span.hits)) for span in made_by]
    funnel = PassageTrace(result)
    assert [funnel.asked(span) for span in made_by] == [
        f"“{QUESTION}”",
        f"“{QUESTION}”",
        None,
        f"“{QUESTION}”",
    ]
    (fusion,) = fusions(result)
    assert list_names(result, fusion, QUESTION) == names
    assert list_names(result, fusion, "another")[3] == f"search vectors of keys: “{QUESTION}”"


def test_a_route_with_python_of_its_own_is_told_as_far_as_the_trace_says(run):
    result = run("own_python")
    sparse, dense = made(result, "search BM25"), made(result, "search vectors")
    behind, fused = made(result, "put lists one behind another"), made(result, "fuse by reciprocal rank")
    long = sum(len(text) > 60 for text in texts(60).values())
    assert given(result, behind) == [(sparse.id, 0, 5), (dense.id, 5, 10)]
    assert given(result, fused) == [(sparse.id, 0, 8), (behind.id, 0, len(behind.hits)), (None, 0, long)]
    assert given(result, None) == [(fused.id, 0, 12)]
    lost = next(id for id in ids(sparse)[:8] if id not in ids(fused)[:12])
    assert fate(result, lost)[:3] == ("fused away", fused.id, ids(sparse).index(lost) + 1)
    assert "1 of 3 lists made by the route's own code" in PassageTrace(result).fate(lost, 10).words
    gone = next(id for id in ids(dense)[20:] if id not in ids(fused) and id not in ids(sparse)[:10])
    assert fate(result, gone)[:2] == ("not recorded", fused.id)
    assert (
        "own code made the list for “fuse by reciprocal rank”, so its trace cannot show"
        in PassageTrace(result).fate(gone, 10).words
    )
    cut = ids(fused)[12]
    assert fate(result, cut, 20) == ("cut by the route", None, 13, None)
    (fusion,) = fusions(result)
    assert list_names(result, fusion, QUESTION) == (
        "search BM25, the first 8",
        "put lists one behind another",
        "a list made by the route's own code",
    )
