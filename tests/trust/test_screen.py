"""What is on the screen is what is stored, logged step by step and exported; a replay repeats it."""

import json
import re
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup

from core.cli import main
from core.domain.format import milliseconds
from core.domain.types import Query, Turn
from core.engine.request import Request
from core.routes.registry import routes
from tests.fakes import ScriptedLLM
from tests.pages.reading import html
from ui.components.hits import only_ranks, score_text

pytestmark = pytest.mark.trust

ASKED = ("bm25", "dense", "hybrid_rrf", "hybrid_linear", "mmr", "dedupe", "rewrite", "hyde", "rag_fusion")
QUERY = Query("What of a fragile box?", (Turn("user", "My box arrived crushed."),))
REPLIES = {"hyde": "Fragile items are double boxed.", "variants": "fragile box\nsend back", "grade": "0.6"}


def on_screen(app):
    """The columns of Compare by title: the time, and each hit's rank, title and score."""
    columns = {}
    for column in BeautifulSoup(html(app), "html.parser").select(".rs-col"):
        hits = []
        for hit in column.select(".rs-hit"):
            found = {name: hit.select(f".{name}") for name in ("rank", "title", "score")}
            hits.append({name: "".join(one.get_text() for one in some) for name, some in found.items()})
        title, took = (column.select_one(place).get_text() for place in (".name > *", ".ms"))
        columns[title] = {"ms": took, "hits": hits}
    return columns


@pytest.fixture
def run(engine):
    """A run of many routes, stored."""
    engine.fake_llm = ScriptedLLM(REPLIES)
    made = engine.ask(Request(QUERY, "tiny", ASKED))
    assert engine.store.flush()
    assert {one.status for one in made.results} == {"ok"}
    return made


def test_the_screen_shows_what_is_stored(visit, engine, run):
    stored = engine.store.load(run.id)
    assert stored == run
    shown = on_screen(visit(run=run.id, depth="50", tab="Columns"))
    assert set(shown) == {one.title for one in stored.results}
    for result in stored.results:
        column = shown[result.title]
        assert column["ms"] == milliseconds(result.ms)
        assert [hit["rank"] for hit in column["hits"]] == [str(n) for n in range(1, len(result.hits) + 1)]
        assert [hit["title"] for hit in column["hits"]] == [hit.passage.title for hit in result.hits]
        assert [hit["score"] for hit in column["hits"]] == (
            [""] * len(result.hits)
            if only_ranks(result.hits)
            else [score_text(hit.score) for hit in result.hits]
        )


def test_the_log_of_steps_ends_in_what_the_screen_shows(engine, run):
    """One of the lists that a route's steps tell is the ranking on the page."""
    for result in run.results:
        lists = [[id for id, _ in span.hits] for span in result.spans if span.hits is not None]
        shown = [hit.passage.id for hit in result.hits]
        assert shown in lists, result.route
        top = [span for span in result.spans if span.parent is None]
        assert result.ms >= max(span.start_ms + span.ms for span in top) - 1e-6


def test_exported_runs_are_what_the_page_shows(visit, engine, run):
    shown = on_screen(visit(run=run.id, depth="50", tab="Columns"))
    lines = [json.loads(line) for line in engine.store.export_jsonl(run).splitlines()]
    assert [line["route"] for line in lines] == list(ASKED)
    trec = [line.split() for line in engine.store.export_trec(run).splitlines()]
    ids = {hit.passage.id: hit.passage.title for one in run.results for hit in one.hits}
    for line in lines:
        column = shown[routes()[line["route"]].title]
        titles = [hit["title"] for hit in column["hits"]]
        assert [hit["title"] for hit in line["hits"]] == titles
        told = [score_text(hit["score"]) for hit in line["hits"]]
        assert [hit["score"] for hit in column["hits"]] in (told, [""] * len(told))
        ranked = [parts for parts in trec if parts[5] == line["route"]]
        assert [ids[parts[2]] for parts in ranked] == titles
        assert [parts[3] for parts in ranked] == [hit["rank"] for hit in column["hits"]]
    elsewhere = engine.store.export_bundle([run.id])
    engine.store.deletion.undo_s = 0
    engine.store.delete(run.id)
    engine.forget(run.id)
    assert engine.store.import_bundle(elsewhere) == [run.id]
    assert on_screen(visit(run=run.id, depth="50", tab="Columns")) == shown


def test_the_command_line_tells_the_same_run(visit, engine, run, capsys):
    assert main(["export", run.id, "--format", "jsonl", "--out", "-"]) == 0
    assert capsys.readouterr().out == engine.store.export_jsonl(run)
    arguments = ["ask", QUERY.text, "--corpus", "tiny", "--routes", "bm25,dense,hybrid_rrf", "--json"]
    assert main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    engine.store.flush()
    shown = on_screen(visit(run=told["run_id"], depth="50", tab="Columns"))
    for result in told["results"]:
        titles = [hit["title"] for hit in shown[routes()[result["route"]].title]["hits"]]
        assert [hit["title"] for hit in result["hits"]] == titles


def steady(text):
    """Without what belongs to one run alone: its id and its moment."""
    return re.sub(r"[0-9a-f]{16}", "ID", text)


def test_two_replays_are_byte_for_byte_the_run_they_repeat(engine, tmp_path):
    engine.fake_llm = ScriptedLLM(REPLIES)
    # Isolated: of two routes that share a step, the one that comes first does it, and that varies from run to
    # run.
    asked = Request(QUERY, "tiny", ASKED, answers="all", mode="live", timing="isolated")
    live = engine.ask(asked)
    engine.fake_llm = ScriptedLLM(missing="no model is here")
    first, second = (engine.ask(replace(asked, mode="replay")) for _ in range(2))
    assert engine.fake_llm.requests == []
    trec = [engine.store.export_trec(replace(run, id="same")).encode() for run in (live, first, second)]
    assert trec[0] == trec[1] == trec[2]
    assert trec[0]
    for one, other, again in zip(live.results, first.results, second.results, strict=True):
        assert (one.status, one.answer, one.citations, one.hits) == (
            other.status,
            other.answer,
            other.citations,
            other.hits,
        )
        told = [
            [(span.name, span.kind, span.parent, span.output, span.hits, span.calls) for span in result.spans]
            for result in (one, other, again)
        ]
        assert steady(repr(told[0])) == steady(repr(told[1])) == steady(repr(told[2]))
        model = [[span.ms for span in some.spans if span.name.startswith("ask ")] for some in (other, again)]
        assert model[0] == model[1]  # the time of the call when it was made
