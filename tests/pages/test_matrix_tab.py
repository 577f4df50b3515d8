"""The Matrix tab of Evaluate: measured in the background, drawn with its best cell."""

from core.corpus import builds
from core.domain.errors import NotConfirmed
from core.evaluation import experiment_store
from core.evaluation.experiment import perform, prepare
from core.evaluation.matrix import HARNESSES, ONE_SHOT
from core.evaluation.spec import Spec
from tests.pages.reading import shown
from tests.pages.test_evaluate_page import questions  # noqa: F401 - a fixture
from ui.charts.sweep import noise_slope


def test_the_matrix_is_measured_in_the_background_and_names_the_best_cell(
    view,
    engine,
    monkeypatch,
    questions,  # noqa: F811
):
    folder = experiment_store.place(engine.settings, "first")
    perform(engine, prepare(engine, Spec("tiny", ("bm25",), split="all")), out=folder)
    app = view("evaluate.py", "Matrix")
    app.button(key="matrix_start").click().run()
    build = builds.get("first matrix")
    build.wait(60)
    assert build.error is None
    app.run()
    best = max(row["recall"]["mean"] for row in build.result)
    assert f"Highest recall: one shot with bm25, {best:.3f}" in shown(app)
    assert len(next(one.value for one in app.dataframe if "Harness" in one.value.columns)) == 12
    rows = [row | {"noise": times} for times in (0, 10) for row in build.result]
    drawn = noise_slope(rows, list(HARNESSES), list(ONE_SHOT)).data
    assert [len(one.x) for one in drawn] == [2] * len(HARNESSES) * len(ONE_SHOT)
    assert len({place for one in drawn for place in one.x}) == len(rows), "no two stand at one place"

    def costly(*_, begin, **__):
        if begin is None:
            raise NotConfirmed("this is above embed_limit_minutes")
        return rows

    monkeypatch.setattr("ui.evaluate.matrix.measure", costly)
    app.button(key="matrix_start").click().run()
    builds.get("first matrix").wait(60)
    app.run().button(key="confirm:first matrix").click().run()
    builds.get("first matrix").wait(60)
    assert builds.get("first matrix").result == rows
