"""Work in the background: followed, stopped, its errors told; one registry knows all of it, for a while."""

import threading

import pytest

from core.domain.background_job import BackgroundJob, Jobs, owner
from core.domain.errors import BadInput, Cancelled


class Parts(BackgroundJob):
    """As many parts as it is given permits for."""

    kind = "parts"

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
        assert work.went_on.acquire(timeout=5)


def test_it_is_followed_to_its_end():
    work = started()
    assert not work.wait(0.01)
    assert (work.done, work.left, work.finished, work.state) == (False, None, 0, "under way")
    go_on(work, 1)
    assert work.left == pytest.approx(2 * work.seconds, rel=0.5)
    go_on(work, 2)
    assert work.wait(5)
    took = work.seconds
    work.cancel()  # after its end it changes nothing
    assert (work.done, work.complete, work.cancelled, work.error, work.left) == (
        True,
        True,
        False,
        None,
        None,
    )
    assert (work.seconds, work.state) == (took, "done")


@pytest.mark.parametrize(
    ("raises", "state", "told"),
    [
        (BadInput("no such corpus"), "failed", "no such corpus"),
        (OSError("the disk is full"), "failed", "disk is full"),
        (Cancelled("stopped"), "stopped", None),
        (None, "stopped", None),
    ],
    ids=str,
)
def test_what_ends_it_early_is_told_and_what_is_done_stays(raises, state, told):
    work = started(raises=raises)
    go_on(work, 1)
    if raises is None:
        work.cancel()
    work.permits.release()
    assert work.wait(5)
    assert (work.done, work.complete, work.finished, work.state) == (True, False, 1, state)
    assert (work.cancelled, work.share) == (state == "stopped", pytest.approx(1 / 3))
    assert work.error is None if told is None else told in work.error


class Other(Parts):
    """Of another kind."""

    kind = "other"
    kept = 2
    forgotten_s = 60.0


def ended(jobs, kind=Other, key="key", **more):
    """A job that was begun and has ended."""
    job = jobs.begin(kind, key, lambda: kind(0, **more))
    assert job.wait(5)
    return job


def test_begun_again_it_is_the_one_under_way_and_a_new_one_after_its_end():
    jobs = Jobs()
    with pytest.raises(BadInput):
        jobs.begin(Parts, "set", lambda: (_ for _ in ()).throw(BadInput("no such set")))
    assert (jobs.latest(Parts, "set"), jobs.known()) == (None, [])
    token = owner.set("my browser")
    first = jobs.begin(Parts, "set", lambda: Parts(1))
    owner.reset(token)
    assert (first.owner, Parts(0).owner) == ("my browser", "")
    assert jobs.begin(Parts, "set", lambda: Parts(1)) is first
    assert jobs.begin(Other, "set", lambda: Other(1)) is not first, "another kind of the same name"
    assert first.state == "under way"
    go_on(first, 1)
    assert first.wait(5)
    assert first.state == "done"
    assert jobs.latest(Parts, "set") is first
    assert jobs.begin(Parts, "set", lambda: Parts(0)) is not first


def test_two_who_begin_the_same_at_once_begin_one():
    jobs, made, ready = Jobs(), [], threading.Barrier(6)

    def make():
        made.append(Parts(1))
        return made[-1]

    def begin():
        ready.wait(5)
        jobs.begin(Parts, "set", make)

    threads = [threading.Thread(target=begin, daemon=True) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(made) == 1
    go_on(made[0], 1)


def test_one_that_is_long_in_beginning_holds_up_no_other():
    jobs, begun, go = Jobs(), threading.Event(), threading.Event()

    def slow():
        begun.set()
        assert go.wait(20)
        return Parts(0)

    thread = threading.Thread(target=lambda: jobs.begin(Parts, "slow", slow), daemon=True)
    thread.start()
    assert begun.wait(5)
    assert ended(jobs).complete
    assert jobs.latest(Parts, "slow") is None
    go.set()
    thread.join(10)
    assert jobs.latest(Parts, "slow") is not None


def test_only_so_many_of_a_kind_are_remembered_and_none_under_way_is_forgotten():
    jobs = Jobs()
    going = [jobs.begin(Other, ("going", n), lambda: Other(1)) for n in range(4)]
    old = [ended(jobs, key=n) for n in range(5)]
    assert [job for job in jobs.known() if job.done] == old[-2:]
    assert jobs.under_way() == going
    for job in going:
        go_on(job, 1)
        assert job.wait(5)


def test_what_nobody_looked_at_for_long_is_forgotten(monkeypatch):
    jobs, now = Jobs(), [1000.0]
    monkeypatch.setattr("core.domain.background_job.time.monotonic", lambda: now[0])
    monkeypatch.setattr("core.domain.background_job.time.perf_counter", lambda: now[0])
    job = ended(jobs)
    now[0] += 59
    assert jobs.latest(Other, "key") is job, "looked at now"
    now[0] += 59
    assert jobs.known() == [job]
    now[0] += 2
    assert jobs.known() == []
    assert jobs.latest(Other, "key") is None
