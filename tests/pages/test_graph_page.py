"""Graph: walks of a real run of in-memory backends, hostile names, and what is said where there is none."""

import json
from dataclasses import replace

from core.analysis.walks import walks
from core.domain.outputs import Search
from core.domain.types import Query
from core.engine.request import Request
from tests.pages.reading import html, plain, shown
from tests.runs import HOSTILE

QUESTION = "How many business days does express shipping take?"
EVIL = " ".join(HOSTILE)


def asked(engine, question=QUESTION, names=("bm25", "graph")):
    run = engine.ask(Request(Query(question), "tiny", names))
    assert engine.store.flush()
    return run


def test_the_page_shows_where_a_walk_began_and_what_it_reached(visit, engine):
    run = asked(engine)
    (one,) = walks(run.results[1])
    app = visit("steps.py?view=Graph", run=run.id)
    assert not app.exception
    text = shown(app)
    assert f"{one.walk.iterations} iterations" in text
    drawn = json.loads(app.main.get("plotly_chart")[-1].proto.spec)["data"]
    nodes = [trace for trace in drawn if trace["mode"] == "markers+text"]
    assert sum(len(trace["text"]) for trace in nodes) == len(one.walk.nodes)
    body = html(app)
    for seed in one.entities.seeds:
        assert seed.phrase in plain(body)
        assert f"{seed.weight:.3f}" in body


def test_a_question_that_names_nothing_is_told(visit, engine):
    app = visit("steps.py?view=Graph", run=asked(engine, "of the").id)
    assert not app.exception
    assert "ranked by dense alone" in shown(app)


def test_a_run_without_a_walk_tells_the_command(visit, engine):
    app = visit("steps.py?view=Graph", run=asked(engine, names=("bm25",)).id)
    assert "No route in this run walked a graph" in shown(app)
    assert "graph_build" in [button.key for button in app.button]


def test_names_of_a_graph_are_text(visit, engine):
    run = asked(engine)
    result = run.results[1]
    (one,) = walks(result)
    walk = replace(one.walk, nodes=tuple(replace(node, name=EVIL) for node in one.walk.nodes))
    entities = replace(
        one.entities, seeds=tuple(replace(seed, phrase=EVIL, asked=EVIL) for seed in one.entities.seeds)
    )
    spans = tuple(
        replace(span, output=Search(walk=walk))
        if span.id == one.span.id
        else replace(span, output=entities)
        if span.output == one.entities
        else span
        for span in result.spans
    )
    engine.store.save(replace(run, id="hostile", results=(run.results[0], replace(result, spans=spans))))
    assert engine.store.flush()
    app = visit("steps.py?view=Graph", run="hostile")
    assert not app.exception
    assert "<script" not in html(app)
    assert "<img src=http" not in html(app)
    assert "<img" not in app.main.get("plotly_chart")[-1].proto.spec
