"""A stored run as a request: all that is still here, and a word on all that is not."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from core.analysis.run_diff import run_diff
from core.domain.types import AnswerStyle, Query
from core.engine.request import Again, Here, Request, again
from core.routes.registry import routes
from tests.fakes import FakeEngine
from tests.strategies import some_runs

QUESTION = Query("How do I send a fragile item back?")


def here(engine):
    return Here(routes(), {"tiny": engine.corpus("tiny").fingerprint}, engine.llm().model, {"tiny": "hash"})


def test_a_run_made_again_is_the_same_run(tmp_path):
    engine = FakeEngine(tmp_path)
    routes_, style = ("bm25", "hybrid_rrf", "hyde"), AnswerStyle("extract", "best at both ends")
    how = ({"hybrid_rrf": {"k": 33}}, "selected", ("hyde", "bm25"), "isolated")
    asked = Request(QUESTION, "tiny", routes_, *how, style=style, mode="live")
    run = engine.ask(asked)
    found = again(run, here(engine))
    assert (found.gone, found.other) == ((), ())
    assert found.request.parameters["hybrid_rrf"]["k"] == 33
    assert replace(found.request, parameters={}) == replace(asked, parameters={}, answered=("bm25", "hyde"))
    same = run_diff(run, engine.ask(found.request))
    assert (same.settings, same.same) == ((), True)
    changed = {**found.request.parameters, "hybrid_rrf": {"k": 7}}
    (route,) = run_diff(run, engine.ask(replace(found.request, parameters=changed))).differing
    assert [(one.name, one.before, one.after) for one in route.parameters] == [("k", 33, 7)]


def test_what_is_not_here_any_more_is_named_and_left_out(tmp_path):
    engine = FakeEngine(tmp_path)
    run = engine.ask(Request(QUESTION, "tiny", ("bm25", "hybrid_rrf")))
    old = replace(run.results[1], parameters={"k": 10**9, "sharpness": 3, "weight_sparse": 2.0})
    lost = replace(run.results[0], route="clairvoyance")
    routes_ = ["clairvoyance", "hybrid_rrf"]
    before = {"routes": routes_, "answers": "selected", "answered": [*routes_, 7], "session": "demo"}
    before |= {"llm": "another", "embedder": "word2vec", "llm mode": "record"}
    run = replace(run, fingerprint="of old", results=(lost, old), settings={**run.settings, **before})
    found = again(run, here(engine))
    assert found.request.routes == found.request.answered == ("hybrid_rrf",)
    assert (found.request.session, found.request.mode) == ("", "live")
    gone = {"route clairvoyance", "parameter hybrid_rrf.k", "parameter hybrid_rrf.sharpness"}
    assert set(found.gone) >= {*gone, "session demo, which has new turns since the run"}
    assert found.other == (
        "the language model was another and is scripted",
        "the embedder was word2vec and is hash",
        "corpus tiny was reindexed since the run",
        "the run recorded model replies, and the rerun calls the model",
    )
    assert again(replace(run, corpus="away"), here(engine)).gone[-1] == "corpus away"
    assert engine.ask(found.request).results[0].status == "ok"


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(run=some_runs())
def test_any_stored_run_gives_a_request_of_known_routes(run):
    found = again(run, Here(routes(), {}, "m"))
    assert isinstance(found, Again)
    assert set(found.request.routes) <= routes().keys()
    assert f"corpus {run.corpus}" in found.gone
