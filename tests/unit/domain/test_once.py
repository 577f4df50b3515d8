"""Opening things once, and nobody waiting for what another one opens."""

import subprocess
import sys
import threading

import pytest

from core.domain.errors import Unavailable
from core.domain.once import Once, Recent


class Held:
    """Opens only when the test lets it; counts how often it was asked to."""

    def __init__(self, value="made", error=None):
        self.begun, self.go = threading.Event(), threading.Event()
        self.value, self.error, self.times = value, error, 0

    def __call__(self):
        self.times += 1
        self.begun.set()
        assert self.go.wait(30)
        if self.error is not None:
            raise self.error
        return self.value


def asking(once, key, make):
    """Ask in a thread; the list gets what came of it."""
    got = []

    def ask():
        try:
            got.append(once.get(key, make))
        except Unavailable as error:
            got.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    return thread, got


def test_one_that_is_being_opened_holds_up_no_other():
    once, slow = Once(), Held()
    thread, got = asking(once, "large", slow)
    assert slow.begun.wait(5)
    assert [once.get(n, lambda n=n: n * 2) for n in range(10)] == [n * 2 for n in range(10)]
    assert once.get("outer", lambda: [once.get("inner", lambda: None)]) == [None]
    with pytest.raises(ZeroDivisionError):
        once.get("wrong", lambda: 1 / 0)
    assert not got
    assert not once.begin("large", slow).done()
    slow.go.set()
    thread.join(5)
    assert got == ["made"]


def test_those_who_ask_at_once_have_it_opened_once():
    once, slow = Once(), Held()
    asked = [asking(once, "same", slow) for _ in range(8)]
    assert slow.begun.wait(5)
    slow.go.set()
    for thread, got in asked:
        thread.join(5)
        assert got == ["made"]
    assert slow.times == 1
    assert once.get("same", Held("another")) == "made"
    assert once.begin("same", slow).done()


def test_an_error_is_told_to_all_who_wait_and_is_not_kept():
    once, slow = Once(), Held(error=Unavailable("no such file"))
    asked = [asking(once, "same", slow) for _ in range(3)]
    assert slow.begun.wait(5)
    slow.go.set()
    for thread, got in asked:
        thread.join(5)
        assert str(got[0]) == "no such file"
    assert once.get("same", lambda: "made") == "made"


def test_what_is_no_longer_good_is_opened_again():
    once = Once()
    assert once.get("corpus", lambda: 1) == 1
    assert once.get("corpus", lambda: 2, lambda value: value == 1) == 1
    assert once.get("corpus", lambda: 2, lambda value: value != 1) == 2
    assert once.get("corpus", lambda: 3) == 2


def test_only_so_many_stay_open():
    once = Once(most=2)
    for n in range(3):
        once.get(n, lambda n=n: n)
        once.get(0, lambda: 0)  # used all the time
    made = []
    for n in (0, 2, 1):
        once.get(n, lambda n=n: made.append(n))
    assert made == [1]


def test_a_table_keeps_what_was_put_in_last():
    table = Recent(2)
    for key in "abac":
        table[key] = key
    assert list(table) == ["a", "c"]


def test_the_end_of_the_process_waits_for_what_is_being_opened():
    """A command that fails early must end with its own exit code: loaded halfway, libraries abort it."""
    said = (
        "import time; from core.domain.once import Once\n"
        "Once().begin('a', lambda: (time.sleep(0.5), print('opened', flush=True)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", said], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "opened\n")
