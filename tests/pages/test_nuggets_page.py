"""Nuggets on Label, Evaluate and Why: written, proposed, assigned, and shown with the answers."""

import json
from types import SimpleNamespace

from core.domain.types import Query
from core.evaluation import experiment_store
from core.evaluation import gold as known
from core.evaluation.dataset import Question
from core.evaluation.experiment import perform, prepare
from core.evaluation.labels import desk as desks
from core.evaluation.labels import suggest
from core.evaluation.spec import Spec
from tests.fakes import ScriptedLLM
from tests.pages.reading import html, shown
from tests.runs import HOSTILE
from ui.components import gold

TEXT = "How do I send a fragile item back?"


def named(app, kind, ending):
    """The fields whose key has an ending."""
    return [one for one in getattr(app, kind) if (one.key or "").endswith(ending)]


def evaluated(engine, name):
    """An evaluation of the set whose answers the model wrote."""
    spec = Spec("tiny", ("bm25", "dense"), labels="one", answers=True, answer_by="model", split="all")
    return perform(engine, prepare(engine, spec), out=experiment_store.place(engine.settings, name))


def test_from_no_nuggets_to_the_recall_of_routes(visit, engine, monkeypatch):
    desks.create(engine.store, "one", "tiny", [Question("q1", Query(TEXT), answers=("Double boxed.",))])
    proposed = {"vital": [HOSTILE[0]], "okay": []}
    engine.fake_llm = ScriptedLLM(
        {"nuggets": json.dumps(proposed), "evidence": "0.9", "answer": f"Box it twice [1]. {HOSTILE[0]}"}
    )
    app = visit("label.py", set="one", tab="Nuggets")
    assert "No nuggets yet" in shown(app)
    assert "It takes nuggets that count" in shown(app)
    app.button(key="label_nuggets_propose").click().run()
    assert suggest.under_way(engine, "one", "nuggets").wait(20)
    app = visit("label.py", set="one", tab="Nuggets")
    assert [one.value for one in named(app, "checkbox", ":counts")] == [False, True], "a person checks it"
    assert not named(app, "button", "label_nuggets_propose"), "no question is left"
    named(app, "checkbox", ":counts")[0].check()
    named(app, "text_input", ":2")[0].input("Box it  twice.")
    named(app, "checkbox", ":vital")[1].uncheck()
    app.button(key="label_nuggets_save").click().run()
    assert not app.exception
    facts = desks.load(engine.store, "one").asked["q1"].checked_nuggets
    assert [(one.text, one.vital) for one in facts] == [(HOSTILE[0], True), ("Box it twice.", False)]
    app.button(key="label_nuggets_undo").click().run()
    assert desks.load(engine.store, "one").asked["q1"].checked_nuggets == ()
    named(app, "checkbox", ":counts")[0].check()
    named(app, "text_input", ":2")[0].input("Box it twice.")
    app.button(key="label_nuggets_save").click().run()
    evaluated(engine, "first")
    app = visit("label.py", set="one", tab="Nuggets")
    assert "&lt;img src" in html(app)
    assert "<img" not in html(app)
    app.button(key="label_support").click().run()
    app.button(key="label_nuggets_undo").click().run()
    assert "You assigned 0 of 2" in shown(app)
    for level in ("support", "partial_support"):
        app.button(key=f"label_{level}").click().run()
    assert "You assigned 2 of 2" in shown(app)
    figures, _, outcomes = evaluated(engine, "second")
    assert {row["answers"]["nugget_score"] for row in figures["routes"].values()} == {0.75}
    page = html(visit("evaluate.py", tab="Questions", evaluation="second", question="q1"))
    assert ("contains</td>" in page, "partly</td>" in page, "<img" in page) == (True, True, False)
    run = experiment_store.opened(experiment_store.place(engine.settings, "second")).run("q1")
    assert outcomes["q1"]["bm25"].run == run.id
    engine.store.save(run)
    assert engine.store.flush()
    state = SimpleNamespace(state="ready", fingerprint="now")
    monkeypatch.setattr(gold.catalogue, "describe", lambda *_: state)
    monkeypatch.setattr(known, "_with_corpus", lambda *_: known.Gold())
    page = html(visit("why.py", run=run.id))
    assert "Nuggets it <b" in page
    assert "partly contains" in page
    assert "<img" not in page
