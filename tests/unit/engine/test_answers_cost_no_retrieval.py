"""What was found stands, whatever becomes of the answer."""

import json

import pytest

from core.cli import main
from core.domain import settings as settings_module
from core.domain.errors import ModelFailed, ModelTimedOut, Unavailable
from core.domain.types import Query
from core.engine import engine as engine_module
from core.engine.request import Request
from core.store import Store
from tests.fakes import FakeEngine, ScriptedLLM
from ui.components.citations import answers, note

QUESTION = Query("Is a crushed box refunded?")
ROUTES = ("bm25", "dense", "hybrid_rrf", "hybrid_linear", "mmr", "dedupe", "parent", "rerank", "self_correct")
FAULTS = (
    ModelFailed("the endpoint answered HTML"),
    ModelFailed("the endpoint answered with status 503"),
    ModelTimedOut("no answer within 60 s"),
    Unavailable("no recording of this answer"),
)


def broken(tmp_path, fault, **settings):
    replies = dict.fromkeys(("answer", "evidence"), fault)
    return FakeEngine(tmp_path, llm=ScriptedLLM(replies), **settings)


@pytest.mark.trust
@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_each_route_keeps_its_ranking(tmp_path, fault):
    engine = broken(tmp_path, fault)
    plain = engine.ask(Request(QUESTION, "tiny", ROUTES[:-1])).results
    asked = engine.ask(Request(QUESTION, "tiny", ROUTES, answers="all")).results
    for result, without in zip(asked, plain, strict=False):
        assert (result.status, result.error) == ("ok", None)
        assert result.hits == without.hits
        assert (without.answer_status, without.answer_error) == ("not asked", None)
        assert result.hits
        assert (result.answer, result.answer_status) == (None, "failed")
        assert str(fault) in result.answer_error
        assert any(span.error for span in result.spans), "the step that failed says so"
    own = asked[-1]
    assert (own.status, own.answer_status, bool(own.hits)) == ("ok", "failed", True)


def test_a_budget_that_is_spent_in_the_answer_leaves_the_ranking(tmp_path):
    engine = FakeEngine(tmp_path, llm=ScriptedLLM({"evidence": "0.9"}), route_max_calls=1)
    (result,) = engine.ask(Request(QUESTION, "tiny", ("hybrid_rrf",), answers="all")).results
    assert (result.status, bool(result.hits), result.answer_status) == ("ok", True, "failed")
    assert "budget of 1 model calls" in result.answer_error


def test_the_page_says_why_there_is_no_answer(tmp_path):
    engine = broken(tmp_path, ModelFailed("the endpoint answered <b>HTML</b>"))
    run = engine.ask(Request(QUESTION, "tiny", ("bm25",), answers="all"))
    for markup in (answers(run), note(run, run.results[0])):
        assert "The answer could not be written: the endpoint answered &lt;b&gt;HTML&lt;/b&gt;" in markup


def test_the_command_line_tells_both(tmp_path, monkeypatch, capsys):
    engine = broken(tmp_path, FAULTS[0])
    engine.store = Store(tmp_path / "runs.sqlite")
    monkeypatch.setattr(settings_module, "current", lambda: engine.settings)
    monkeypatch.setattr(engine_module, "shared_engine", lambda: engine)
    asked = ["ask", QUESTION.text, "--corpus", "tiny", "--routes", "bm25", "--answers", "all", "--json"]
    assert main(asked) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert (result["status"], result["answer_status"]) == ("ok", "failed")
    assert "HTML" in result["answer_error"]
    assert result["hits"]
    (id,) = engine.store.ids()
    assert engine.store.load(id).results[0].answer_error == result["answer_error"]
