"""Work in the background: followed, stopped, and its errors told."""

import threading

import pytest

from core.errors import BadInput, Cancelled
from core.work import Work


class Parts(Work):
    """As many parts as it is given permits for."""

    def __init__(self, total, *, raises=None):
        super().__init__("parts", total)
        self.permits = threading.Semaphore(0)
        self.went_on = threading.Semaphore(0)
        self.raises = raises

    def _do(self):
        for _ in range(self.total):
            self.permits.acquire()
            if self._cancel.is_set():
                return
            if self.raises is not None and self.finished == 1:
                raise self.raises
            self.finished += 1
            self.went_on.release()


def started(**more):
    work = Parts(3, **more)
    work.begin()
    return work


def go_on(work, parts):
    for _ in range(parts):
        work.permits.release()
        assert work.went_on.acquire(timeout=60)


def test_it_is_followed_to_its_end():
    work = started()
    assert (work.done, work.left, work.finished) == (False, None, 0)
    go_on(work, 1)
    assert work.left == pytest.approx(2 * work.seconds, rel=0.5)
    go_on(work, 2)
    assert work.wait(60)
    assert (work.done, work.complete, work.cancelled, work.error, work.left) == (
        True,
        True,
        False,
        None,
        None,
    )
    took = work.seconds
    assert work.seconds == took  # it stands still


def test_stopped_it_keeps_what_is_done():
    work = started()
    go_on(work, 1)
    work.cancel()
    work.permits.release()
    assert work.wait(60)
    assert (work.finished, work.cancelled, work.complete, work.error) == (1, True, False, None)


def test_a_stop_after_its_end_changes_nothing():
    work = started()
    go_on(work, 3)
    assert work.wait(60)
    work.cancel()
    assert (work.cancelled, work.complete) == (False, True)


@pytest.mark.parametrize(
    ("raises", "cancelled", "told"),
    [
        (BadInput("no such corpus"), False, "no such corpus"),
        (OSError("the disk is full"), False, "disk is full"),
        (Cancelled("stopped"), True, None),
    ],
)
def test_what_ends_it_early_is_told(raises, cancelled, told):
    work = started(raises=raises)
    go_on(work, 1)
    work.permits.release()
    assert work.wait(60)
    assert (work.done, work.complete, work.cancelled) == (True, False, cancelled)
    assert work.error is None if told is None else told in work.error


def test_it_can_be_waited_for_in_vain():
    work = started()
    assert not work.wait(0.01)
    go_on(work, 3)
    assert work.wait(60)
