"""Compare with several models: a route added with another one, and what to do where a model failed."""

import pytest

from core.domain.errors import ModelFailed
from core.domain.models import ModelSettings
from core.routes.registry import use
from tests.fakes import ScriptedLLM
from tests.pages.reading import html
from tests.pages.test_compare import asked, finish


@pytest.fixture
def two_models(engine):
    """The settings name the models `a` and `b`."""
    before = engine.settings
    models = {name: ModelSettings(base_url="http://127.0.0.1:9/v1", model=f"model-{name}") for name in "ab"}
    engine.settings = before.model_copy(update={"models": models})
    use(engine.settings)
    yield engine
    use(before)


def test_a_route_is_added_with_another_model(visit, two_models):
    app = visit(corpus="tiny")
    app.session_state["routes"] = ["bm25", "hyde"]
    app.run()
    assert app.selectbox(key="add_model").options == ["a", "b"]
    app.selectbox(key="add_model").set_value("b").run()
    app.button(key="add_with_model").click().run()
    assert app.session_state["routes"] == ["bm25", "hyde", "hyde@b"]
    assert any("(b)" in option for option in app.multiselect(key="routes").options)
    assert not app.exception


def test_a_failed_model_is_told_with_retry_and_the_way_to_settings(visit, engine):
    engine.fake_llm = ScriptedLLM({"hyde": failing})
    app = visit(corpus="tiny")
    app.session_state["routes"] = ["bm25", "hyde"]
    app.text_area(key="question").set_value("How do I return?")
    app.button(key="run").click().run()
    first = asked(app)
    app = finish(app, engine)
    assert "the service is down" in html(app)
    assert [link.proto.label for link in app.main.get("page_link")].count("Settings") == 1

    engine.fake_llm = ScriptedLLM()
    app.button(key="retry").click().run()
    again = asked(app)
    assert again != first
    app = finish(app, engine)
    assert [one.status for one in engine.store.load(again).results] == ["ok", "ok"]
    assert "rs-trouble" not in html(app)
    assert "retry" not in [one.key for one in app.button]


def failing(_request):
    raise ModelFailed("the service is down")
