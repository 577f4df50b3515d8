"""The first start: parts in their order, each recorded once, gone on with, and never in anybody's way."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from core.corpus import catalogue
from core.corpus.enrichments import store as enrichments
from core.domain.background_job import jobs
from core.domain.errors import Cancelled, Unavailable
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine.engine import Engine
from core.evaluation import experiment_store, first_start
from core.evaluation.dataset import Question
from core.evaluation.first_start import Part, Preparing
from core.evaluation.labels import desk
from core.store import Store
from tests.until import until


@pytest.fixture(autouse=True)
def _alone():
    jobs.clear()
    yield
    jobs.clear()


class Parts:
    """Three parts of one lane that say when they are made, and do what a test tells them."""

    def __init__(self, monkeypatch):
        self.made, self.hold, self.fails = [], threading.Event(), {}
        self.hold.set()
        lane = tuple(Part(name, name.title(), "Wait.", self._make(name)) for name in ("one", "two", "three"))
        monkeypatch.setattr(first_start, "LANES", (lane,))

    def _make(self, name: str) -> Any:
        def make(_engine, report, cancel):
            report("making", len(self.made), 3)
            while not self.hold.wait(0.01):
                if cancel.is_set():
                    raise Cancelled("stopped by the user")
            if name in self.fails:
                raise self.fails[name]
            self.made.append(name)

        return make


@pytest.fixture
def parts(monkeypatch):
    return Parts(monkeypatch)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(Settings(home=tmp_path, first_start="on"), Store(tmp_path / "routescope.sqlite"))


def ended(engine: Engine) -> list[Preparing]:
    found = first_start.known(engine.settings.home)
    return found if all(job.done and (not job._later or job.cancelled) for job in found) else []


def test_parts_are_made_in_their_order_and_recorded(engine, parts):
    first_start.begin(Engine(engine.settings.model_copy(update={"first_start": "off"})))
    assert not first_start.known(engine.settings.home)
    first_start.begin(engine)
    first_start.begin(engine)
    until(lambda: ended(engine))
    assert parts.made == ["one", "two", "three"]
    assert list(first_start.recorded(engine.settings.home)) == ["one", "two", "three"]


def test_a_later_process_makes_what_is_not_recorded(engine, parts):
    parts.fails["two"] = Unavailable("no network")
    first_start.begin(engine)
    until(lambda: ended(engine))
    assert parts.made == ["one", "three"], "what fails holds up nothing behind it"
    jobs.clear()
    parts.fails.clear()
    first_start.begin(engine)
    until(lambda: len(parts.made) == 3)
    assert parts.made == ["one", "three", "two"]


def test_stop_ends_the_lane_until_somebody_goes_on(engine, parts):
    parts.hold.clear()
    first_start.begin(engine)
    [job] = first_start.known(engine.settings.home)
    job.cancel()
    until(lambda: job.done)
    first_start.begin(engine)
    assert first_start.known(engine.settings.home) == [job], "nothing begins again by itself"
    assert (job.cancelled, first_start.recorded(engine.settings.home)) == (True, {})
    parts.hold.set()
    first_start.again(engine, job)
    until(lambda: ended(engine))
    assert parts.made == ["one", "two", "three"]


@pytest.mark.slow
def test_the_documents_are_ready_in_a_moment_and_stay_deleted(engine):
    documents = first_start.LANES[0][0]
    documents.make(engine, lambda *_: None, threading.Event())
    settings = engine.settings
    assert catalogue.describe("support", settings).state == "ready"
    assert catalogue.describe("web", settings).state == "ready"
    assert enrichments.describe("children", "support", settings) is not None


@pytest.mark.slow
def test_examples_are_made_only_where_there_is_nothing_of_ones_own(engine, monkeypatch):
    desk.create(engine.store, "mine", "support", [Question("q", Query("When is the refund paid?"))])
    monkeypatch.setattr(experiment_store, "names", lambda _: ["mine"])
    by_name = {part.name: part for part in first_start.LANES[0]}
    for name in ("example labels", "example evaluation"):
        assert by_name[name].make(engine, lambda *_: None, threading.Event()) is None
    assert [one.name for one in desk.sets(engine.store)] == ["mine"]
