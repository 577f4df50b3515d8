"""Conversation memory: what is remembered stays, stays apart, and is gone when it is forgotten."""

import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import BadInput, Unavailable
from core.store import Store, memory
from core.types import Turn

ROOT = Path(__file__).resolve().parents[2]
SECRET = "my-card-number-4929"


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "runs.sqlite")
    yield store
    store.close()


def said(*texts):
    return [Turn("assistant" if n % 2 else "user", text) for n, text in enumerate(texts)]


def texts(turns):
    return [turn.text for turn in turns]


# --- the store


def test_turns_come_back_in_order_with_where_they_are_from(store):
    assert store.recall("vase") == ()
    assert store.remember("vase", said("My box arrived crushed.", "Sorry \ud83d \x00."), run="r1") == 2
    assert store.remember("vase", said("And now?"), run="r2") == 1
    turns = store.recall("vase")
    assert [(t.session, t.number, t.role, t.run) for t in turns] == [
        ("vase", 1, "user", "r1"), ("vase", 2, "assistant", "r1"), ("vase", 3, "user", "r2"),
    ]  # fmt: skip
    assert texts(turns) == ["My box arrived crushed.", "Sorry \ud83d \x00.", "And now?"]
    assert Store(store.path).recall("vase") == turns


def test_a_run_is_remembered_once(store):
    store.remember("vase", said("And now?"), run="r1")
    assert store.remember("vase", said("And now?"), run="r1") == 0
    assert store.remember("vase", said("And now?", "Wait."), run="r1") == 1, "the answer came later"
    assert store.remember("vase", said("And now?", "Wait."), run="r1") == 0
    assert store.remember("vase", said("And now?"), run="r2") == 1, "asked again it is said again"
    assert texts(store.recall("vase")) == ["And now?", "Wait.", "And now?"]
    with pytest.raises(BadInput, match="one question and one answer"):
        store.remember("vase", [Turn("user", "a"), Turn("user", "b")], run="r3")


def test_sessions_never_see_each_other(store):
    names = ["a", "A", "a.b", "a_b", "a-b", "\u00e4"]
    for name in names:
        store.remember(name, said(f"only {name}"))
    assert {name: texts(store.recall(name)) for name in names} == {name: [f"only {name}"] for name in names}
    store.forget("a")
    assert {row.session for row in store.sessions_remembered()} == set(names) - {"a"}


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a/b", "a\n", "x" * 81, "%", "'; DROP TABLE memory; --", "\ud83d", None, 7]
)
def test_a_name_that_is_not_allowed_is_refused_everywhere(store, name):
    for call in (
        lambda: store.remember(name, said("x")),
        lambda: store.recall(name),
        lambda: store.forget(name),
    ):
        with pytest.raises(BadInput, match="1 to 80 letters"):
            call()


def test_sizes_are_bounded(store, monkeypatch):
    for wrong in ("", " \n", "x" * (memory.MAX_TEXT + 1)):
        with pytest.raises(BadInput, match="20,000"):
            store.remember("s", said(wrong))
    with pytest.raises(BadInput, match="role"):
        store.remember("s", [Turn("system", "x")])
    monkeypatch.setattr(memory, "MAX_TURNS", 3)
    store.remember("s", said("1", "2"))
    with pytest.raises(BadInput, match="at most 3"):
        store.remember("s", said("3", "4"))
    assert texts(store.recall("s")) == ["1", "2"], "all or none"
    store.remember("s", said("3"))


def test_a_number_is_never_given_twice(store):
    store.remember("s", said("one", "two", "three"))
    assert store.forget("s", [3]) == 1
    store.remember("s", said("four"))
    assert [(t.number, t.text) for t in store.recall("s")] == [(1, "one"), (2, "two"), (4, "four")]
    with pytest.raises(BadInput, match=r"no turn 3; it has: 1, 2, 4"):
        store.forget("s", [1, 3])
    assert len(store.recall("s")) == 3, "all or none"
    assert store.forget("s") == 3
    assert (store.recall("s"), store.sessions_remembered()) == ((), ())
    with pytest.raises(BadInput, match="nothing is remembered of session 's'"):
        store.forget("s")


@pytest.mark.parametrize("numbers", [None, [2]])
def test_what_is_forgotten_is_in_no_row_and_no_byte_of_the_file(store, numbers):
    store.remember("s", said("My box arrived crushed.", f"Noted: {SECRET}"), run="r1")
    store.remember("other", said("stays"))
    files = list(store.path.parent.glob("runs.sqlite*"))
    assert any(SECRET.encode() in file.read_bytes() for file in files)
    store.forget("s", numbers)
    for file in store.path.parent.glob("runs.sqlite*"):
        assert SECRET.encode() not in file.read_bytes(), file
    with closing(sqlite3.connect(store.path)) as connection:
        assert SECRET not in "\n".join(connection.iterdump())
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert store.count(SECRET) == 0
    assert texts(store.recall("other")) == ["stays"]


def test_forgetting_says_when_the_log_could_not_be_emptied(store, monkeypatch):
    store.remember("s", said("x"))

    def locked(path):
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr("core.store.empty_log", locked)
    with pytest.raises(Unavailable, match=r"1 turns are forgotten, but .*-wal may still hold"):
        store.forget("s")
    assert store.recall("s") == ()


def test_threads_of_two_stores_lose_nothing(store):
    other = Store(store.path)

    def work(which, name):
        for n in range(15):
            which.remember("one", said(f"{name}{n}"), run=f"{name}{n}")

    threads = [
        threading.Thread(target=work, args=(which, name))
        for which, name in ((store, "a"), (store, "b"), (other, "c"), (other, "d"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    turns = store.recall("one")
    assert sorted(texts(turns)) == sorted(f"{name}{n}" for name in "abcd" for n in range(15))
    assert [turn.number for turn in turns] == list(range(1, 61))
    for name in "abcd":
        assert [t.text for t in turns if t.text[0] == name] == [f"{name}{n}" for n in range(15)]
    other.close()


KILLED = """
import sys
from pathlib import Path
from core.store import Store
from core.types import Turn

store = Store(Path(sys.argv[1]))
for n in range(10_000):
    store.remember("s", [Turn("user", f"turn {n}")], run=f"r{n}")
    print(n, flush=True)
"""


def test_what_was_remembered_survives_kill_9(tmp_path):
    path = tmp_path / "runs.sqlite"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    numbers = [int(process.stdout.readline()) for _ in range(12)]
    process.send_signal(signal.SIGKILL)
    numbers += [int(line) for line in process.stdout.read().splitlines() if line]
    process.wait()
    found = texts(Store(path).recall("s"))
    assert found[: len(numbers)] == [f"turn {n}" for n in numbers]
    assert len(found) <= len(numbers) + 1, "one may have been written and not yet told"


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("say"), st.sampled_from("ab"), st.text(min_size=1, max_size=5)),
            st.tuples(st.just("forget"), st.sampled_from("ab"), st.integers(1, 6)),
            st.tuples(st.just("forget all"), st.sampled_from("ab"), st.none()),
        ),
        max_size=12,
    )
)
def test_any_course_of_events_leaves_what_a_plain_model_says(tmp_path_factory, events):
    """Against lists in memory, through the same connection-level functions that the store calls."""
    from core.store.files import open_to_write

    model = {"a": {}, "b": {}}
    last = {"a": 0, "b": 0}
    with closing(open_to_write(tmp_path_factory.mktemp("m") / "m.sqlite")) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for kind, name, value in events:
            if kind == "say":
                memory.add(connection, name, [Turn("user", value)], "")
                last[name] += 1
                model[name][last[name]] = value
                continue
            numbers = None if value is None else [value]
            if not model[name] or (value is not None and value not in model[name]):
                with pytest.raises(BadInput):
                    memory.remove(connection, name, numbers)
                continue
            memory.remove(connection, name, numbers)
            for number in numbers or list(model[name]):
                del model[name][number]
            if not model[name]:
                last[name] = 0
        for name in "ab":
            assert {t.number: t.text for t in memory.read(connection, name)} == model[name]
