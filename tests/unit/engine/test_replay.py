"""A stored run as a request: all that is still here, and a word on all that is not."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from core.analysis.run_diff import run_diff
from core.domain.types import AnswerStyle, Query
from core.engine.request import Request, again
from core.routes.registry import routes
from tests.fakes import FakeEngine
from tests.strategies import some_runs

QUESTION = Query("How do I send a fragile item back?")


def test_a_run_made_again_is_the_same_run(tmp_path):
    engine = FakeEngine(tmp_path)
    routes_, style = ("bm25", "hybrid_rrf", "hyde"), AnswerStyle("extract", "best at both ends")
    how = ({"hybrid_rrf": {"k": 33}}, "selected", ("hyde", "bm25"), "isolated")
    asked = Request(QUESTION, "tiny", routes_, *how, style=style, mode="live")
    run = engine.ask(asked)
    request, gone = again(run, routes())
    assert (gone, request.parameters["hybrid_rrf"]["k"]) == ([], 33)
    assert replace(request, parameters={}) == replace(asked, parameters={}, answered=("bm25", "hyde"))
    same = run_diff(run, engine.ask(request))
    assert (same.settings, same.same) == ((), True)
    changed = {**request.parameters, "hybrid_rrf": {"k": 7}}
    (route,) = run_diff(run, engine.ask(replace(request, parameters=changed))).differing
    assert [(one.name, one.before, one.after) for one in route.parameters] == [("k", 33, 7)]


def test_what_is_not_here_any_more_is_named_and_left_out(tmp_path):
    engine = FakeEngine(tmp_path)
    run = engine.ask(Request(QUESTION, "tiny", ("bm25", "hybrid_rrf")))
    old = replace(run.results[1], parameters={"k": 10**9, "sharpness": 3})
    lost = replace(run.results[0], route="clairvoyance")
    routes_ = ["clairvoyance", "hybrid_rrf"]
    before = {"routes": routes_, "answers": "selected", "answered": [*routes_, 7], "session": "demo"}
    before |= {"llm mode": "record"}
    run = replace(run, results=(lost, old), settings={**run.settings, **before})
    request, gone = again(run, routes())
    assert request.routes == request.answered == ("hybrid_rrf",)
    assert (request.session, request.mode) == ("", "live")
    assert gone == ["route clairvoyance", "parameter hybrid_rrf.k", "parameter hybrid_rrf.sharpness"]
    assert engine.ask(request).results[0].status == "ok"


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(run=some_runs())
def test_any_stored_run_gives_a_request_of_known_routes(run):
    request, _ = again(run, routes())
    assert set(request.routes) <= routes().keys()
