"""The judge on the Label page, and the ranges it gives on the Evaluate page."""

import threading

import pytest

from core.domain.background_job import jobs
from core.evaluation import experiment_store, text
from core.evaluation.experiment import perform, prepare
from core.evaluation.judge import filling, measure
from core.evaluation.labels import desk as desks
from core.evaluation.spec import Spec
from tests.fakes import MemoryCorpus
from tests.pages.reading import html, shown
from tests.parcels import TEXTS, blind, label, right
from tests.runs import HOSTILE
from ui.app.routes import title


@pytest.fixture
def parcels(engine):
    engine.fakes["tiny"] = MemoryCorpus(TEXTS)
    engine.fake_llm.replies = {"judge": right}
    label(engine)
    yield engine
    jobs.clear()


def measured(visit, engine):
    """The Agreement tab after the button was pressed and the job has ended."""
    app = visit("label.py", set="one", tab="Agreement")
    assert "has not been measured on this set yet" in shown(app)
    app.button(key="label_judge").click().run()
    assert measure.under_way(engine, "label set", "one").wait(60)
    return app.run()


def test_the_judge_is_measured_and_what_it_allows_is_said(visit, parcels):
    app = measured(visit, parcels)
    text = html(app)
    assert "Cohen&#39;s kappa of judge and people is 1.00 [1.00, 1.00]" in text
    assert "It may grade unjudged passages (eval --judge)" in text
    assert desks.DEFAULT.splitlines()[0] in text, "the guidelines it was shown"
    assert "prompt judge/1" in shown(app)
    assert app.button(key="label_judge").label == "Measure the judge again"
    desks.set_guidelines(parcels.store, "one", "Something else.")
    again = visit("label.py", set="one", tab="Agreement")
    assert "Not calibrated for these guidelines: the guidelines have changed" in shown(again)
    assert "It may grade" not in html(again)


def test_a_judge_that_does_not_agree_is_refused_on_the_page(visit, parcels):
    parcels.fake_llm.replies = {"judge": blind}
    app = measured(visit, parcels)
    assert "It may not grade unjudged passages: the lower end of the interval of kappa is" in html(app)


def test_it_can_be_stopped_and_a_failure_is_told(visit, parcels):
    asked, go = threading.Event(), threading.Event()

    def slow(request):
        asked.set()
        assert go.wait(20)
        return right(request)

    parcels.fake_llm.replies = {"judge": slow}
    app = visit("label.py", set="one", tab="Agreement")
    app.button(key="label_judge").click().run()
    assert asked.wait(20)
    app.run()
    app.button(key="label_judge_stop").click().run()
    go.set()
    assert measure.under_way(parcels, "label set", "one").wait(20)
    app.run()
    assert "Their replies are saved: measure again to go on" in shown(app)
    parcels.fake_llm.missing = "no model is set"
    app.button(key="label_judge").click().run()
    assert "the model cannot judge: no model is set" in shown(app)


def test_hostile_guidelines_stay_text_and_a_damaged_record_is_told(visit, parcels):
    desks.set_guidelines(parcels.store, "one", "\n".join(HOSTILE))
    app = measured(visit, parcels)
    assert "<img" not in html(app)
    (file,) = (parcels.settings.home / "judges").glob("*.json")
    file.write_text("{}")
    again = visit("label.py", set="one", tab="Agreement")
    assert "is damaged" in shown(again)
    assert again.button(key="label_judge")


def test_the_leaderboard_shows_the_range_beside_the_figure_of_people(view, visit, parcels):
    measured(visit, parcels)
    spec = Spec("tiny", ("bm25", "dense"), split="all", labels="one")
    plan = filling.plan(parcels, spec, None)
    folder = experiment_store.place(parcels.settings, "kept")
    figures, drawn, outcomes = perform(parcels, prepare(parcels, spec), out=folder)
    plain = view("evaluate.py")
    column = "nDCG@10, range with judge"
    table = next(one.value for one in plain.dataframe if "scored" in one.value.columns)
    assert column not in table.columns
    whole = filling.added(
        parcels,
        figures,
        drawn,
        outcomes,
        plan,
        out=folder,
        cancel=threading.Event(),
        progress=lambda _done, _of: None,
    )
    app = view("evaluate.py")
    table = next(one.value for one in app.dataframe if "scored" in one.value.columns)
    for route in ("bm25", "dense"):
        line = table[table["Route"].str.removesuffix(" (baseline)") == title(route)].iloc[0]
        low, high = text.ends_of(whole["judge"], route, "ndcg@10")
        assert line[column] == f"{low:.3f} to {high:.3f}"
        assert line["nDCG@10"] == pytest.approx(figures["routes"][route]["ndcg@10"])
    assert "scripted judged" in shown(app)
    assert "The order of the routes by nDCG@10" in shown(app)
