"""Settings, the tour, and the sheet of shortcuts."""

import pytest

from core.backends.llm import load_llm
from core.corpus import builds
from core.corpus.samples import samples
from core.domain import settings as settings_module
from core.domain.program import COMMAND
from core.engine import engine as engine_module
from core.engine.doctor import HealthCheck
from tests.loopback import http, loopback
from tests.pages.reading import address, html, plain, shown
from ui.app import corpora, tour, visitors


@pytest.fixture
def home(engine, monkeypatch):
    monkeypatch.setenv("ROUTESCOPE_HOME", str(engine.settings.home))
    settings_module.current.cache_clear()
    reloaded = []
    monkeypatch.setattr(engine_module, "reload_engine", lambda: reloaded.append(settings_module.load()))
    yield reloaded
    settings_module.current.cache_clear()


def test_health_names_what_works_and_how_to_mend_the_rest(visit):
    app = visit("settings.py")
    body = html(app)
    assert "packages" in body
    assert "python" in body
    assert "build it on the page Corpus" in body
    assert COMMAND not in body
    assert not app.button(key="mend:web").disabled


def test_health_builds_a_corpus_and_frees_space(visit, engine, monkeypatch):
    built = []
    monkeypatch.setattr(corpora, "again", built.append)
    found = [
        HealthCheck("corpus x", "warning", "not built", f"run: {COMMAND} index x", "x"),
        HealthCheck("space", "warning", "much is unused", f"free it: {COMMAND} sessions vacuum"),
    ]
    app = visit("settings.py")
    app.session_state["checks_found"] = found
    app.run().button(key="mend:x").click().run()
    assert built == ["x"]
    assert "press Free unused space" in html(app)
    app.button(key="mend_space").click().run()
    assert "Freed 0 B" in shown(app)
    assert "mend:x" not in [one.key for one in app.button]  # everything was checked again


def test_endpoints_are_listed_and_one_is_tried(visit, engine):
    app = visit("settings.py", tab="Endpoints")
    assert "Not tested since" in html(app)
    embedder = f"embedder {engine.settings.embedder}"
    app.button(key=f"try:{embedder}").click().run()
    builds.get(f"try {embedder}").wait(10)
    app.run()
    assert "dimensions" in html(app)


def test_models_and_shortcuts_are_told(visit):
    models = html(visit("settings.py", tab="Models"))
    assert "qwen2.5-coder-1.5b" in models
    assert "Apache-2.0" in models
    assert "Ctrl + Enter" in html(visit("help.py", tab="Shortcuts"))


def widget(app, kind, name):
    return next(one for one in app.get(kind) if (one.key or "").startswith(f"set:{name}:"))


def test_a_setting_is_saved_and_in_force(visit, home):
    app = visit("settings.py", tab="Settings")
    widget(app, "number_input", "route_max_calls").set_value(7)
    save = next(
        button
        for button in app.button
        if "Budgets" in (button.key or "") or "Budgets" in button.proto.form_id
    )
    save.click().run()
    assert "route_max_calls" in shown(app)
    assert home[-1].route_max_calls == 7


@pytest.mark.trust
def test_a_secret_is_never_on_the_page(visit, home, engine):
    from core.domain import settings_file

    settings_file.write({"llm_api_key": "sk-very-secret"}, engine.settings.home)
    app = visit("settings.py", tab="Settings")
    assert widget(app, "text_input", "llm_api_key").value in ("", None)
    assert "very-secret" not in repr(app.main) + html(app) + shown(app)


def test_a_wrong_value_gets_one_clear_message(visit, home):
    app = visit("settings.py", tab="Settings")
    widget(app, "text_input", "web_search").set_value("ftp://nowhere")
    next(
        b for b in app.button if "Web search" in (b.key or "") or "Web search" in b.proto.form_id
    ).click().run()
    assert "web_search" in "\n".join(error.value for error in app.error).replace("\\", "")
    assert home == []


@pytest.mark.parametrize("reached", [True, False])
def test_an_address_of_ones_own_network_is_set_where_nobody_else_can(visit, home, monkeypatch, reached):
    monkeypatch.setattr(visitors, "exposed", lambda: reached)
    app = visit("settings.py", tab="Settings")
    widget(app, "text_input", "web_search").set_value("http://10.0.0.7:8080")
    next(one for one in app.button if "Web search" in one.proto.form_id).click().run()
    said_ = plain("".join(error.value for error in app.error))
    assert ("must be public" in said_) is reached
    assert [one.web_search for one in home] == ([] if reached else ["http://10.0.0.7:8080"])


def test_the_tour_leads_through_the_pages_and_can_be_skipped(visit):
    app = visit()
    app.button(key="take_tour").click().run()
    last = len(tour.STEPS) - 1
    for number, step in enumerate(tour.STEPS):
        assert f"{number + 1} of {last + 1} · {step.title}" in shown(app)
        assert address(app, "view") == (step.view or None)
        assert not app.exception
        app.button(key="tour_next" if number < last else "tour_done").click().run()
    assert app.session_state["tour_at"] is None
    app = visit()
    app.button(key="take_tour").click().run()
    app.button(key="tour_skip").click().run()
    assert app.session_state["tour_at"] is None


def test_the_tour_puts_a_sample_into_an_empty_box_and_leaves_a_written_question(visit, monkeypatch):
    monkeypatch.setattr(tour, "samples", lambda _: samples("support"))
    app = visit()
    app.button(key="take_tour").click().run()
    assert app.text_area[0].value == samples("support")[0].query.text


def test_a_model_that_did_not_answer_its_test_is_never_said_to_work(visit, engine):
    with loopback(http('{"error": "no entry"}', status="401 Unauthorized")) as server:
        engine.settings = engine.settings.model_copy(update={"llm_base_url": f"{server.url}/v1", "llm": "m"})
        engine.fake_llm = load_llm(engine.settings)
        app = visit("settings.py", tab="Endpoints")
        app.button(key="try:chat model llm").click().run()
        builds.get("try chat model llm").wait(10)
    app = visit("settings.py")
    assert "The language model cannot be asked" in shown(app)
    assert "did not answer when it was last tested" in "\n".join(
        plain(one.value) for one in app.sidebar.warning
    )
