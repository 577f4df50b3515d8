"""Compare, from stored runs and from runs made by the real engine over in-memory backends."""

import time
from dataclasses import replace

import pytest

from core.domain.errors import Unavailable
from core.domain.needs import Need
from core.domain.types import Query
from core.engine.request import MAX_QUESTION, Request
from core.routes.registry import routes
from tests.fakes import ScriptedLLM
from tests.pages.reading import html, plain, shown
from tests.runs import HOSTILE

TABS = ["Ranks", "Columns", "Answers", "Overlap", "Matches", "Cost", "Trace"]  # of many routes


def asked(app):
    """The id of the run that the address names."""
    value = app.query_params["run"]
    return value if isinstance(value, str) else value[0]


def put(visit, question, *names, **params):
    """The page on which a question was asked of the routes `names`, or of the usual ones."""
    app = visit(**{"corpus": "tiny", **params})
    if names:
        app.session_state["routes"] = list(names)
    app.text_area(key="question").set_value(question)
    return app.button(key="run").click().run()


def finish(app, engine, seconds=15):
    """Draw again when the run has ended."""
    engine.job(asked(app)).wait(seconds)
    return app.run()


def test_a_first_visit_says_what_to_do(visit):
    app = visit(corpus="tiny")
    assert "Compare the routes: queries" in html(app)
    assert app.button(key="run").label == "Run"
    assert "rs-grid" not in html(app)
    assert "Write a question above." in html(app), "and no sample question below"
    assert "This corpus has no sample questions." in shown(app)


@pytest.mark.trust
def test_a_link_reopens_a_stored_run_without_a_model(visit, engine, stored, monkeypatch):
    def broken(*_):
        raise Unavailable("a stored run must need no model and no corpus")

    monkeypatch.setattr(type(engine), "embedder", broken)
    monkeypatch.setattr(type(engine), "corpus", broken)
    app = visit(run="good", tab="Columns")
    page = html(app)
    for result in stored["good"].results:
        assert f">{result.title.replace('&', '&amp;')}</span>" in page
    assert app.text_area(key="question").value == stored["good"].query.text
    assert app.session_state["said"] == [
        {"role": "user", "text": "My box arrived crushed."},
        {"role": "assistant", "text": "Sorry to hear that."},
    ]
    assert "recorded: qwen2.5-coder-1.5b, 1.4 s then, made 2026-11-18" in page
    assert "cached: qwen2.5-coder-1.5b, 2.2 s then" in page
    assert "reused from other routes" in page


def test_a_link_to_no_run_says_so(visit):
    assert "there is no run 'nonsense'" in shown(visit(run="nonsense"))


def test_a_link_can_ask_a_question_that_was_not_asked_yet(visit):
    app = visit(q="How do I return a vase?", corpus="other")
    assert app.text_area(key="question").value == "How do I return a vase?"
    assert app.session_state["corpus"] == "other"
    assert "Corpus other is not built" in shown(app)


def test_failed_unavailable_and_late_routes_show_reason_and_steps(visit, stored):
    app = visit(run="bad")
    page = html(app)
    assert "KeyError: &#39;weights&#39;" in page
    assert "fetch it under Settings, Models" in page
    assert "out of time" in page
    assert "write hypothetical passages" in page
    assert page.count('class="rs-trouble"') == 3
    assert [button.key for button in app.button].count("retry") == 1


def test_every_view_of_a_run_draws(visit, stored):
    app = visit(run="good")
    for tab, told in {
        "Ranks": "rs-matrix-box",
        "Columns": "rs-grid",
        "Overlap": "Found by only one route",
        "Answers": "Use the Answers menu",
        "Matches": "recorded which tokens",
        "Cost": "Prices are not set",
        "Trace": "rs-trace",
    }.items():
        app.session_state["tab_many"] = tab
        app.run()
        assert told in html(app)
        assert (app.query_params.get("tab") or [TABS[0]]) in (tab, [tab])


def test_run_asks_the_first_routes_and_the_address_says_which_run(visit, engine):
    app = put(visit, "How do I send a fragile item back?")
    run_id = asked(app)
    app = finish(app, engine)
    run = engine.store.load(run_id)
    first = [route for route in routes().values() if route.first]
    assert {result.route for result in run.results} == {route.name for route in first}
    assert run.corpus == "tiny"
    page = html(app)
    assert all(f">{route.title}</span>" in page for route in first)
    assert f"of {len(first)} routes" in shown(app)


def test_routes_are_chosen_together(visit, engine):
    app = visit(corpus="tiny")
    app.button(key="choose:Without a language model").click().run()
    free = set(app.session_state["routes"])
    wanted = {
        route.name
        for route in routes().values()
        if {*route.needed(route.settle({}))} <= {Need.BM25} and not route.asks()
    }
    assert free == wanted, "nothing was made for it"
    app.button(key="choose:First choice").click().run()
    assert set(app.session_state["routes"]) == {route.name for route in routes().values() if route.first}


def test_what_the_chosen_parameters_of_a_route_lack_is_said(visit, engine):
    app = visit(corpus="tiny")
    app.session_state["routes"] = ["hybrid_rrf", "crag"]
    app.run()
    assert "cannot run" not in shown(app)
    app.session_state["parameters"] = {"crag": {"evaluator": "cross-encoder"}}
    app.run()
    assert "1 of these cannot run now" in shown(app)
    assert f"{routes()['crag'].title} cannot run with the parameters chosen: " in shown(app)


def test_more_routes_than_can_be_compared_are_refused_in_one_line(visit, engine):
    app = visit(corpus="tiny")
    app.text_area(key="question").set_value("fragile")
    app.session_state["routes"] = list(routes())[:27]
    app.button(key="run").click().run()
    assert len(app.error) == 1
    assert "27 routes are selected" in shown(app)
    assert "2 too many" in shown(app)
    app.multiselect(key="routes").set_value([]).run()
    assert "too many" not in shown(app)
    app.button(key="run").click().run()
    assert "select at least one" in shown(app)


def test_stop_keeps_what_is_finished(visit, engine):
    engine.fake_llm = ScriptedLLM(delay=30)
    app = put(visit, "Where is my parcel?")
    job = engine.job(asked(app))
    deadline = time.time() + 10
    while len(job.snapshot().results) < 4 and time.time() < deadline:
        time.sleep(0.02)
    app.run()
    assert "run" not in [button.key for button in app.button]
    assert "running" in html(app)
    app.button(key="stop").click().run()
    app = finish(app, engine)
    assert "stopped early" in shown(app)
    assert 'class="base" scope="col"' in html(app)
    assert sum(result.status == "ok" for result in job.snapshot().results) >= 4


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("", "the question is empty"),
        ("   \n", "the question is empty"),
        ("x" * 20_000, f"at most {MAX_QUESTION:,}"),
    ],
)
def test_a_question_that_cannot_be_asked_gets_one_clear_message(visit, question, message):
    app = put(visit, question)
    assert len(app.error) == 1
    assert message in shown(app)
    assert not app.exception


def test_strange_questions_run(visit, engine):
    strange = ("😀👩‍👩‍👧‍👦", "كيف أعيد المنتج؟", "a\x00b\x1b[31m\u202e", HOSTILE[0], "'; DROP TABLE runs; --")
    app = finish(put(visit, " ".join(strange), "bm25", "dense"), engine)
    assert not app.exception
    assert "2 of 2 routes, " in shown(app)


def test_a_missing_model_is_told_before_the_run_and_in_the_columns(visit, engine):
    engine.fake_llm = ScriptedLLM(
        missing="no model is here; get one with: python -m core models pull default"
    )
    app = visit(corpus="tiny")
    assert "python -m core models pull default" in html(app) + shown(app)
    app.text_area(key="question").set_value("How do I return?")
    app.button(key="run").click().run()
    app = finish(app, engine)
    assert "not available" in html(app)
    assert "rs-matrix" in html(app)


def test_a_sample_fills_question_and_conversation(visit, monkeypatch):
    from core.corpus import samples as module
    from core.domain.types import Query, Turn

    query = Query("What do I do now?", (Turn("user", "My box arrived crushed."),))
    sample = module.Sample("s1", query, "A follow-up needs its history.", ("prf_rm3", "no_such_route"))
    says = module.Sample("s2", query, "One answers, one does not.", answered=("prf_rm3", "no_such_route"))
    monkeypatch.setattr("ui.compare.ask.samples", lambda _: (sample, says))
    app = visit(corpus="tiny")
    assert "Pick a sample question below" in html(app)
    before = list(app.session_state["routes"])
    assert "prf_rm3" not in before
    app.button(key="hello:s1").click().run()
    assert app.text_area(key="question").value == "What do I do now?"
    assert app.session_state["routes"] == [*before, "prf_rm3"]
    assert app.session_state["said"] == [{"role": "user", "text": "My box arrived crushed."}]
    assert app.session_state["answers"] == "none"
    app.button(key="hello:s2").click().run()
    assert app.radio(key="answers").value == "selected"
    assert app.multiselect(key="answered").value == ["prf_rm3"]
    app.radio(key="answers").set_value("all").run()
    app.button(key="menu:s2").click().run()
    assert app.radio(key="answers").value == "all", "what was chosen stays"


# Links.


def test_a_link_to_a_run_lets_it_be_asked_again_as_it_was(visit, engine):
    request = Request(
        Query("fragile"),
        "tiny",
        ("hybrid_rrf", "bm25", "dense"),
        {"hybrid_rrf": {"k": 7}},
        "selected",
        ("dense",),
    )
    run = engine.ask(request)
    engine.store.flush()
    app = visit(corpus="tiny")
    app.selectbox(key="parameters_of").set_value("hybrid_rrf").run()
    app.number_input(key="parameter:hybrid_rrf:k:0").set_value(99).run()
    app.query_params.clear()
    app.query_params["run"] = run.id
    app.run()
    assert app.multiselect(key="routes").value == list(request.routes)
    assert app.number_input(key="parameter:hybrid_rrf:k:1").value == 7
    assert app.radio(key="answers").value == "selected"
    assert app.multiselect(key="answered").value == ["dense"]
    app.button(key="run").click().run()
    again = asked(app)
    assert again != run.id
    finish(app, engine)
    repeated = engine.store.load(again)
    assert repeated.settings == run.settings
    assert [(r.route, r.parameters) for r in repeated.results] == [
        (r.route, r.parameters) for r in run.results
    ]
    assert [r.answer for r in repeated.results] == [r.answer for r in run.results]
    app.multiselect(key="routes").set_value(["bm25"]).run()
    assert not app.exception


def test_what_this_version_lacks_is_left_out_and_told(visit, engine, stored):
    run = stored["good"]
    old = replace(run.results[0], route=f"bm19 {HOSTILE[1]}")
    parameters = {"k": 5, "bm25_weight": -3, "colour": "red"}
    fused = replace(next(r for r in run.results if r.route == "hybrid_rrf"), parameters=parameters)
    settings = {"routes": [old.route, "hybrid_rrf"], "answers": ["all"], "answered": "bm25"}
    engine.store.save(replace(run, id="old", results=(old, fused), settings=settings))
    app = visit(run="old")
    assert app.multiselect(key="routes").value == ["hybrid_rrf"]
    assert app.session_state["parameters"]["hybrid_rrf"] == {"k": 5}
    assert app.radio(key="answers").value == "none"
    told = "parameter hybrid_rrf.bm25_weight, parameter hybrid_rrf.colour"
    assert f"left out of the inputs: route {old.route}, {told}" in shown(app)
    assert "left out" not in shown(visit(run="good"))


# Runs of other processes.


def test_a_run_under_way_elsewhere_is_followed_until_it_ends(visit, engine, stored):
    run = stored["good"]
    settings = {**run.settings, "routes": [result.route for result in run.results]}
    part = replace(run, id="elsewhere", results=run.results[:3], settings=settings, status="running")
    engine.store.save(part)
    app = visit(run="elsewhere")
    assert "3 of 8 routes" in app.get("progress")[0].proto.text
    page = html(app)
    assert page.count("not finished yet") == 5
    assert "rs-matrix" in page
    assert "write_answer" not in [button.key for button in app.button]
    engine.store.save(replace(run, id="elsewhere", settings=settings))
    app.run()
    assert len(app.get("progress")) == 0
    assert "not finished yet" not in html(app)
    assert "8 of 8 routes, " in shown(app)


def test_trouble_of_the_store_is_told_on_every_page_as_text(visit, engine, monkeypatch):
    app = put(visit, "fragile", "bm25")
    engine.job(asked(app)).wait(10)
    trouble = [f"sessions cannot be stored in {HOSTILE[1]}", "1 runs could not be stored and are lost"]
    monkeypatch.setattr(type(engine.store), "warnings", property(lambda _: list(trouble)))
    for page in ("compare.py", "sessions.py"):
        app.switch_page(page).run()
        assert [plain(one.value) for one in app.sidebar.warning] == trouble


# Answers written later.


def test_an_answer_is_written_later_for_one_route(visit, engine):
    engine.fake_llm = ScriptedLLM({"answer": f"It is so [1]. {HOSTILE[0]}"})
    app = put(visit, "fragile", "bm25", "dense", tab="Answers")
    app = finish(app, engine)
    assert app.selectbox(key="answer_for").options == ["BM25", "Dense"]
    engine.fake_llm.delay = 0.5
    app.selectbox(key="answer_for").set_value("dense")
    app.button(key="write_answer").click().run()
    assert "Writing the answer for Dense: 0 s" in shown(app)
    assert "write_answer" not in [button.key for button in app.button]
    assert engine.answering(asked(app)).wait(10)
    app.run()
    page = html(app)
    assert "It is so " in page
    assert "&lt;img" in page
    assert app.selectbox(key="answer_for").options == ["BM25"]
    assert [r.answer is None for r in engine.store.load(asked(app)).results] == [True, False]
    assert [request.prompt for request in engine.fake_llm.requests] == ["evidence/1", "answer/2"]


def test_an_answer_that_cannot_be_written_is_one_message(visit, engine, stored):
    engine.fake_llm = ScriptedLLM(missing=f"no model is here {HOSTILE[0]}")
    app = visit(run="good", tab="Answers")
    app.button(key="write_answer").click().run()
    assert engine.answering("good").wait(10)
    app.run()
    assert [plain(message.value) for message in app.error] == [
        f"BM25 could not write an answer: no model is here {HOSTILE[0]}"
    ]
    assert "\\<img" in app.error[0].value
    assert engine.store.load("good") == stored["good"]
    engine.fake_llm = ScriptedLLM({"answer": "Now it can [2]."})
    app.button(key="write_answer").click().run()
    assert engine.answering("good").wait(10)
    app.run()
    assert len(app.error) == 0
    assert "Now it can " in html(app)


@pytest.fixture
def owned(engine):
    """Documents with an owner."""
    corpus = engine.fakes["tiny"]
    corpus.__dict__.pop("metadata", None)
    corpus.meta = {"returns": {"owner": "Returns desk"}, "fragile": {"owner": "Warehouse"}}
    yield engine
    corpus.__dict__.pop("metadata", None)
    corpus.meta = {}


def test_filters_hold_for_all_routes_and_stand_with_the_run(visit, owned):
    app = visit(q="How do I send an item?", corpus="tiny")
    app.session_state["routes"] = ["bm25", "hybrid_rrf"]
    app.text_area(key="filters:0").set_value("owner~return\nowner").run()
    assert "cannot read the filter 'owner'" in shown(app)
    app.text_area(key="filters:0").set_value("owner~return").run()
    app.button(key="run").click().run()
    app = finish(app, owned)
    run = owned.run(asked(app))
    assert run.settings["filters"] == ["owner~return"]
    assert {hit.passage.doc_id for one in run.results for hit in one.hits} == {"returns"}
    assert "filter owner~return" in plain(shown(app))
    again = visit(run=run.id)
    assert again.text_area(key="filters:1").value == "owner~return"


def test_what_a_route_read_of_the_question_can_be_used_for_all(visit, owned):
    app = visit(q="What do the documents of the Returns desk say?", corpus="tiny")
    app.session_state["routes"] = ["self_query"]
    app.button(key="run").click().run()
    app = finish(app, owned)
    assert "Filters read from the question: owner~Returns desk" in html(app)
    app.button(key="filters_use").click().run()
    assert app.text_area(key="filters:1").value == "owner~Returns desk"
