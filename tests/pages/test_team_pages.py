"""What pages show to people with roles: what is not allowed is disabled, says why, and is refused."""

import pytest

from core.domain import people
from core.domain.people import NOBODY, Person, acting
from core.domain.types import ASKED_BY, Passage, Query
from core.evaluation.dataset import Question
from core.evaluation.labels import desk
from core.store.labels import Pooled
from tests.pages.reading import plain, shown
from tests.runs import make_run
from ui.app import account

POOLED = Pooled(Passage("a.md:0-8", "a.md", "Title", "48 hours", 0, 8), (("bm25", 1),))
CAT = Person("cat@example.org", "editor")


@pytest.fixture
def sign_in(monkeypatch, engine):
    """Be somebody on every page from now on."""
    assert account.person  # which names who is behind a thread when it is imported
    monkeypatch.setattr(people, "_ledgers", [engine.store])

    def be(role, name="ann@example.org"):
        monkeypatch.setattr(people, "_find", [lambda: Person(name, role)])

    return be


def save(engine, person, id):
    run = make_run(mishaps=False, run_id=id, corpus="tiny")
    run.settings[ASKED_BY] = person
    engine.store.save(run)
    assert engine.store.flush()


def html(app):
    return "\n".join(element.proto.body for element in app.get("html"))


def test_nobody_sees_no_page(visit, sign_in, stored, monkeypatch):
    monkeypatch.setattr(people, "_find", [lambda: NOBODY])
    for page in (None, "sessions.py", "settings.py"):
        app = visit(page)
        assert not app.dataframe
        assert not app.text_area
        assert not app.sidebar.expander
    assert "named no account" in plain(app.error[0].value)
    sign_in(None)
    app = visit("sessions.py")
    assert not app.dataframe
    assert "signed in as ann@example.org, which has no role here" in plain(app.warning[0].value)


def test_the_sidebar_names_account_role_and_tokens(visit, sign_in, engine, monkeypatch):
    sign_in("labeller")
    object.__setattr__(engine.settings, "daily_tokens", 5000)
    engine.store.spend("ann@example.org", 1234)
    app = visit()
    assert '<b>ann@example.org</b><span class="dim"> labeller</span>' in html(app)
    assert "1,234 of 5,000 model tokens used today" in "\n".join(one.value for one in app.sidebar.caption)


def test_viewers_begin_with_routes_that_ask_no_model_and_others_are_refused(visit, sign_in, engine):
    from core.routes.registry import routes
    from ui.app import state

    sign_in("viewer")
    app = visit(q="return an item", corpus="tiny")
    chosen = app.session_state[state.ROUTES]
    assert chosen
    assert not [name for name in chosen if routes()[name].asks()]
    app.session_state[state.ROUTES] = ["hyde"]
    app.run()
    app.button(key="run").click().run()
    assert "asking a language model needs the role labeller" in plain(app.error[0].value)


@pytest.mark.parametrize(("role", "may"), [("viewer", False), ("labeller", True)])
def test_labelling_is_disabled_for_viewers_and_saved_under_the_account(visit, sign_in, engine, role, may):
    desk.create(engine.store, "set", "tiny", [Question("q", Query("?"))])
    desk.add_to_pool(engine.store, "set", {"q": [POOLED]})
    sign_in(role)
    app = visit("label.py", set="set")
    key = next(one for one in app.button if (one.key or "").startswith("label_grade_3"))
    assert key.disabled is not may
    assert not [one for one in app.text_input if one.key == "label_annotator"]
    if may:
        key.click().run()
        (said,) = desk.load(engine.store, "set").judgements
        assert (said.annotator, said.grade) == ("ann@example.org", 3)
    else:
        assert "labelling needs the role labeller" in plain(shown(app)).lower()
        assert "needs the role" in key.help


def test_runs_are_listed_to_who_sees_them_with_who_asked(visit, sign_in, engine):
    save(engine, "ann@example.org", "hers")
    save(engine, "cat@example.org", "cats")
    with acting(CAT):
        engine.store.share("cats")
    save(engine, "dan@example.org", "dans")
    sign_in("viewer")
    table = visit("sessions.py").dataframe[0].value
    assert list(table["By"]) == ["cat@example.org", "ann@example.org"] or list(table["By"]) == [
        "ann@example.org",
        "cat@example.org",
    ]
    assert set(table["Seen by"]) == {"only you", "all"}
    assert "there is no run" in plain(visit(run="dans").error[0].value)


def test_a_run_is_shared_and_taken_back_on_compare(visit, sign_in, engine):
    save(engine, "ann@example.org", "hers")
    sign_in("viewer")
    app = visit(run="hers")
    app.session_state["link_menu"] = True
    assert "Only you see this run." in shown(app.run())
    app.button(key="sharing_button").click().run()
    assert "everybody here sees it" in shown(app)
    sign_in("viewer", "bob@example.org")
    his = visit(run="hers")
    his.session_state["link_menu"] = True
    assert "Shared by ann@example.org." in plain(shown(his.run()))
    sign_in("viewer")
    app.button(key="sharing_button").click().run()
    assert "Only you see this run." in shown(app)


def test_settings_are_the_owners(visit, sign_in):
    sign_in("editor")
    app = visit("settings.py", tab="Settings")
    assert "Changing settings needs the role owner; ann@example.org is editor." in plain(app.info[0].value)
    saves = [one for one in app.button if one.label == "Save"]
    assert saves
    assert all(one.disabled for one in saves)
    sign_in("owner")
    assert not all(one.disabled for one in visit("settings.py", tab="Settings").button if one.label == "Save")


def test_a_callback_that_is_refused_is_one_line(visit, sign_in, engine):
    from core.store import presets

    with acting(CAT):
        presets.save(engine.store, presets.Preset("Careful", "tiny", {"hybrid_rrf": {"k": 10}}))
        engine.store.save_playlist("Demo", [])
    sign_in("editor")
    app = visit("present.py")
    app.button(key="delete_playlist").click().run()
    assert "deleting what others made needs the role owner" in plain(app.error[0].value)
    assert [one.name for one in engine.store.playlists()] == ["Demo"]


def test_roles_are_shown_and_changed_by_owners(visit, sign_in, engine, monkeypatch):
    from core.domain import settings as settings_module
    from core.engine import engine as engine_module

    monkeypatch.setenv("ROUTESCOPE_HOME", str(engine.settings.home))
    monkeypatch.setattr(engine_module, "reload_engine", lambda: None)
    object.__setattr__(engine.settings, "oidc_url", "https://id.example")
    sign_in("editor")
    app = visit("settings.py", tab="People")
    assert not [one for one in app.text_input if one.key == "people_who"]
    sign_in("owner")
    app = visit("settings.py", tab="People")
    app.text_input(key="people_who").set_value("Bob@Example.org")
    app.selectbox(key="people_as").set_value("labeller")
    app.button(key="people_save").click().run()
    assert "would no longer be an owner" in plain(app.error[0].value)  # nobody is one in the file yet
    app.text_input(key="people_who").set_value("ann@example.org")
    app.selectbox(key="people_as").set_value("owner")
    app.button(key="people_save").click().run()
    assert not app.error
    assert settings_module.load().team.roles == {"ann@example.org": "owner"}
    assert "role" in html(app)
    assert "ann@example.org: owner" in html(app)


def test_without_a_login_nothing_is_said_of_accounts(visit, stored):
    app = visit(run="good")
    assert "rs-account" not in html(app).replace(".rs-account", "")
    assert "By" not in visit("sessions.py").dataframe[0].value
    assert "There is no login" in plain(visit("settings.py", tab="People").info[0].value)
