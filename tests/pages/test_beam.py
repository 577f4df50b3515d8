"""The tree of segments, drawn from stored runs and ranked anew by other weights."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from core.domain.background_job import jobs
from core.domain.outputs import Segment, SegmentTree
from core.domain.types import Query, RouteResult, Span
from core.engine.request import Request
from core.steps.beam import trees
from tests.pages.reading import html
from tests.reflecting import ScriptedReflection, by_default, passage_of, segment
from tests.runs import HOSTILE, make_run


def page(run_id):
    """A page with nothing but the view."""
    import streamlit as st

    from core.engine.engine import shared_engine
    from ui.evaluators import beam

    beam.draw(shared_engine().run(run_id))
    st.caption("drawn")


def visit(run_id):
    app = AppTest.from_function(page, kwargs={"run_id": run_id}, default_timeout=30).run()
    assert not app.exception, app.exception
    return app


def chosen(text):
    """The texts marked as chosen."""
    return [
        row.split("<b")[1].split(">", 1)[1].split("</b>")[0]
        for row in text.split("<tr")[1:]
        if ">chosen<" in row
    ]


@pytest.fixture
def asked(engine):
    """A run by the real steps in which relevance and support prefer different passages."""

    def script(prompt):
        if "<paragraph>" not in prompt:
            return by_default(prompt)
        title = passage_of(prompt).partition("\n")[0][:7]
        if title == "Crushed":
            return segment(f"By {title}.", relevant=0.9, support=(0.1, 0.0, 0.9))
        return segment(f"By {title}.", relevant=0.2, support=(0.8 if title == "Returns" else 0.3, 0.1, 0.1))

    engine.fake_reflection = ScriptedReflection(script)
    run = engine.ask(
        Request(Query("My box arrived crushed, how to send it back?"), "tiny", ("self_rag", "bm25"))
    )
    assert [result.status for result in run.results] == ["ok", "ok"]
    assert engine.store.flush()
    jobs.clear()
    engine.fake_reflection = None  # nothing can be asked any more
    return run


def test_the_tree_is_drawn_from_the_stored_run_and_ranked_anew(engine, asked):
    app = visit(asked.id)
    tree = trees(engine.run(asked.id))[0][2]
    text = html(app)
    for branch in tree.branches:
        assert branch.text in text
        assert f"{branch.score:.2f}" in text
        assert f"{branch.relevance:.2f}" in text
    first = next(branch.text for branch in tree.branches if branch.chosen)
    assert chosen(text) == [first]
    assert "By Crushed" not in first
    assert tree.why in text
    boxes = {box.label: box for box in app.number_input}
    assert list(boxes) == ["Weight of relevance", "Weight of support", "Weight of utility"]
    assert [box.value for box in boxes.values()] == [1.0, 1.0, 0.5]
    boxes["Weight of relevance"].set_value(5.0)
    boxes["Weight of support"].set_value(0.0).run()
    assert not app.exception
    assert chosen(html(app)) == ["By Crushed."]
    assert "ranked with other weights" in html(app)
    again = {box.label: box for box in app.number_input}
    again["Weight of relevance"].set_value(1.0)
    again["Weight of support"].set_value(1.0).run()
    assert html(app) == text


def test_a_run_without_a_tree_says_so(engine, stored):
    assert "No route of this run wrote alternative segments" in html(visit("good"))


def tree_run(output, run_id="trees"):
    span = Span(1, None, HOSTILE[1], "EVALUATOR", 0, 1, {}, output)
    result = RouteResult("unheard_of", HOSTILE[2], "ok", 1.0, spans=(span,))
    return replace(make_run(hostile=True, run_id=run_id, corpus="tiny"), results=(result,))


def test_hostile_text_is_shown_as_text_and_what_was_not_judged_is_said(engine):
    id = next(iter(make_run(hostile=True).passages))
    one = Segment(id, HOSTILE[0], support={"fully": 1}, score=1.5, chosen=True)
    below = replace(one, passage=HOSTILE[2], parent=0, depth=2, chosen=False, relevance=0.25, support=None)
    output = SegmentTree(HOSTILE[0], HOSTILE[2], (one, below), {})
    engine.store.save(tree_run(output))
    assert engine.store.flush()
    app = visit("trees")
    text = html(app)
    for mark in ("<img", "<script", "<svg", 'onmouseover="alert', "</style></div><svg"):
        assert mark not in text, mark
    assert "&lt;img src=http://evil.example/x.png" in text
    assert text.count("not judged") == 4
    assert "0.25" in text
    assert len(app.number_input) == 0, "another route's tree without weights is only shown"


@pytest.mark.parametrize("parents", [(0,), (None, 1), (None, 2, 1), (7,), (None, -1)])
def test_segments_that_go_round_in_a_circle_are_drawn_all_the_same(engine, parents):
    """An imported run may hold any parents; those reached from the beginning are shown."""
    some = tuple(Segment("p", f"Said {n}.", 0.5, parent=parent) for n, parent in enumerate(parents))
    engine.store.save(tree_run(SegmentTree("", "", some, {"relevance": 1.0})))
    assert engine.store.flush()
    app = visit("trees")
    assert ("Said 0." in html(app)) == (parents[0] is None)
    app.number_input[0].set_value(2.0).run()
    assert not app.exception
