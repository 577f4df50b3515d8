"""Evaluate, Tune and Corpus: a choice of who does the work, where Dask is installed."""
# ruff: noqa: F811 - fixtures of another file

import json

import pytest

from core.backends.workers.place import WorkPlace
from core.corpus import builds
from core.evaluation import background, experiment_store
from tests.pages.reading import shown
from tests.pages.test_corpus_page import indexed
from tests.pages.test_evaluate_page import made, questions  # noqa: F401 - fixtures

pytest.importorskip("distributed")


def keys(app):
    return [one.key for one in app.selectbox]


@pytest.fixture
def without(monkeypatch):
    """As if Dask were not installed."""
    monkeypatch.setattr("core.backends.workers.place.installed", lambda: False)


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)


def test_an_evaluation_is_begun_with_the_workers_chosen(visit, questions, engine, monkeypatch, two_cores):
    begun = []
    begin = background.begin

    def note(*given, workers=None, **more):
        begun.append(workers)
        return begin(*given, **more)  # in this process: what workers do is tested with real ones

    monkeypatch.setattr(background, "begin", note)
    app = visit("evaluate.py")
    choice = app.selectbox(key="ev_workers")
    assert choice.options == ["this process", "1 worker on this machine", "2 workers on this machine"]
    assert choice.value == "this process"
    app.multiselect(key="ev_routes").set_value(["bm25"]).run()
    app.selectbox(key="ev_workers").set_value("2 workers on this machine").run()
    app.button(key="ev_begin").click().run()
    assert not app.exception
    assert begun == [WorkPlace(2)]


def test_without_dask_there_is_no_choice(visit, questions, engine, without):
    app = visit("evaluate.py")
    assert app.button(key="ev_begin")
    assert "ev_workers" not in keys(app)


def test_the_scheduler_of_the_settings_is_a_choice(visit, questions, engine, monkeypatch):
    object.__setattr__(
        engine, "settings", engine.settings.model_copy(update={"scheduler": "tcp://10.0.0.5:8786"})
    )
    app = visit("evaluate.py")
    assert app.selectbox(key="ev_workers").options[-1] == "the workers of tcp://10.0.0.5:8786"


def test_what_was_stopped_is_resumed_by_the_workers_chosen(
    visit, questions, made, engine, monkeypatch, two_cores
):
    found = made("stopped", ("bm25",))
    path = found.folder / "metrics.json"
    path.write_text(json.dumps({**found.figures, "interrupted": True}))
    journal = (found.folder / "questions.jsonl").read_text().splitlines(keepends=True)
    (found.folder / "questions.jsonl").write_text("".join(journal[:3]))
    resumed = []
    monkeypatch.setattr(background, "resume", lambda *given, **more: resumed.append((given[1:], more)))
    app = visit("evaluate.py", evaluation="stopped")
    app.selectbox(key="ev_workers_resume").set_value("1 worker on this machine").run()
    app.button(key="evaluate_resume").click().run()
    assert resumed == [(("stopped",), {"retry": False, "workers": WorkPlace(1)})]


def test_a_corpus_is_indexed_by_the_workers_chosen(visit, engine, monkeypatch, tmp_path, two_cores):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "keys.txt").write_text("A key is stored for three hours.")
    indexed(engine, monkeypatch, tmp_path / "shop")
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    begun = []
    monkeypatch.setattr(builds, "start_enrichment", lambda *given: begun.append((given[1], given[-1])))
    app = visit("corpus.py", corpus="shop")
    app.selectbox(key="corpus_workers").set_value("2 workers on this machine").run()
    app.button(key="make:shop:headings").click().run()
    assert begun == [("headings", WorkPlace(2))]
    app = visit("corpus.py", corpus="shop", tab="Passages")
    assert "corpus_workers" not in keys(app)


def test_release_uses_no_times_of_unlike_machines_until_it_is_told_to(visit, engine):
    from tests.unit.evaluation.test_machines import mixed

    mixed(experiment_store.place(engine.settings, "mixed"))
    app = visit("release.py", evaluation="mixed", p95="1000")
    switch = next(one for one in app.checkbox if one.label == "Use times of unlike machines")
    assert not switch.value
    assert "unlike machines" in shown(app)
    switch.set_value(True).run()
    assert not app.exception
    assert "No time counts" not in shown(app)
