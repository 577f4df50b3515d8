"""Roles: what each may do, checked at the operations, whoever calls them; and what is kept of who did it."""

import threading
from dataclasses import replace

import pytest

from core.backends import admission
from core.backends.base import Completion, LLMRequest, Message
from core.backends.llm.cache import CompletionCache
from core.backends.llm.model import CachedLLM
from core.backends.llm.recordings import Recordings
from core.corpus import builds
from core.domain import people, settings_file
from core.domain import settings as settings_module
from core.domain.background_job import BackgroundJob, Jobs
from core.domain.errors import BadInput, BudgetSpent, NotAllowed
from core.domain.people import DEEDS, MACHINE, NOBODY, ROLES, Person, acting
from core.domain.settings import Settings
from core.domain.types import ASKED_BY, Query, Turn
from core.engine.request import Request
from core.evaluation.dataset import Question
from core.evaluation.labels import desk, exchange
from core.store import Store, presets
from core.store.labels import Judgement
from tests.fakes import FakeEngine
from tests.runs import make_run
from tests.stored import POOLED

pytestmark = pytest.mark.trust
ANN, BOB = Person("ann@example.org", "viewer"), Person("bob@example.org", "labeller")
CAT, DAN = Person("cat@example.org", "editor"), Person("dan@example.org", "owner")


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "routescope.sqlite")
    people.keep_in(made)
    yield made
    people._ledgers.clear()
    made.close()


@pytest.fixture
def server(monkeypatch):
    """A server with a login: a thread acts for nobody until somebody is known to be behind it."""
    monkeypatch.setattr(people, "_find", [lambda: NOBODY])


def in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ROUTESCOPE_HOME", str(tmp_path))
    return tmp_path


def run_of(person, id="hers"):
    return replace(make_run(mishaps=False, run_id=id), settings={ASKED_BY: person.account})


def test_each_role_may_what_those_before_it_may():
    for deed, (least, _) in DEEDS.items():
        may = [role for role in ROLES if Person("x", role).may(deed)]
        assert may == list(ROLES[ROLES.index(least) :])
        assert not NOBODY.may(deed)
        assert MACHINE.may(deed)


def test_without_a_login_everybody_is_the_machines_owner_and_with_one_nobody_is(server):
    assert people.current() == NOBODY
    with pytest.raises(NotAllowed, match="who is not signed in has no role"):
        people.require("look")
    with acting(ANN):
        assert people.require("look") == ANN
        with pytest.raises(NotAllowed, match="labelling needs the role labeller or a higher one; ann"):
            people.require("label")


def test_another_thread_acts_for_nobody_unless_it_is_told(server):
    seen = []
    look = lambda: seen.append(people.current())  # noqa: E731
    with acting(DAN):
        told = people.by_me(look)
        in_a_thread(look)
    in_a_thread(told)
    assert seen == [NOBODY, DAN]


@pytest.mark.parametrize(
    ("who", "role"),
    [
        ("ann@example.org", "owner"),
        ("bob@example.org", "viewer"),
        ("cat@other.example", "labeller"),
        ("eve@evil.example@example.org", "viewer"),
        ("ann", "labeller"),
    ],
)
def test_an_accounts_own_role_goes_before_its_domains(who, role):
    roles = {"Ann@Example.org ": "owner", "@example.org": "viewer", "*": "labeller"}
    assert people.role_of(who, roles) == role
    assert people.role_of("x@y", {"@z": "owner"}) is None


@pytest.mark.parametrize("given", ["", "  ", "a" * 65, "model:x", "@example.org", "a\x00b", None])
def test_what_is_no_account_is_refused(given):
    with pytest.raises(BadInput, match="account"):
        people.account(given)


# Runs


def test_a_run_is_its_makers_until_shared(store, server):
    store.save(run_of(BOB))
    store.save(make_run(mishaps=False, run_id="everybodys"))
    assert store.flush()
    note, export = lambda id: store.note(id, "x"), lambda id: store.export_bundle([id])
    with acting(BOB):
        assert {row.id for row in store.sessions()} == {"hers", "everybodys"}
        assert store.load("hers").id == "hers"
    for other in (ANN, CAT, DAN):
        with acting(other):
            assert [row.id for row in store.sessions()] == ["everybodys"]
            assert (store.count(), store.ids()) == (1, ["everybodys"])
            assert set(store.traces().results) == {"everybodys"}
            for ask in (store.load, store.session, store.delete, store.share, note, export):
                with pytest.raises((BadInput, NotAllowed)):
                    ask("hers")
    with acting(BOB):
        store.tag("hers", ["mine"])
        store.share("hers")
    with acting(ANN):
        assert store.session("hers").maker == BOB.account
        for change in (store.delete, store.share, lambda id: store.tag(id, ["x"])):
            with pytest.raises(NotAllowed):
                change("hers")
    with acting(CAT):
        store.note("hers", "an editor may")
        with pytest.raises(NotAllowed, match="deleting what others made"):
            store.delete("hers")
    with acting(DAN):
        store.delete("hers")
        store.undelete("hers")
    with acting(NOBODY):
        assert store.sessions() == []
        with pytest.raises(NotAllowed):
            store.done()
    with acting(MACHINE):
        told = [(one.who, one.deed) for one in reversed(store.done())]
    deeds = [(BOB, "run tagged"), (BOB, "run shared"), (CAT, "note written"), (DAN, "run deleted")]
    assert told == [(who.account, deed) for who, deed in (*deeds, (DAN, "run restored"))]


def test_a_run_that_is_saved_again_keeps_its_maker_and_stays_shared(store):
    store.save(run_of(BOB))
    with acting(BOB):
        store.share("hers")
    store.save(replace(run_of(CAT), wall_ms=1.0))
    assert store.flush()
    row = store.session("hers")
    assert (row.maker, row.private) == (BOB.account, False)


def test_whoever_a_bundle_claims_asked_its_maker_is_who_imports_it(store, tmp_path):
    store.save(run_of(DAN))
    assert store.flush()
    data = store.export_bundle(["hers"])
    elsewhere = Store(tmp_path / "other.sqlite")
    with acting(CAT):
        assert elsewhere.import_bundle(data) == ["hers"]
        assert (elsewhere.session("hers").maker, elsewhere.session("hers").private) == (CAT.account, False)
    with acting(BOB), pytest.raises(NotAllowed):
        elsewhere.import_bundle(data)
    elsewhere.close()


def test_a_remembered_session_is_its_first_speakers(store):
    with acting(BOB):
        store.remember("demo", [Turn("user", "mine")])
        assert [turn.text for turn in store.recall("demo")] == ["mine"]
        assert [row.session for row in store.sessions_remembered()] == ["demo"]
    with acting(CAT):
        for ask in (store.recall, store.forget, lambda name: store.remember(name, [Turn("user", "x")])):
            with pytest.raises(BadInput, match="another person's"):
                ask("demo")
        assert store.sessions_remembered() == ()


# Labels, presets, playlists


def make_set(store):
    desk.create(store, "set", "support", [Question("q", Query("?"))])
    desk.add_to_pool(store, "set", {"q": [POOLED]})


def test_labels_are_their_accounts(store):
    with acting(BOB), pytest.raises(NotAllowed, match="changing this needs the role editor"):
        make_set(store)
    with acting(CAT):
        make_set(store)
    grade = Judgement("q", POOLED.passage.id, BOB.account, "person", "grade", 3)
    forged = [replace(grade, annotator="me"), replace(grade, source="adjudication")]
    forged += [replace(grade, annotator=CAT.account, source=source) for source in ("adjudication", "import")]
    with acting(BOB):
        desk.judge(store, "set", grade)
        for one in (*forged, replace(grade, created="2020-01-01T00:00:00Z")):
            with pytest.raises(NotAllowed):
                desk.judge(store, "set", one)
        with pytest.raises(NotAllowed):
            desk.undo(store, "set", CAT.account)
        with pytest.raises(NotAllowed, match="exporting"):
            exchange.table(desk.load(store, "set"))
    with acting(ANN), pytest.raises(NotAllowed):
        desk.judge(store, "set", replace(grade, annotator=ANN.account))
    with acting(Person("eve@example.org", "editor")), pytest.raises(NotAllowed, match="what others made"):
        desk.set_deleted(store, "set", True)
    with acting(CAT):
        assert exchange.qrels(desk.load(store, "set")) == b"q 0 a.md:0-9 3\n"
        desk.set_deleted(store, "set", True)
    assert store.maker("label set deleted", "set") == CAT.account


CLAIMED = (
    "question_id,passage_id,annotator,source,kind,grade,note,created\r\n"
    "q,a.md:0-9,bob@example.org,person,grade,0,no,2020-01-01T00:00:00Z\r\n"
    "q,a.md:0-9,ann@example.org,adjudication,grade,3,,2020-01-02T00:00:00Z\r\n"
    "q,a.md:0-9,model:judge,model,grade,1,,\r\n"
)


def _imported(store, who):
    with acting(CAT):
        make_set(store)
    with acting(who):
        assert exchange.import_table(store, "set", CLAIMED.encode(), "x.csv", "eve").added == 1
        assert exchange.import_table(store, "set", CLAIMED.encode(), "x.csv", "eve").added == 0
        assert exchange.import_qrels(store, "set", b"q 0 a.md:0-9 3\n", "x.qrels", "eve", {}).added == 0
    (one,) = desk.load(store, "set").judgements
    return one


@pytest.mark.trust
def test_imported_rows_are_their_importers_and_whoever_they_name_is_a_note(store):
    one = _imported(store, CAT)
    assert (one.annotator, one.source, one.kind, one.grade) == (CAT.account, "import", "grade", 3)
    assert not one.created.startswith("2020")
    for claimed in (BOB.account, ANN.account, "model:judge", "2020-01-01", "adjudication", "no"):
        assert claimed in one.note


@pytest.mark.trust
@pytest.mark.parametrize("people_", [{"proxy_header": "X-User"}, {"team": {"roles": {"*": "viewer"}}}])
def test_the_command_line_speaks_for_nobody_where_people_have_accounts(store, monkeypatch, people_):
    monkeypatch.setattr(settings_module, "current", lambda: settings_module.load(**people_))
    one = _imported(store, MACHINE)
    assert (one.annotator, one.source, one.grade) == ("import", "import", 3)
    assert BOB.account in one.note


@pytest.mark.trust
def test_who_changes_what_another_made_does_not_become_its_maker(store):
    preset = presets.Preset("Careful", "support", {"hybrid_rrf": {"k": 10}})
    other = Person("eve@example.org", "editor")
    save, save_list = lambda: presets.save(store, preset), lambda: store.save_playlist("Demo", [])
    deletes = (lambda: presets.delete(store, "Careful"), lambda: store.delete_playlist("Demo"))
    with acting(CAT):
        save()
        save_list()
        save()
    for person in (BOB, other):
        for change in (save, save_list, *deletes):
            with acting(person), pytest.raises(NotAllowed):
                change()
    with acting(DAN):  # an owner may, and does not become the maker either
        save()
        deletes[1]()
    begun = Jobs()
    with acting(CAT):
        begun.begin(Work, 1, Work).wait(10)
    with acting(other):
        begun.begin(Work, 2, Resumed).wait(10)
        begun.begin(Work, 3, lambda: Resumed("of the command line")).wait(10)
    assert store.maker("work begun", "it") == CAT.account
    assert store.maker("work begun", "of the command line") == ""
    with acting(CAT):
        presets.delete(store, "Careful")
    with acting(other):  # the name is free again
        presets.save(store, preset)
        presets.delete(store, "Careful")


# Settings and roles


def test_settings_and_roles_are_the_owners(home, store, monkeypatch):
    for person in (ANN, BOB, CAT):
        with acting(person):
            with pytest.raises(NotAllowed, match="changing settings"):
                settings_file.write({"llm": "x"}, home)
            with pytest.raises(NotAllowed):
                settings_file.write_role(person.account, "owner", home)
    with acting(DAN):
        settings_file.write_role(DAN.account, "owner", home)
        settings_file.write_role("@Example.org", "viewer", home)
        assert settings_module.load().team.roles == {DAN.account: "owner", "@example.org": "viewer"}
        for who, role, said in (
            (DAN.account, None, "no longer be an owner"),
            (DAN.account, "editor", "no longer be an owner"),
            ("x@y", "boss", "role 'boss'"),
        ):
            with pytest.raises(BadInput, match=said):
                settings_file.write_role(who, role, home)
        for name in ("oidc_url", "proxy_header", "cookie_secret", "team"):
            with pytest.raises(BadInput, match="cannot be changed here"):
                settings_file.write({name: "x"}, home)
        settings_file.write({"llm": "tiny"}, home)
    assert [(one.deed, one.about) for one in store.done()][:1] == [("settings", "llm")]
    (home / "routescope.toml").unlink()
    monkeypatch.setenv("ROUTESCOPE_TEAM", '{"roles": {"eve@example.org": "owner"}}')
    assert settings_module.load().team.roles == {}, "they are in the file alone"


# Models and work in the background


class Endpoint:
    model = identity = endpoint = "fake"
    local = False

    def __init__(self):
        self.calls = 0

    def status(self):
        return None

    def complete(self, request, *, timeout, cancel, written=None):
        self.calls += 1
        return Completion("yes", "fake", "stop", 1.0, 60, 40)


@pytest.fixture
def model(tmp_path, store):
    return CachedLLM(
        Endpoint(),
        cache=CompletionCache(tmp_path / "llm.sqlite"),
        recordings=Recordings(tmp_path),
        mode="live",
        daily=150,
    )


def call(model, text, asker=None):
    request = LLMRequest("p/1", (Message("user", text),), 5)
    with (asker or admission.Asker()).asking():
        return model.complete(request, timeout=5, cancel=threading.Event())


def test_tokens_are_counted_by_person_and_day_and_end_at_the_budget(model, store):
    with acting(BOB):
        call(model, "one")
        call(model, "one")  # from the cache: nothing is used
        assert store.spent(BOB.account) == 100
        call(model, "two")  # begun below the budget
        with pytest.raises(
            BudgetSpent, match=r"bob@example\.org has used 200 of the 150 model tokens of today"
        ):
            call(model, "three")
        assert call(model, "two").source == "cache"
    with acting(CAT):
        call(model, "three")
    with acting(ANN), pytest.raises(NotAllowed, match="asking a language model needs the role labeller"):
        call(model, "four")
    call(model, "four")  # the machine itself has no budget
    assert store.spent_today() == {BOB.account: 200, CAT.account: 100}
    assert model.backend.calls == 4


def test_tokens_are_those_of_who_asked_whatever_thread_calls(model, store, server):
    with acting(BOB):
        asker = admission.Asker()
    in_a_thread(lambda: call(model, "one", asker))
    assert store.spent(BOB.account) == 100
    with pytest.raises(NotAllowed, match="not signed in"):
        call(model, "two")


class Work(BackgroundJob):
    kind = "work"

    def __init__(self, title="it"):
        super().__init__(title)
        self.seen = None

    def _do(self):
        self.seen = people.current()


class Resumed(Work):
    resumes = True


def test_work_in_the_background_is_that_of_who_began_it(store, server):
    begun = Jobs()
    with acting(BOB), pytest.raises(NotAllowed):
        begun.begin(Work, 1, Work)
    with acting(CAT):
        job = begun.begin(Work, 1, Work)
    job.wait(5)
    assert job.seen == CAT
    with acting(BOB), pytest.raises(NotAllowed):
        job.cancel()
    with acting(DAN):
        job.cancel()
    with acting(MACHINE):
        assert [(one.who, one.deed) for one in store.done()] == [(CAT.account, "work begun")]


def test_viewers_ask_routes_without_a_model_and_their_runs_are_theirs(tmp_path, store, server):
    engine = FakeEngine(tmp_path, store=store)
    with acting(ANN):
        with pytest.raises(NotAllowed, match="asking a language model"):
            engine.start(Request(Query("How?"), "tiny", ("hyde",)))
        job = engine.start(Request(Query("How?"), "tiny", ("bm25",)))
        run = job.wait(60)
    assert run.settings[ASKED_BY] == ANN.account
    with acting(BOB):
        assert engine.job(run.id) is None
        with pytest.raises(BadInput, match="there is no run"):
            engine.run(run.id)
    with acting(NOBODY), pytest.raises(NotAllowed):
        engine.start(Request(Query("How?"), "tiny", ("bm25",)))


def test_files_of_the_machine_are_the_owners(tmp_path, server):
    settings = Settings(home=tmp_path / "home")
    (tmp_path / "secret").mkdir()
    uploaded = settings.home / "uploads" / "mine"
    uploaded.mkdir(parents=True)
    (uploaded / "a.md").write_text("# A\n\nText of mine.\n")
    with acting(CAT):
        with pytest.raises(NotAllowed, match="reading files of the server's machine needs the role owner"):
            builds.start("secret", tmp_path / "secret", settings)
        build = builds.start("mine", uploaded, settings)
        build.cancel()
        assert build.wait(30)
