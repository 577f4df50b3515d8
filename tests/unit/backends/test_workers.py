"""Work given to Dask's workers: what comes back is what one process gives, whoever dies meanwhile."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.backends.base import LLMRequest, Message
from core.backends.workers import pool as pool_module
from core.backends.workers.place import WorkPlace, checked, place
from core.backends.workers.pool import Pool, header
from core.cli import main
from core.corpus import index
from core.corpus.helpers import Helpers
from core.domain.errors import BadInput, BudgetSpent, NotAllowed, Unavailable
from core.domain.settings import load
from core.engine.engine import Engine
from core.evaluation import experiment_store
from core.evaluation.experiment import perform, prepare
from core.evaluation.outcome import JOURNAL
from core.evaluation.spec import Spec
from tests.until import until

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.enable_socket]
pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[3]
QUICK = ("bm25", "dense", "hybrid_rrf", "mmr")
TWELVE = (
    "bm25",
    "dense",
    "hybrid_rrf",
    "hybrid_linear",
    "mmr",
    "dedupe",
    "compress",
    "iterative",
    "memory",
    "memory_rerank",
    "rerank",
    "contextual_headings",
)
TIMES = ("ms", "began", "run", "machine", "host")  # what differs between two runs of one process


def posted(server: Any) -> int:
    """Count the calls of a model; a service is also asked once for its list of models."""
    return sum(one.startswith(b"POST") for one in server.requests)


@pytest.fixture(scope="module", autouse=True)
def _scratch(tmp_path_factory):
    """Where processes that are killed here leave their files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("scratch")))
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with the corpus `support` and an enrichment."""
    from core.corpus.enrichments import store

    settings = load(home=tmp_path_factory.mktemp("home"), first_start="off")
    corpus = index.build(None, "support", settings=settings)
    store.build("headings", corpus, settings=settings)
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


def timeless(lines):
    """The same without what is a time, or names one run."""
    return {
        question: {
            route: {
                **{key: value for key, value in one.items() if key not in TIMES},
                "asked": [{**call, "ms": 0} for call in one["asked"]],
            }
            for route, one in by.items()
        }
        for question, by in lines.items()
    }


@pytest.fixture(scope="module")
def alone(engine, tmp_path_factory):
    """What one process makes of 60 questions by the quick routes."""
    folder = tmp_path_factory.mktemp("alone")
    figures, _, _ = perform(engine, ready(engine), out=folder)
    return folder, figures


def same_figures(one, other):
    """Figures without what is measured in time."""

    def plain(value):
        if isinstance(value, dict):
            left_out = ("p50_ms", "p95_ms", "ms", "warnings")
            return {key: plain(item) for key, item in value.items() if key not in left_out}
        return [plain(item) for item in value] if isinstance(value, list) else value

    assert plain(json.loads(json.dumps(one))) == plain(json.loads(json.dumps(other)))


def test_workers_give_what_one_process_gives(engine, tmp_path):
    """60 questions by 12 routes, to the last digit; runs with their spans are kept as ever."""
    asked = ready(engine, TWELVE)
    one, _, _ = perform(engine, asked, out=tmp_path / "one")
    two, _, _ = perform(engine, asked, out=tmp_path / "two", workers=WorkPlace(2))
    assert len(journal(tmp_path / "two")) == 60
    assert timeless(journal(tmp_path / "one")) == timeless(journal(tmp_path / "two"))
    same_figures(one, two)
    spread = experiment_store.opened(tmp_path / "two")
    question = next(iter(spread.outcomes))
    ours, theirs = experiment_store.opened(tmp_path / "one").run(question), spread.run(question)
    assert theirs.passages == ours.passages
    assert [result.hits for result in theirs.results] == [result.hits for result in ours.results]
    assert [[s.name for s in r.spans] for r in theirs.results] == [
        [s.name for s in r.spans] for r in ours.results
    ]
    assert any("several workers asked at once" in warning for warning in two["warnings"])
    assert two["machines"] == [{"kind": two["machine"], "machines": 1, "questions": 60}]


class Going:
    """An evaluation by workers in a thread of its own."""

    def __init__(self, engine, folder, at, count=60):
        self.done, self.stop, self.error = 0, threading.Event(), None
        self.figures = None
        self._asked = (engine, ready(engine, count=count), folder, at)
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


def test_a_worker_killed_five_times_loses_nothing(engine, alone, tmp_path):
    going = Going(engine, tmp_path, WorkPlace(2))
    killed = set()
    for count in range(1, 6):
        going.reach(8 * count)
        until(lambda: [one for one in spawned(supervisor()) if one.pid not in killed], 60)
        victim = next(one for one in spawned(supervisor()) if one.pid not in killed)
        killed.add(victim.pid)
        os.kill(victim.pid, signal.SIGKILL)
    going.end()
    assert len(killed) == 5
    assert timeless(journal(tmp_path)) == timeless(journal(alone[0]))
    same_figures(going.figures, alone[1])


def test_the_scheduler_of_this_machine_killed_is_started_again(engine, alone, tmp_path):
    going = Going(engine, tmp_path, WorkPlace(2))
    going.reach(10)
    os.kill(supervisor().pid, signal.SIGKILL)
    going.end()
    assert timeless(journal(tmp_path)) == timeless(journal(alone[0]))


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
    again = Going(engine, tmp_path, WorkPlace(2))
    again.end()
    after = journal(tmp_path)
    assert {question: after[question] for question in before} == before  # not asked again: equal times, too
    assert timeless(after) == timeless(journal(alone[0]))


@contextmanager
def started(*command, home):
    """A command in a process of its own, ended with all it started."""
    env = {**os.environ, "ROUTESCOPE_HOME": str(home), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        env=env,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
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


def scheduler(port, home, *more):
    return started(
        "dask",
        "scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--dashboard-address",
        "127.0.0.1:0",
        *more,
        home=home,
    )


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_a_scheduler_restarted_is_waited_for(engine, home, alone, tmp_path):
    port = free_port()
    url = f"tcp://127.0.0.1:{port}"
    with scheduler(port, tmp_path) as first:
        until(lambda: listens(port), 60)
        with started("core", "worker", url, "--workers", "2", home=home.home):
            going = Going(engine, tmp_path / "out", WorkPlace(scheduler=url))
            going.reach(10)
            first.kill()
            first.wait()
            with scheduler(port, tmp_path):
                going.end()
    assert timeless(journal(tmp_path / "out")) == timeless(journal(alone[0]))


def test_a_scheduler_gone_for_good_is_told_and_nothing_is_lost(engine, home, alone, tmp_path, monkeypatch):
    monkeypatch.setattr(pool_module, "LOST_S", 2.0)
    monkeypatch.setattr(pool_module, "CONNECT_S", 1.0)
    port = free_port()
    url = f"tcp://127.0.0.1:{port}"
    with scheduler(port, tmp_path) as first:
        until(lambda: listens(port), 60)
        with started("dask", "worker", url, "--no-dashboard", "--nthreads", "1", home=home.home):
            monkeypatch.setattr(pool_module, "LOST_S", 60.0)
            going = Going(engine, tmp_path / "out", WorkPlace(scheduler=url))
            going.reach(10)
            monkeypatch.setattr(pool_module, "LOST_S", 2.0)
            first.kill()
            going.thread.join(120)
    assert isinstance(going.error, Unavailable)
    assert "the connection was lost" in str(going.error)
    assert "the same command goes on" in str(going.error)
    kept = journal(tmp_path / "out")
    assert len(kept) >= 10
    perform(engine, ready(engine), out=tmp_path / "out")  # by this process, or any other place
    assert timeless(journal(tmp_path / "out")) == timeless(journal(alone[0]))


def test_a_worker_without_the_corpus_is_told(engine, tmp_path):
    port = free_port()
    url = f"tcp://127.0.0.1:{port}"
    with scheduler(port, tmp_path):
        until(lambda: listens(port), 60)
        with (
            started("core", "worker", url, home=tmp_path / "elsewhere"),
            pytest.raises(Unavailable, match=r"has no corpus support in .*elsewhere"),
        ):
            perform(engine, ready(engine), out=tmp_path / "out", workers=WorkPlace(scheduler=url))
    assert journal(tmp_path / "out") == {}


def test_a_worker_with_other_thresholds_is_told(engine, home, tmp_path):
    import shutil

    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(home.home, elsewhere)
    (elsewhere / "evaluators").mkdir()
    (elsewhere / "evaluators" / "support.json").write_text("{}")
    port = free_port()
    url = f"tcp://127.0.0.1:{port}"
    with scheduler(port, tmp_path):
        until(lambda: listens(port), 60)
        with (
            started("core", "worker", url, home=elsewhere),
            pytest.raises(Unavailable, match=r"has other thresholds or fitted weights for corpus support"),
        ):
            perform(engine, ready(engine, count=3), workers=WorkPlace(scheduler=url))


def test_a_worker_of_another_version_is_told(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(pool_module, "build", lambda: "9.9.9 (0123456789)")
    with pytest.raises(Unavailable, match=r"the files of RouteScope have changed since it was started"):
        perform(engine, ready(engine), workers=WorkPlace(1))
    port = free_port()
    url = f"tcp://127.0.0.1:{port}"
    with scheduler(port, tmp_path):
        until(lambda: listens(port), 60)
        with (
            started("core", "worker", url, home=tmp_path),
            pytest.raises(Unavailable, match=r"runs RouteScope .*, and 9\.9\.9 \(0123456789\) asks: install"),
        ):
            perform(engine, ready(engine), workers=WorkPlace(scheduler=url))


def test_a_scheduler_that_does_not_answer_is_told(engine, monkeypatch):
    monkeypatch.setattr(pool_module, "CONNECT_S", 1.0)
    url = f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(Unavailable, match=f"no Dask scheduler answers at {url}"):
        perform(engine, ready(engine), workers=WorkPlace(scheduler=url))


def test_a_scheduler_without_workers_is_told(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(pool_module, "LOST_S", 1.0)
    port = free_port()
    url = f"tcp://127.0.0.1:{port}"
    with scheduler(port, tmp_path):
        until(lambda: listens(port), 60)
        with pytest.raises(Unavailable, match=f"has no worker: start some with `.* worker {url}`"):
            perform(engine, ready(engine), workers=WorkPlace(scheduler=url))


def test_a_question_that_its_route_fails_at_is_one_failure(engine, tmp_path):
    """An error in a route is a result of it, as in one process."""
    wrong = prepare(engine, Spec("support", ("bm25", "hype"), split="all", queries=3))
    one, _, _ = perform(engine, wrong)
    two, _, _ = perform(engine, wrong, workers=WorkPlace(1))
    assert one["routes"]["hype"]["failed"] == two["routes"]["hype"]["failed"] == 3
    assert one["routes"]["hype"]["errors"] == two["routes"]["hype"]["errors"]


@pytest.mark.trust
def test_the_workers_of_this_machine_listen_on_loopback_and_ask_for_a_certificate(home):
    with closing(Pool(WorkPlace(1), home).open()) as pool:
        address = pool._local.address
        parent = psutil.Process(pool.pid)
        every = [parent, *parent.children(recursive=True)]
        open_ = [c for one in every for c in one.net_connections() if c.status == psutil.CONN_LISTEN]
        assert open_
        assert {connection.laddr.ip for connection in open_} == {"127.0.0.1"}
        assert address.startswith("tls://127.0.0.1:")
        from distributed import Client

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


def test_an_index_by_workers_has_the_same_bytes(home, tmp_path):
    from core.corpus.enrichments import store

    folder = tmp_path / "documents"
    folder.mkdir()
    for number in range(90):
        text = f"Parcel {number} was sent on day {number % 28} and cost {number * 7} francs. " * (
            1 + number % 3
        )
        (folder / f"{number:03}.txt").write_text(text)
    made = {}
    for name, at in (("one", None), ("two", WorkPlace(2))):
        settings = load(home=tmp_path / name, models_dir=home.models_dir)
        helping = Helpers(at, settings) if at else None
        corpus = index.build("parcels", folder, settings=settings, helpers=helping)
        for enrichment in ("headings", "tokens"):
            store.build(enrichment, corpus, settings=settings, helpers=helping)
        if helping:
            assert helping._pool is not None  # they did embed
            helping.__exit__()
        made[name] = {
            path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.npy")
        }
    assert made["one"] == made["two"]
    assert sum(path.name == "vectors.npy" for path in made["one"]) == 3


def test_an_index_that_is_stopped_or_loses_workers_embeds_nothing_twice(home, tmp_path, monkeypatch):
    from core.corpus.embeddings import Checkpoint
    from core.domain.errors import Cancelled

    folder = tmp_path / "documents"
    folder.mkdir()
    for number in range(400):
        (folder / f"{number:03}.txt").write_text(
            f"Parcel {number} cost {number * 7} francs in week {number}."
        )
    settings = load(home=tmp_path / "home", models_dir=home.models_dir)
    kept = []
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

    killed = []
    with Helpers(WorkPlace(2), settings) as helping, pytest.raises(Cancelled):
        index.build("parcels", folder, settings=settings, helpers=helping, progress=pressed, cancel=stop)
    before = len(kept)
    assert 0 < before < 400
    with Helpers(WorkPlace(2), settings) as helping:
        index.build("parcels", folder, settings=settings, helpers=helping, progress=killing)
    assert killed
    assert len(kept) == len(set(kept)) == 400


def test_contexts_are_written_by_the_models_of_workers_and_kept_here(home, tmp_path):
    """Each call goes out once, from a worker; a second build recalls all of them."""
    from core.corpus.enrichments import store
    from tests.loopback import http, loopback

    folder = tmp_path / "documents"
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.txt").write_text(f"Parcel {number} cost {number * 7} francs in week {number}.")
    reply = {
        "model": "fake",
        "choices": [{"message": {"content": "About parcels."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3},
    }
    with loopback(http(json.dumps(reply))) as server:
        made = []
        for name, at in (("one", None), ("two", WorkPlace(2))):
            settings = load(
                home=tmp_path / name, models_dir=home.models_dir, llm="fake", llm_base_url=f"{server.url}/v1"
            )
            corpus = index.build("parcels", folder, settings=settings)
            before = posted(server)
            helping = Helpers(at, settings) if at else None
            made.append(store.build("contexts", corpus, settings=settings, helpers=helping))
            if helping:
                helping.__exit__()
                assert posted(server) - before == 6
        vectors = [
            next((tmp_path / name).rglob("contexts/vectors.npy")).read_bytes() for name in ("one", "two")
        ]
        assert vectors[0] == vectors[1]
        assert [(one.spent.calls, one.spent.failed) for one in made] == [(6, 0), (6, 0)]
        assert made[0].spent.prompt_tokens == made[1].spent.prompt_tokens == 54
        import shutil

        shutil.rmtree(tmp_path / "two" / "enrichments")
        before = posted(server)
        again = store.build("contexts", index.open_corpus("parcels", settings=settings), settings=settings)
        assert again.spent.recalled == 6
        assert posted(server) == before


def test_what_a_workers_model_used_is_counted_for_who_asked(home, tmp_path):
    """To the last token, and the budget of a day holds on workers, too."""
    from core.domain import people
    from core.store import Store
    from tests.loopback import http, loopback

    cat, ann = people.Person("cat@example.org", "editor"), people.Person("ann@example.org", "viewer")
    calls = [asdict(LLMRequest("context/1", (Message("user", f"{n}?"),), 5)) for n in range(8)]
    reply = {
        "model": "fake",
        "choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3},
    }
    database = Store(tmp_path / "routescope.sqlite")
    people.keep_in(database)
    try:
        with loopback(http(json.dumps(reply))) as server:
            settings = load(
                home=tmp_path,
                models_dir=home.models_dir,
                llm="fake",
                llm_base_url=f"{server.url}/v1",
                daily_tokens=60,
            )
            with closing(Pool(WorkPlace(2), settings).open()) as pool:

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


def test_stop_ends_what_runs_on_a_worker_elsewhere(home, tmp_path):
    """A worker that nobody ends sees that its task is not wanted any more, and hangs up on the model."""
    from core.backends.base import LLMRequest, Message
    from tests.loopback import hold, loopback

    port = free_port()
    url = f"tcp://127.0.0.1:{port}"
    stop = threading.Event()
    with loopback(hold) as server, scheduler(port, tmp_path):
        until(lambda: listens(port), 60)
        settings = load(home=tmp_path / "home", llm="fake", llm_base_url=f"{server.url}/v1")
        with (
            started("core", "worker", url, home=tmp_path / "elsewhere") as worker,
            Helpers(WorkPlace(scheduler=url), settings) as helping,
        ):
            request = LLMRequest("test/1", (Message("user", "Say nothing."),), 5)
            answers = []
            thread = threading.Thread(
                target=lambda: answers.extend(helping.complete("fake", [request], stop.is_set))
            )
            thread.start()
            until(lambda: server.requests, 60)
            assert not server.hung_up.is_set()
            stop.set()
            thread.join(30)
            assert server.hung_up.wait(30)
            assert worker.poll() is None
            assert answers == []


def test_term_weights_by_workers_are_the_same(home, tmp_path):
    from core.corpus.enrichments import store
    from tests import tiny

    tiny.splade(tmp_path / "model")
    folder = tmp_path / "documents"
    folder.mkdir()
    for number in range(70):
        (folder / f"{number:02}.txt").write_text(
            f"A key is stored for hours. Send the box back in {number} days."
        )
    found = []
    for name, at in (("one", None), ("two", WorkPlace(2))):
        settings = load(
            home=tmp_path / name, models_dir=home.models_dir, sparse_model=str(tmp_path / "model")
        )
        corpus = index.build("keys", folder, settings=settings)
        with Helpers(at or WorkPlace(1), settings) as helping:
            store.build("learned_sparse", corpus, settings=settings, helpers=helping if at else None)
        files = (tmp_path / name).rglob("learned_sparse/index/*.npy")
        found.append({path.name: path.read_bytes() for path in files})
    assert found[0]
    assert found[0] == found[1]


def test_a_sweep_by_workers_gives_the_same_rankings(engine, tmp_path):
    from core.evaluation.tuning import sweep
    from core.evaluation.tuning.sweep_subject import subject

    folder = tmp_path / "evaluation"
    perform(engine, prepare(engine, Spec("support", ("mmr", "dense"), split="all", queries=8)), out=folder)
    about = subject(experiment_store.opened(folder), "mmr", ["lam"])
    todo = {(0.3,): list(about.way.results), (0.9,): list(about.way.results)}
    found = []
    for at in (None, WorkPlace(2)):
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
        ((3, "tcp://a:1"), "cannot be combined"),
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


def test_places():
    assert place(None, None) is None
    assert place(2, None) == WorkPlace(2)
    assert checked(" tcp://[::1]:8786/ ") == "tcp://[::1]:8786"


def test_without_dask_it_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setattr("core.backends.workers.place.find_spec", lambda _: None)
    with pytest.raises(
        Unavailable, match=r"Dask is not installed; run: pip install -r requirements-server\.txt"
    ):
        place(2, None)


def test_a_tls_scheduler_needs_certificates(tmp_path):
    settings = load(home=tmp_path, scheduler_tls_ca="/no/such/file")
    with pytest.raises(BadInput, match=r"scheduler_tls_cert is not set|there is no file /no/such/file"):
        Pool(WorkPlace(scheduler="tls://127.0.0.1:1"), settings).open()


def test_a_tls_scheduler_is_used_with_certificates(engine, home, tmp_path, monkeypatch):
    from distributed.security import Security

    made = Security.temporary()
    files = {"ca": made.tls_ca_file, "cert": made.tls_client_cert, "key": made.tls_client_key}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
        monkeypatch.setenv(f"ROUTESCOPE_SCHEDULER_TLS_{name.upper()}", str(tmp_path / name))
    own = [str(tmp_path / name) for name in files]
    port = free_port()
    url = f"tls://127.0.0.1:{port}"
    options = [
        one for pair in zip(("--tls-ca-file", "--tls-cert", "--tls-key"), own, strict=True) for one in pair
    ]
    with scheduler(port, tmp_path, "--protocol", "tls", *options):
        until(lambda: listens(port), 60)
        with started("core", "worker", url, home=home.home):
            secured = Engine(load(home=home.home, first_start="off"))
            figures, _, outcomes = perform(
                secured, ready(secured, ("bm25",), 5), workers=WorkPlace(scheduler=url)
            )
    assert len(outcomes) == 5
    assert figures["routes"]["bm25"]["failed"] == 0


def test_a_default_start_does_not_import_dask():
    code = (
        "import sys, pkgutil, importlib, core\n"
        "for one in pkgutil.walk_packages(core.__path__, 'core.'):\n"
        "    if one.name != 'core.__main__': importlib.import_module(one.name)\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('dask', 'distributed')])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
    assert "distributed" not in (ROOT / "requirements.txt").read_text()
    assert "distributed==" in (ROOT / "requirements-server.txt").read_text()


def test_commands_refuse_a_place_that_is_none(capsys):
    for command in (["eval", "support"], ["index", "support"], ["sweep", "x", "mmr.lam"]):
        assert main([*command, "--workers", "2", "--scheduler", "tcp://a:1"]) == 2
        assert "cannot be combined" in capsys.readouterr().err


def test_eval_by_workers_from_the_command_line(home, engine, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("core.domain.settings.current", lambda: home)
    monkeypatch.setattr("core.engine.engine.shared_engine", lambda: engine)
    out = tmp_path / "out"
    args = ["eval", "support", "--split", "all", "--queries", "5", "--routes", "bm25", "--out", str(out)]
    assert main([*args, "--workers", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["machines"][0]["questions"] == 5


def test_a_lost_wait_ends_when_it_is_stopped(engine, home, tmp_path, monkeypatch):
    """Stop pressed while no worker is there ends it at once."""
    port = free_port()
    url = f"tcp://127.0.0.1:{port}"
    with scheduler(port, tmp_path):
        until(lambda: listens(port), 60)
        going = Going(engine, tmp_path / "out", WorkPlace(scheduler=url))
        time.sleep(0.5)  # whenever it comes
        going.stop.set()
        going.end()
    assert going.figures["interrupted"]


class Dead:
    """A task of which every worker dies, as Dask tells it."""

    def __init__(self):
        self.called = []

    def add_done_callback(self, callback):
        callback(self)

    def result(self, timeout):
        from distributed import KilledWorker

        raise KilledWorker("task", None, 3)

    def cancel(self, reason):
        pass


def test_a_task_that_ends_every_worker_is_given_up_in_words(home):
    given = []

    class Full(Pool):
        """One whose every task ends its worker."""

        def _ahead(self):
            return 1

        def _ready(self, ended):
            return True

        def _connected(self):
            return self

        def submit(self, _work, _header, function, payload, _behalf, **_how):
            given.append((function, payload))
            return Dead()

    pool = Full(WorkPlace(2), home)
    with pytest.raises(Unavailable, match=r"2 workers on this machine: the same task ended several workers"):
        list(pool.each("core.x:y", [("q", {"n": 1})], lambda: False))
    assert given == [("core.x:y", '{"n": 1}')] * pool_module.TRIES


@pytest.mark.parametrize(
    ("scheduler_url", "told"),
    [
        ("", "can use several workers; no scheduler is set"),
        ("tcp://127.0.0.1:1", "no Dask scheduler answers"),
    ],
)
def test_the_doctor_tells_of_workers(tmp_path, monkeypatch, scheduler_url, told):
    from core.engine import doctor

    monkeypatch.setattr(pool_module, "CONNECT_S", 0.5)
    (check,) = doctor._workers(load(home=tmp_path, scheduler=scheduler_url))
    assert told in check.detail
    assert check.state == ("warning" if scheduler_url else "ok")
    monkeypatch.setattr("core.backends.workers.place.find_spec", lambda _: None)
    (check,) = doctor._workers(load(home=tmp_path))
    assert "not installed" in check.detail
    assert "requirements-server.txt" in check.fix


def test_the_doctor_counts_the_workers_of_a_scheduler(tmp_path):
    from core.engine import doctor

    port = free_port()
    with scheduler(port, tmp_path):
        until(lambda: listens(port), 60)
        (check,) = doctor._workers(load(home=tmp_path, scheduler=f"tcp://127.0.0.1:{port}"))
    assert f"tcp://127.0.0.1:{port} has 0 workers" in check.detail
    assert check.state == "warning"
    assert f"worker tcp://127.0.0.1:{port}" in check.fix


@pytest.mark.trust
def test_no_page_sets_a_scheduler(tmp_path):
    """It executes what it is sent: only the settings file and the environment name one."""
    from core.domain import settings_file

    for name in ("scheduler", "scheduler_tls_ca", "scheduler_tls_cert", "scheduler_tls_key"):
        with pytest.raises(BadInput, match="cannot be changed here"):
            settings_file.write({name: "tcp://evil:1"}, tmp_path)


def test_files_of_replies_and_pipelines_of_the_command_line_stay_here(engine, monkeypatch):
    from core.domain.pipelines import Pipeline
    from core.evaluation.runner import Plan, Spread

    own = Pipeline("mine", "http", "http://127.0.0.1:1/search", given="command")
    monkeypatch.setattr("core.evaluation.runner.pipelines", lambda: {"mine": own})
    plan = Plan("support", ("mine",))
    with pytest.raises(BadInput, match=r"\[external\.mine\]"):
        Spread(WorkPlace(scheduler="tcp://a:1"), engine)._told(plan)
    monkeypatch.setattr("core.evaluation.runner.run_files.used", lambda _: object())
    with pytest.raises(BadInput, match="is a file of replies: evaluate it without workers"):
        Spread(WorkPlace(2), engine)._told(plan)
