"""Chunkings on Corpus and Evaluate, over corpora that are really indexed and measured."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from core.corpus import builds, catalogue, index
from core.corpus.source import variants_named
from core.domain.types import Passage
from core.evaluation import background
from core.evaluation.chunkings import measuring, report
from core.evaluation.chunkings.coverage import Area
from core.evaluation.experiment_store import place
from core.evaluation.spec import Spec
from tests.pages.reading import address, html, shown
from tests.pages.test_corpus_page import indexed
from tests.runs import HOSTILE
from ui.evaluate.chunkings_question import marked

FILL = "Other things are said here that nobody asks about. "
TEXTS = {
    f"{name}.md": f"# {name.title()}\n\n{FILL * 4}\n\n## Rule\n\nThe {name} rule is {n} days. {FILL * 3}"
    for n, name in enumerate(("returns", "refund", "customs"), 3)
}
TEXTS["evil.md"] = " ".join(HOSTILE) + "\n\n# Evil\n\nThe evil rule is 9 days. " + FILL * 8


@pytest.fixture
def shop(engine, tmp_path, monkeypatch):
    """The engine with "shop", indexed from a folder, and two other chunkings of it."""
    source = tmp_path / "shop"
    source.mkdir()
    for name, text in TEXTS.items():
        (source / name).write_text(text)
    made = indexed(engine, monkeypatch, source)
    base = catalogue.source("shop", settings=engine.settings)
    list(index.build_each(variants_named(base, "100,headings"), settings=engine.settings))
    return made


@pytest.fixture
def spec(tmp_path):
    rows = [
        {
            "id": f"q-{name}",
            "text": f"What is the {name} rule?",
            "mode": "plain",
            "relevant": [{"doc": f"{name}.md", "quote": f"The {name} rule is {n} days."}],
        }
        for n, name in ((3, "returns"), (4, "refund"), (5, "customs"), (9, "evil"))
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return Spec("shop", ("bm25", "dense"), split="all", questions=(str(path),), chunkings=("100", "headings"))


@pytest.fixture
def measured(shop, spec):
    """The three chunkings, measured and saved."""
    out = place(shop.settings, "three")
    measuring.perform(shop, measuring.prepare(shop, spec), out=out)
    return out


def table(app, column):
    return next(one.value for one in app.dataframe if column in one.value.columns)


def test_the_tab_lists_what_there_is_under_the_source_and_under_a_chunking(view, shop):
    for name in ("shop", "shop@100"):
        app = view("corpus.py", "Chunkings", corpus=name)
        found = table(app, "Vectors reused")
        assert list(found["Corpus"]) == ["shop", "shop@100", "shop@headings"]
        assert list(found["Index"]) == ["ready"] * 3
        assert "whole sentences" not in " ".join(found["Cut"])
        assert "A chunking is the source of shop chunked or read in another way" in shown(app)
        assert len(app.get("plotly_chart")) == 1


def test_more_are_begun_and_outdated_ones_refreshed_in_the_background(view, shop, monkeypatch, tmp_path):
    begun = []
    monkeypatch.setattr(builds, "start_chunkings", lambda *given: begun.append(given[:3]))
    app = view("corpus.py", "Chunkings", corpus="shop")
    assert "chunkings_refresh" not in [button.key for button in app.button]
    assert app.button(key="chunkings_make").disabled
    app.session_state["chunkings_new"] = ["tiny"]
    app.run().button(key="chunkings_make").click().run()
    assert "unknown chunking 'tiny'; give a size in characters" in shown(app)
    app.multiselect(key="chunkings_new").set_value(["sentences", "256"]).run()
    app.button(key="chunkings_make").click().run()
    base, sources, _ = begun.pop()
    assert (base, [one.name for one in sources]) == ("shop", ["shop@sentences", "shop@256"])
    (tmp_path / "shop" / "new.md").write_text("One more.")
    monkeypatch.setattr(catalogue, "LOOK_AGAIN_S", 0.0)
    app = view("corpus.py", "Chunkings", corpus="shop")
    assert "shop@100: the source has changed since it was indexed" in shown(app)
    app.button(key="chunkings_refresh").click().run()
    ((_, sources, _),) = begun
    assert [one.name for one in sources] == ["shop@100", "shop@headings"]


def test_deleting_an_index_names_its_chunkings(view, shop):
    assert "its chunkings (shop@100, shop@headings)" in shown(view("corpus.py", "State", corpus="shop"))


def test_routes_by_chunkings_with_what_was_shown(view, measured):
    app = view("evaluate.py", "Chunkings", evaluation="three")
    page, document = html(app), report.read(measured)
    for route, by in document["routes"].items():
        for row in by.values():
            assert f"<b>{row['coverage@1000']:.3f}</b>" in page, route
    assert "700 (in use)" in page
    assert "Mean of the routes" in page
    assert "best" in page
    assert "4 labelled places" in shown(app)
    assert list(table(app, "Tokens a passage")["Corpus"]) == ["shop", "shop@100", "shop@headings"]
    app.selectbox(key="evaluate_chunkings_figure").set_value("density").run()
    values, _ = report.read_questions(measured)
    expected = report.table(values, "shop", "density")["routes"]["bm25"]["shop@100"]["density"]
    assert f"<b>{expected:.3f}</b>" in html(app)
    assert address(app, "figure") == "density"


def test_a_question_is_shown_under_each_chunking_with_the_labelled_text_marked(view, measured):
    app = view("evaluate.py", "Chunkings", evaluation="three", question="q-evil", route="dense")
    page = html(app)
    assert "What is the evil rule?" in page
    assert "<mark>The evil rule is 9 days.</mark>" in page
    assert page.count('class="rs-col"') == 3
    assert "<script>" not in page
    values, _ = report.read_questions(measured)
    for name in ("shop", "shop@100", "shop@headings"):
        assert f'<span class="ms">{values[name]["dense"]["q-evil"]["coverage@1000"]:.3f}</span>' in page


def test_an_evaluation_of_one_chunking_offers_to_measure_all(view, shop, spec, monkeypatch):
    from core.evaluation.experiment import perform, prepare

    one = replace(spec, chunkings=())
    perform(shop, prepare(shop, one), out=place(shop.settings, "one"))
    begun = []
    monkeypatch.setattr(background, "begin", lambda *given, **_: begun.append(given))
    app = view("evaluate.py", "Chunkings", evaluation="one")
    assert "This evaluation measured one chunking." in shown(app)
    app.button(key="evaluate_chunkings_begin").click().run()
    ((_, name, wanted),) = begun
    assert (name, wanted.chunkings) == ("shop-chunkings", ("100", "headings"))
    assert wanted.routes == one.routes


def test_a_corpus_that_has_gone_leaves_the_table_and_says_so(view, measured, shop, tmp_path):
    index.build("other", tmp_path / "shop" / "refund.md", settings=shop.settings)
    index.remove("shop", settings=shop.settings)
    app = view("evaluate.py", "Chunkings", evaluation="three")
    assert "<b>" in html(app)
    assert "shop" in "\n".join(one.value for one in app.error)


def test_marks_stand_where_the_places_are():
    passage = Passage("d:10-30", "d", "", "0123456789abcdefghij", 10, 30)
    place = Area("d", 12, 15)
    assert marked(passage, [place]) == "01<mark>234</mark>56789abcdefghij"
    overlapping = [place, Area("d", 14, 18), Area("d", 0, 11)]
    assert marked(passage, overlapping) == ("<mark>0</mark>1<mark>234</mark><mark>567</mark>89abcdefghij")
    assert marked(passage, [Area("other", 12, 15)]) is None
    assert (
        marked(replace(passage, text="<b>3456789abcdefghij"), [place])
        == "&lt;b<mark>&gt;34</mark>56789abcdefghij"
    )
