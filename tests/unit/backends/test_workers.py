"""Work given to Dask's workers: what comes back is what one process gives, whoever dies meanwhile."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from core.backends.base import LLMRequest, Message
from core.backends.workers import pool as pool_module
from core.backends.workers.place import WorkPlace, checked, place
from core.backends.workers.pool import Pool, header, reached
from core.cli import main
from core.corpus import index
from core.corpus.embeddings import Checkpoint
from core.corpus.enrichments import store
from core.corpus.helpers import Helpers
from core.domain import people, settings_file
from core.domain.errors import BadInput, BudgetSpent, Cancelled, NotAllowed, Unavailable
from core.domain.pipelines import Pipeline
from core.domain.settings import load
from core.engine import doctor
from core.engine.engine import Engine
from core.evaluation import experiment_store
from core.evaluation.experiment import perform, prepare
from core.evaluation.outcome import JOURNAL
from core.evaluation.runner import Plan, Spread
from core.evaluation.spec import Spec
from core.evaluation.tuning import sweep
from core.evaluation.tuning.sweep_subject import subject
from core.store import Store
from tests import tiny
from tests.loopback import hold, http, loopback
from tests.until import until

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.enable_socket]
pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[3]
QUICK = ("bm25", "dense", "hybrid_rrf", "mmr")
MORE = "hybrid_linear dedupe compress iterative memory memory_rerank rerank contextual_headings"
TIMES = ("ms", "began", "run", "machine", "host")  # what differs between two runs of one process
REPLY = http(
    json.dumps(
        {
            "model": "fake",
            "choices": [{"message": {"content": "About parcels."}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 3},
        }
    )
)


@pytest.fixture(scope="module", autouse=True)
def _scratch(tmp_path_factory):
    """Where processes that are killed here leave their files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("scratch")))
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with the corpus `support` and an enrichment."""
    settings = load(home=tmp_path_factory.mktemp("home"), first_start="off")
    store.build("headings", index.build(None, "support", settings=settings), settings=settings)
    return settings


@pytest.fixture(scope="module")
def engine(home):
    """This process' engine, with its model loaded."""
    made = Engine(home)
    made.embedder(made.corpus("support").info.embedder)
    return made


def ready(engine, routes=QUICK, count=60):
    return prepare(engine, Spec("support", routes, split="all", queries=count))


def journal(folder):
    """The lines of a journal behind its first, by question; each question is there once."""
    lines = [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()[1:]]
    assert len({line["question"] for line in lines}) == len(lines)
    return {line["question"]: line["routes"] for line in lines}


def timeless(value, left_out=TIMES):
    """The same without what is a time, or names one run."""
    if isinstance(value, dict):
        return {key: timeless(item, left_out) for key, item in value.items() if key not in left_out}
    return [timeless(item, left_out) for item in value] if isinstance(value, list) else value


def same_figures(one, other):
    """Figures without what is measured in time."""

    def plain(figures):
        return timeless(json.loads(json.dumps(figures)), ("p50_ms", "p95_ms", "ms", "warnings"))

    assert plain(one) == plain(other)


@pytest.fixture(scope="module")
def alone(engine, tmp_path_factory):
    """What one process makes of 60 questions by the quick routes."""
    folder = tmp_path_factory.mktemp("alone")
    figures, _, _ = perform(engine, ready(engine), out=folder)
    return timeless(journal(folder)), figures


class Going:
    """An evaluation by workers in a thread of its own."""

    def __init__(self, engine, folder, at):
        self.done, self.stop, self.error = 0, threading.Event(), None
        self.figures = None
        self._asked = (engine, ready(engine), folder, at)
        self.thread = threading.Thread(target=self._do)
        self.thread.start()

    def _do(self):
        engine, asked, folder, at = self._asked

        def follow(done, _total):
            self.done = done

        try:
            self.figures, _, _ = perform(
                engine, asked, out=folder, workers=at, progress=follow, ended=self.stop.is_set
            )
        except Exception as error:  # noqa: BLE001 - looked at by the test
            self.error = error

    def reach(self, count):
        until(lambda: self.done >= count or not self.thread.is_alive(), 120)
        assert self.error is None

    def end(self):
        self.thread.join(240)
        assert not self.thread.is_alive()
        assert self.error is None, self.error


def supervisor():
    """The process with the scheduler of this machine's workers."""
    mine = psutil.Process().children()
    return next(one for one in mine if "core.backends.workers.local" in " ".join(one.cmdline()))


def spawned(parent):
    """Worker processes of a supervisor."""
    found = []
    for one in parent.children(recursive=True):
        try:
            if "spawn_main" in " ".join(one.cmdline()):
                found.append(one)
        except psutil.NoSuchProcess:
            continue
    return found


@contextmanager
def started(*command, home):
    """A command in a process of its own, ended with all it started."""
    env = {**os.environ, "ROUTESCOPE_HOME": str(home), "PYTHONPATH": str(ROOT)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-m", *command], env=env, cwd=ROOT, **quiet)
    try:
        yield process
    finally:
        if process.poll() is None:
            for one in psutil.Process(process.pid).children(recursive=True):
                one.kill()
            process.kill()
        process.wait()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def scheduler(port, home, *more):
    """A scheduler that listens."""
    where = ("--host", "127.0.0.1", "--port", str(port), "--dashboard-address", "127.0.0.1:0")
    with started("dask", "scheduler", *where, *more, home=home) as process:
        until(lambda: _listens(port), 60)
        yield process


def _listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The address of a scheduler that has the workers that a test starts."""
    port = free_port()
    with scheduler(port, tmp_path_factory.mktemp("scheduler")):
        yield f"tcp://127.0.0.1:{port}"


@contextmanager
def worker(url, home):
    """One worker of a scheduler, which knows that it is gone afterwards."""
    with started("core", "worker", url, home=home) as process:
        yield process
    until(lambda: reached(url, load(home=home)) == 0)


def test_workers_give_what_one_process_gives(engine, tmp_path):
    """8 questions by 12 routes, to the last digit; runs with their spans are kept as ever."""
    asked = ready(engine, (*QUICK, *MORE.split()), 8)
    one, _, _ = perform(engine, asked, out=tmp_path / "one")
    two, _, _ = perform(engine, asked, out=tmp_path / "two", workers=WorkPlace(2))
    assert len(journal(tmp_path / "two")) == 8
    assert timeless(journal(tmp_path / "one")) == timeless(journal(tmp_path / "two"))
    same_figures(one, two)
    spread = experiment_store.opened(tmp_path / "two")
    question = next(iter(spread.outcomes))
    ours, theirs = experiment_store.opened(tmp_path / "one").run(question), spread.run(question)
    assert theirs.passages == ours.passages

    def listed(run):
        return [(result.hits, [span.name for span in result.spans]) for result in run.results]

    assert listed(theirs) == listed(ours)
    assert any("several workers asked at once" in warning for warning in two["warnings"])
    assert two["machines"] == [{"kind": two["machine"], "machines": 1, "questions": 8}]


def test_workers_and_a_scheduler_killed_lose_nothing(engine, alone, tmp_path):
    going = Going(engine, tmp_path, WorkPlace(2))
    killed = set()
    for count in range(1, 3):
        going.reach(16 * count)
        until(lambda: [one for one in spawned(supervisor()) if one.pid not in killed], 60)
        victim = next(one for one in spawned(supervisor()) if one.pid not in killed)
        killed.add(victim.pid)
        os.kill(victim.pid, signal.SIGKILL)
    going.reach(48)
    os.kill(supervisor().pid, signal.SIGKILL)
    going.end()
    assert len(killed) == 2
    assert timeless(journal(tmp_path)) == alone[0]
    same_figures(going.figures, alone[1])


def test_stop_keeps_what_is_journalled_and_goes_on_later(engine, alone, tmp_path):
    going = Going(engine, tmp_path, WorkPlace(2))
    going.reach(10)
    workers = spawned(supervisor())
    going.stop.set()
    going.end()
    assert going.figures["interrupted"]
    before = journal(tmp_path)
    assert 10 <= len(before) < 60
    assert not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in workers)
    perform(engine, ready(engine), out=tmp_path)  # by this process, or any other place
    after = journal(tmp_path)
    assert {question: after[question] for question in before} == before  # not asked again: equal times, too
    assert timeless(after) == alone[0]


def test_a_scheduler_is_waited_for_and_one_gone_for_good_is_told(engine, home, tmp_path, monkeypatch):
    monkeypatch.setattr(pool_module, "CONNECT_S", 1.0)
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    with (
        scheduler(port, tmp_path) as first,
        started("core", "worker", address, "--workers", "2", home=home.home),
    ):
        going = Going(engine, tmp_path / "out", WorkPlace(scheduler=address))
        going.reach(10)
        first.kill()
        first.wait()
        with scheduler(port, tmp_path):
            going.reach(25)
            monkeypatch.setattr(pool_module, "LOST_S", 2.0)
        going.thread.join(120)
    assert isinstance(going.error, Unavailable)
    assert "the connection was lost" in str(going.error)
    assert len(journal(tmp_path / "out")) >= 25


def test_a_worker_that_cannot_be_used_is_told(engine, home, url, tmp_path, monkeypatch):
    there = WorkPlace(scheduler=url)
    elsewhere = tmp_path / "elsewhere"
    with worker(url, elsewhere):
        with pytest.raises(Unavailable, match=r"has no corpus support in .*elsewhere"):
            perform(engine, ready(engine), out=tmp_path / "out", workers=there)
        assert journal(tmp_path / "out") == {}
        shutil.copytree(home.home, elsewhere, dirs_exist_ok=True)
        (elsewhere / "evaluators").mkdir()
        (elsewhere / "evaluators" / "support.json").write_text("{}")
        with pytest.raises(Unavailable, match="has other thresholds or fitted weights for corpus support"):
            perform(engine, ready(engine, count=3), workers=there)
        monkeypatch.setattr(pool_module, "build", lambda: "9.9.9 (0123456789)")
        with pytest.raises(
            Unavailable, match=r"runs RouteScope .*, and 9\.9\.9 \(0123456789\) asks: install"
        ):
            perform(engine, ready(engine), workers=there)
    with pytest.raises(Unavailable, match=r"the files of RouteScope have changed since it was started"):
        perform(engine, ready(engine), workers=WorkPlace(1))


def test_a_scheduler_without_workers_is_told(engine, url, tmp_path, monkeypatch):
    there = WorkPlace(scheduler=url)
    going = Going(engine, tmp_path / "out", there)
    time.sleep(0.5)  # whenever it comes, Stop ends the wait
    going.stop.set()
    going.end()
    assert going.figures["interrupted"]
    monkeypatch.setattr(pool_module, "LOST_S", 1.0)
    monkeypatch.setattr(pool_module, "CONNECT_S", 1.0)
    with pytest.raises(Unavailable, match=f"has no worker: start some with `.* worker {url}`"):
        perform(engine, ready(engine), workers=there)
    absent = f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(Unavailable, match=f"no Dask scheduler answers at {absent}"):
        perform(engine, ready(engine), workers=WorkPlace(scheduler=absent))
    told = {
        "": ("ok", "no scheduler is set"),
        url: ("warning", f"{url} has 0 workers"),
        absent: ("warning", "no Dask scheduler answers"),
    }
    for address, (state, words) in told.items():
        (check,) = doctor._workers(load(home=tmp_path, scheduler=address))
        assert check.state == state
        assert words in check.detail


def test_a_question_that_its_route_fails_at_is_one_failure(engine):
    """An error in a route is a result of it, as in one process."""
    wrong = prepare(engine, Spec("support", ("bm25", "hype"), split="all", queries=3))
    one, _, _ = perform(engine, wrong)
    two, _, _ = perform(engine, wrong, workers=WorkPlace(1))
    assert one["routes"]["hype"]["failed"] == two["routes"]["hype"]["failed"] == 3
    assert one["routes"]["hype"]["errors"] == two["routes"]["hype"]["errors"]


@pytest.mark.trust
def test_the_workers_of_this_machine_listen_on_loopback_and_ask_for_a_certificate(home):
    from distributed import Client

    with closing(Pool(WorkPlace(1), home).open()) as pool:
        address = pool._local.address
        parent = psutil.Process(pool._local._pipes.process.pid)
        every = [parent, *parent.children(recursive=True)]
        open_ = [c for one in every for c in one.net_connections() if c.status == psutil.CONN_LISTEN]
        assert open_
        assert {connection.laddr.ip for connection in open_} == {"127.0.0.1"}
        assert address.startswith("tls://127.0.0.1:")
        with pytest.raises(OSError):  # noqa: PT011 - the kind is all there is
            Client(address.replace("tls", "tcp"), timeout=1, set_as_default=False)
        with pytest.raises((OSError, TypeError, RuntimeError)):
            Client(address, timeout=1, set_as_default=False)
    assert not parent.is_running()


@pytest.mark.trust
def test_what_is_shipped_has_no_secret_and_workers_elsewhere_keep_their_folders(tmp_path):
    settings = load(home=tmp_path, llm_api_key="sk-secret", llm="some-model")
    shipped = json.loads(header(WorkPlace(scheduler="tcp://there:1"), settings))["settings"]
    assert "sk-secret" not in json.dumps(shipped)
    assert shipped["llm"] == "some-model"
    assert not {"home", "models_dir", "external", "llm_api_key", "scheduler_tls_key"} & shipped.keys()
    assert json.loads(header(WorkPlace(2), settings))["settings"]["home"] == str(tmp_path)


def documents(folder, count):
    """A folder of documents about parcels, each of one passage."""
    folder.mkdir()
    for number in range(count):
        text = f"Parcel {number} is stored for {number % 28} hours and costs {number * 7} francs"
        (folder / f"{number:03}.txt").write_text(f"{text}{', and again' * (number % 9)}.")
    return folder


def test_an_index_by_workers_has_the_same_bytes(home, tmp_path):
    """Vectors of passages, of their headings and their tokens, and the weights of terms."""
    tiny.splade(tmp_path / "model")
    folder = documents(tmp_path / "documents", 40)
    made = {}
    for name, at in (("one", None), ("two", WorkPlace(2))):
        own = {"models_dir": home.models_dir, "sparse_model": str(tmp_path / "model")}
        settings = load(home=tmp_path / name, **own)
        helping = Helpers(at, settings) if at else None
        corpus = index.build("parcels", folder, settings=settings, helpers=helping)
        for enrichment in ("headings", "tokens", "learned_sparse"):
            store.build(enrichment, corpus, settings=settings, helpers=helping)
        if helping:
            assert helping._pool is not None  # they did embed
            helping.__exit__()
        made[name] = {
            path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.npy")
        }
    assert made["one"] == made["two"]
    assert sum(path.name == "vectors.npy" for path in made["one"]) == 3
    assert any("learned_sparse" in path.parts for path in made["one"])


def test_an_index_that_is_stopped_or_loses_workers_embeds_nothing_twice(home, tmp_path, monkeypatch):
    folder = documents(tmp_path / "documents", 400)
    settings = load(home=tmp_path / "home", models_dir=home.models_dir)
    kept, killed = [], []
    add = Checkpoint.add
    monkeypatch.setattr(
        Checkpoint, "add", lambda self, *given: (kept.extend(map(bytes, given[0])), add(self, *given))
    )
    stop = threading.Event()

    def pressed(stage, done, _total):
        if stage == "embed" and done:
            stop.set()

    def killing(stage, done, _total):
        if stage == "embed" and done and not killed:
            killed.append(spawned(supervisor())[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    with Helpers(WorkPlace(2), settings) as helping, pytest.raises(Cancelled):
        index.build("parcels", folder, settings=settings, helpers=helping, progress=pressed, cancel=stop)
    assert 0 < len(kept) < 400
    with Helpers(WorkPlace(2), settings) as helping:
        corpus = index.build("parcels", folder, settings=settings, helpers=helping, progress=killing)
    assert killed
    assert len(kept) == len(set(kept)) == corpus.size == 400


def posted(server):
    """Count the calls of a model; a service is also asked once for its list of models."""
    return sum(one.startswith(b"POST") for one in server.requests)


def test_contexts_are_written_by_the_models_of_workers_and_kept_here(home, tmp_path):
    """Each call goes out once, from a worker; a second build recalls all of them."""
    folder = documents(tmp_path / "documents", 6)
    settings = load(home=tmp_path / "home", models_dir=home.models_dir, llm="fake")
    with loopback(REPLY) as server:
        settings = settings.model_copy(update={"llm_base_url": f"{server.url}/v1"})
        corpus = index.build("parcels", folder, settings=settings)
        with Helpers(WorkPlace(1), settings) as helping:
            made = store.build("contexts", corpus, settings=settings, helpers=helping)
        assert (made.spent.calls, made.spent.failed, made.spent.prompt_tokens) == (6, 0, 54)
        assert posted(server) == 6
        written = next(settings.home.rglob("contexts/vectors.npy")).read_bytes()
        shutil.rmtree(settings.home / "enrichments")
        again = store.build("contexts", index.open_corpus("parcels", settings=settings), settings=settings)
        assert again.spent.recalled == posted(server) == 6
        assert next(settings.home.rglob("contexts/vectors.npy")).read_bytes() == written


def test_what_a_workers_model_used_is_counted_for_who_asked(home, tmp_path):
    """To the last token, and the budget of a day holds on workers, too."""
    cat, ann = people.Person("cat@example.org", "editor"), people.Person("ann@example.org", "viewer")
    calls = [asdict(LLMRequest("context/1", (Message("user", f"{n}?"),), 5)) for n in range(8)]
    database = Store(tmp_path / "routescope.sqlite")
    people.keep_in(database)
    settings = load(home=tmp_path, models_dir=home.models_dir, llm="fake", daily_tokens=60)
    try:
        with loopback(REPLY) as server:
            settings = settings.model_copy(update={"llm_base_url": f"{server.url}/v1"})
            with closing(Pool(WorkPlace(1), settings).open()) as pool:

                def made(some):
                    given = ((at, {"llm": "fake", "request": one}) for at, one in enumerate(some))
                    return len(list(pool.each("core.corpus.helpers:completed", given, lambda: False)))

                with people.acting(cat):
                    assert made(calls[:4]) == 4
                    assert database.spent(cat.account) == 48
                    assert made(calls[:4]) == 4, "recalled, for nothing"
                    assert database.spent(cat.account) == 48
                    made(calls[4:5])
                    with pytest.raises(BudgetSpent, match="60 of the 60"):
                        made(calls[5:])
                with people.acting(ann), pytest.raises(NotAllowed, match=r"ann@example\.org is viewer"):
                    made(calls[5:])
                assert database.spent(cat.account) == 60
                assert database.spent(ann.account) == 0
                assert posted(server) == 5
    finally:
        people._ledgers.clear()
        database.close()


def test_stop_ends_what_runs_on_a_worker_elsewhere(url, tmp_path):
    """A worker that nobody ends sees that its task is not wanted any more, and hangs up on the model."""
    stop, answers = threading.Event(), []
    request = LLMRequest("test/1", (Message("user", "Say nothing."),), 5)
    with loopback(hold) as server, worker(url, tmp_path / "elsewhere") as elsewhere:
        settings = load(home=tmp_path / "home", llm="fake", llm_base_url=f"{server.url}/v1")
        with Helpers(WorkPlace(scheduler=url), settings) as helping:
            thread = threading.Thread(
                target=lambda: answers.extend(helping.complete("fake", [request], stop.is_set))
            )
            thread.start()
            until(lambda: server.requests, 60)
            assert not server.hung_up.is_set()
            stop.set()
            thread.join(30)
            assert server.hung_up.wait(30)
            assert elsewhere.poll() is None
            assert answers == []


def test_a_sweep_by_workers_gives_the_same_rankings(engine, tmp_path):
    perform(engine, prepare(engine, Spec("support", ("mmr", "dense"), split="all", queries=8)), out=tmp_path)
    about = subject(experiment_store.opened(tmp_path), "mmr", ["lam"])
    todo = {(0.3,): list(about.results), (0.9,): list(about.results)}
    found = []
    for at in (None, WorkPlace(1)):
        running = sweep.Running(engine, about)
        running.ask(todo, at)
        assert running.wait(120)
        assert running.error is None
        assert running.finished == running.total > 8
        found.append(running.rankings)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((0, None), "give 1 to 256"),
        ((257, None), "give 1 to 256"),
        ((None, "http://a:1"), "not the address of a Dask scheduler"),
        ((None, "tcp://a"), "not the address of a Dask scheduler"),
        ((None, "tcp://a:notaport"), "no valid port"),
        ((None, "tcp://user:secret@a:1"), "and nothing else"),
    ],
)
def test_a_place_that_is_none_is_refused(given, told):
    with pytest.raises(BadInput, match=told) as refused:
        place(*given)
    assert "secret" not in str(refused.value)


def test_places(monkeypatch, tmp_path, capsys):
    assert place(None, None) is None
    assert place(2, None) == WorkPlace(2)
    assert checked(" tcp://[::1]:8786/ ") == "tcp://[::1]:8786"
    for command in (["eval", "support"], ["index", "support"], ["sweep", "x", "mmr.lam"]):
        assert main([*command, "--workers", "2", "--scheduler", "tcp://a:1"]) == 2
        assert "cannot be combined" in capsys.readouterr().err
    monkeypatch.setattr("core.backends.workers.place.find_spec", lambda _: None)
    with pytest.raises(Unavailable, match=r"run: pip install -r requirements-server\.txt"):
        place(2, None)
    (check,) = doctor._workers(load(home=tmp_path))
    assert "requirements-server.txt" in check.fix


def test_a_tls_scheduler_is_used_with_certificates_alone(home, tmp_path, monkeypatch):
    from distributed.security import Security

    port = free_port()
    there = WorkPlace(scheduler=f"tls://127.0.0.1:{port}")
    with pytest.raises(BadInput, match=r"scheduler_tls_cert is not set|there is no file /no/such/file"):
        Pool(there, load(home=tmp_path, scheduler_tls_ca="/no/such/file")).open()
    made, options = Security.temporary(), []
    files = {"ca": made.tls_ca_file, "cert": made.tls_client_cert, "key": made.tls_client_key}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
        monkeypatch.setenv(f"ROUTESCOPE_SCHEDULER_TLS_{name.upper()}", str(tmp_path / name))
        options += [f"--tls-{'ca-file' if name == 'ca' else name}", str(tmp_path / name)]
    with (
        scheduler(port, tmp_path, "--protocol", "tls", *options),
        started("core", "worker", there.scheduler, home=home.home),
    ):
        secured = Engine(load(home=home.home, first_start="off"))
        figures, _, outcomes = perform(secured, ready(secured, ("bm25",), 5), workers=there)
    assert len(outcomes) == 5
    assert figures["routes"]["bm25"]["failed"] == 0


def test_eval_by_workers_from_the_command_line(home, engine, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("core.domain.settings.current", lambda: home)
    monkeypatch.setattr("core.engine.engine.shared_engine", lambda: engine)
    args = ["eval", "support", "--split", "all", "--queries", "5", "--routes", "bm25", "--out", str(tmp_path)]
    assert main([*args, "--workers", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["machines"][0]["questions"] == 5


class Fatal(Pool):
    """A pool whose every task ends its worker, as Dask tells it."""

    def _ahead(self):
        return 1

    def _ready(self, ended):
        return True

    def _connected(self):
        return self

    def submit(self, *_given, **_how):
        from concurrent.futures import Future

        from distributed import KilledWorker

        dead = Future()
        dead.cancel = lambda **_: True
        dead.set_exception(KilledWorker("task", None, 3))
        self.submitted = getattr(self, "submitted", 0) + 1
        return dead


def test_a_task_that_ends_every_worker_is_given_up_in_words(home):
    pool = Fatal(WorkPlace(2), home)
    with pytest.raises(Unavailable, match=r"2 workers on this machine: the same task ended several workers"):
        list(pool.each("core.x:y", [("q", {"n": 1})], lambda: False))
    assert pool.submitted == pool_module.TRIES


@pytest.mark.trust
def test_no_page_sets_a_scheduler(tmp_path):
    """It executes what it is sent: only the settings file and the environment name one."""
    for name in ("scheduler", "scheduler_tls_ca", "scheduler_tls_cert", "scheduler_tls_key"):
        with pytest.raises(BadInput, match="cannot be changed here"):
            settings_file.write({name: "tcp://evil:1"}, tmp_path)


def test_files_of_replies_and_pipelines_of_the_command_line_stay_here(engine, monkeypatch):
    own = Pipeline("mine", "http", "http://127.0.0.1:1/search", given="command")
    monkeypatch.setattr("core.evaluation.runner.pipelines", lambda: {"mine": own})
    plan = Plan("support", ("mine",))
    with pytest.raises(BadInput, match=r"\[external\.mine\]"):
        Spread(WorkPlace(scheduler="tcp://a:1"), engine)._told(plan)
    monkeypatch.setattr("core.evaluation.runner.run_files.used", lambda _: object())
    with pytest.raises(BadInput, match="is a file of replies: evaluate it without workers"):
        Spread(WorkPlace(2), engine)._told(plan)
