"""Transform: what each route made of the question, its figures equal to the stored run's."""

from dataclasses import replace

import pytest
from bs4 import BeautifulSoup

from core.analysis.embedding_map import cosine
from core.analysis.searches import finds
from core.domain.errors import Unavailable
from core.domain.outputs import Search
from core.domain.types import Span
from tests.pages.reading import address, html, shown
from tests.runs import HOSTILE, IMAGINED, STANDALONE, VARIANTS, passages, ranking

PAGE = "steps.py?view=Transform"


def named(run, name):
    return next(one for one in run.results if one.route == name)


@pytest.fixture
def labels(monkeypatch):
    """Give every run these grades."""
    grades = {}
    monkeypatch.setattr("ui.transform.page.gold_grades", lambda _: grades)
    return grades


def both(run, id="both"):
    """A run whose route with variants searched with the question and with each variant."""
    old = named(run, "rag_fusion")
    pool = passages()
    spans = [old.spans[0], old.spans[1]]
    for n, text in enumerate((run.query.text, *VARIANTS)):
        hits = tuple((one.passage.id, one.score) for one in ranking(pool[12 * n :], n, 30))
        searched = Search((text,))
        spans.append(Span(3 + n, None, "search BM25", "RETRIEVER", 0, 1, {"text": text}, searched, hits))
    results = tuple(replace(old, spans=tuple(spans)) if one is old else one for one in run.results)
    return replace(run, id=id, results=results)


def rows_of(text):
    """The cells of the tables of a page, by row."""
    rows = BeautifulSoup(text, "html.parser").find_all("tr")
    return [[cell.get_text() for cell in row.find_all(["td", "th"])] for row in rows]


@pytest.fixture
def look(visit):
    """Open the page by its address, as a link does."""
    return lambda run, **params: visit(PAGE, run=run, **params)


def test_every_tab_opens_on_any_run(look, stored):
    for tab in ("Texts", "Map"):
        assert (address(look("bad", tab=tab), "tab") or "Texts") == tab


def test_it_begins_with_what_the_rewriting_came_to(look, stored):
    app = look("good")
    assert "3 of 8 routes searched with a rewrite." in shown(app)
    page = html(app)
    assert "<ins>" in page
    assert STANDALONE.split()[-2] in page
    for title in ("BM25", "Dense", "Hybrid (RRF)", "Hybrid (linear)", "CRAG"):
        assert title in page.split("Searched with the question as written: ")[1]


def test_a_run_without_rewriting_says_so(look, engine, stored):
    plain = replace(stored["good"], id="plain", results=stored["good"].results[:4])
    engine.store.save(plain)
    app = look("plain")
    assert "All 4 routes with a result searched with the question as written." in shown(app)
    assert "Tree" not in [tab.label for tab in app.tabs]


def test_a_table_tells_which_text_paid_and_equals_the_store(look, engine, stored, labels):
    run = both(stored["good"])
    engine.store.save(run)
    assert engine.store.flush()
    result = named(engine.store.load("both"), "rag_fusion")
    expected = finds(run, result, 10)
    paid = next(one for one in expected if one.text == VARIANTS[2])
    labels[paid.only[0]] = 3
    app = look("both")
    rows = rows_of(html(app).split("<h4>RAG-Fusion")[1].split("</table>")[0])[1:]
    assert [tuple(map(int, row[1:4])) for row in rows] == [
        (len(one.found), len(one.only), len(one.kept)) for one in expected
    ]
    assert "◆3" in rows[3][4]
    assert f"Only “{VARIANTS[2]}” found" in shown(app)
    assert "No rewrite lost a labelled passage" in shown(app)


def test_a_lost_label_is_told(look, stored, labels):
    run = stored["good"]
    lists = {
        name: [s for s in named(run, name).spans if s.kind == "RETRIEVER"] for name in ("bm25", "rewrite")
    }
    has = {id for span in lists["rewrite"] for id, _ in span.hits[:10]}
    id = next(id for id, _ in lists["bm25"][0].hits[:10] if id not in has)
    labels[id] = 2
    assert "Rewrite + hybrid lost" in shown(look("good"))


def test_a_route_that_asked_otherwise_is_set_against_the_question_of_others(look, stored):
    run = stored["good"]
    page = html(look("good"))
    for name in ("rewrite", "hyde"):
        expected = finds(run, named(run, name), 10)
        block = page.split(f"<h4>{named(run, name).title}")[1].split("</table>")[0]
        rows = rows_of(block)[1:]
        assert [tuple(map(int, row[1:4])) for row in rows] == [
            (len(one.found), len(one.only), len(one.kept)) for one in expected
        ]
        assert rows[0][0] == "the question, in other routes"
    assert "mean of embeddings: 1 rewrite and the question" in page


def test_the_tree_shows_what_each_text_brought(look, engine, stored):
    engine.store.save(both(stored["good"]))
    app = look("both", tab="Tree")
    page = html(app)
    assert "4 queries" in page
    for text in VARIANTS:
        assert text in page
    lists = BeautifulSoup(page, "html.parser").find_all("ul")
    assert max(len(one.find_parents("ul")) for one in lists) == 1
    assert "of its first 10 in the final top 10" in page


def test_the_map_is_honest_and_its_table_true(look, stored, engine):
    run = stored["good"]
    chosen = run.results[0].hits[0].passage
    app = look("good", tab="Map", passage=chosen.id)
    assert "The two axes show" in shown(app)
    assert "by true cosine" in shown(app)
    table = app.dataframe[0].value
    assert set(table["Kind"]) == {"question", "query variant", "hypothetical passage"}
    assert list(table["Cosine"]) == sorted(table["Cosine"], reverse=True)
    embed = engine.embedder("hash").embed_query
    true = cosine(embed(STANDALONE), embed(f"{chosen.title} {chosen.text}"))
    row = table[table["Text"] == STANDALONE]
    assert row["Cosine"].item() == pytest.approx(true, abs=1e-4)
    assert row["Routes"].item() == "Rewrite + hybrid"


def test_texts_stand_beside_the_labelled_passage_with_their_cosines(look, stored, engine, labels):
    gold = stored["good"].results[0].hits[2].passage
    labels[gold.id] = 3
    app = look("good", tab="Map")
    assert gold.text[-40:] in html(app)
    table, embed = app.dataframe[0].value, engine.embedder("hash").embed_query
    true = cosine(embed(IMAGINED), embed(f"{gold.title} {gold.text}"))
    (value,) = table[table["Kind"] == "hypothetical passage"]["Cosine"]
    assert value == pytest.approx(true, abs=1e-4)


def test_a_text_of_the_index_that_found_the_chosen_passage_is_on_the_map(look, engine, stored):
    run = stored["good"]
    chosen, first = run.results[0].hits[0].passage, run.results[0]
    keyed = replace(first.spans[0], output=Search(("q",), keys={chosen.id: "Who sends it back?"}))
    engine.store.save(replace(run, id="keyed", results=(replace(first, spans=(keyed,)), *run.results[1:])))
    table = look("keyed", tab="Map", passage=chosen.id).dataframe[0].value
    assert table[table["Text"] == "Who sends it back?"]["Kind"].tolist() == [
        "text in the index for the passage"
    ]


def test_a_second_look_embeds_nothing(look, stored, engine):
    app = look("good", tab="Map")
    before = len(engine.embedder("hash").calls)
    app.run()
    assert len(engine.embedder("hash").calls) == before


def test_without_an_embedder_it_says_so(look, engine, stored, monkeypatch):
    def none(_):
        raise Unavailable(f"no model {HOSTILE[1]}")

    monkeypatch.setattr(engine, "embedder", none)
    engine.store.save(replace(stored["good"], id="fresh"))
    app = look("fresh", tab="Map")
    assert "Similarities need the embedder" in shown(app)
    assert ": no model" in shown(app)
