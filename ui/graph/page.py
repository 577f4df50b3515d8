"""The walks of a run: drawn, in words, and as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st
from markupsafe import Markup

from core.analysis.run_view import worked
from core.analysis.walks import Walked, looked, placed, walks
from core.corpus.enrichments import store
from core.domain.needs import Need
from core.domain.types import Run
from core.evaluation.finding import count
from core.routes.registry import routes
from ui.app import opened, say
from ui.app.help_mark import term
from ui.app.markup import cut, join, md, show, table, tag
from ui.app.names import title_of
from ui.app.plot import plot
from ui.charts.maps import walk_map
from ui.components.route_choice import route_choice

ROUTE, STEP = "graph_route", "graph_step"
BY: Mapping[str, str] = {"name": "named", "alike": "most alike", "relation": "by a relation"}
MAX_NAMES = 6  # names in a sentence


@st.fragment  # a click leaves the line on the run and the sidebar as they are
def draw(run: Run, gold: Mapping[str, int]) -> None:
    """Draw the page about one run."""
    found = {result.route: walked for result in worked(run) if (walked := walks(result))}
    told = _without(run)
    if not found:
        if not told:
            _none(run)
        return
    by_route = {result.route: result for result in run.results}
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        name = route_choice(run, list(found), ROUTE)
        steps = {one.span.id: one for one in found[name]}
        if st.session_state.get(STEP) not in steps:
            st.session_state[STEP] = next(iter(steps))
        if len(steps) > 1:
            given: dict[str, Any] = {"key": STEP, "width": 320, "persist_state": "session"}
            given["format_func"] = lambda id: cut(f"step {id}: {steps[id].span.name}", 60)
            st.selectbox("Step", list(steps), **given)
    result, one = by_route[name], steps[st.session_state[STEP]]
    marks = [f"◆{gold[node.name]} " if gold.get(node.name) else "" for node in one.walk.nodes]
    names = [
        node.name if node.kind == "phrase" else mark + title_of(run, node.name)
        for node, mark in zip(one.walk.nodes, marks, strict=True)
    ]
    ranks = {id: rank for rank, (id, _) in enumerate(one.span.hits or (), 1)}
    labels = [
        f"{ranks[node.name]} {name}" if node.name in ranks and node.kind == "passage" else name
        for node, name in zip(one.walk.nodes, names, strict=True)
    ]
    told_words = describe_walk(one, names)
    st.markdown(md(told_words))
    plot(walk_map(one.walk, placed(one.walk), labels), "graph_walk", told_words, table=False)
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("##### Where the walk begins")
        show(tag("div", _begun(one), css="rs rs-fusion-rows"))
    with right:
        st.markdown("##### Where it spends its time", help=term("personalised PageRank"))
        show(tag("div", _visited(one, names, ranks), css="rs rs-fusion-rows"))
    opened.to("why.py", "Why a passage is where it is", route=result.route)


def describe_walk(one: Walked, names: list[str]) -> str:
    """Describe where the walk started, how long it was and what it reached."""
    walk, seeds = one.walk, len(one.entities.seeds)
    unknown = ", ".join(f"“{cut(name, 40)}”" for name in one.entities.unknown[:MAX_NAMES])
    first = next((name for node, name in zip(walk.nodes, names, strict=True) if node.kind == "passage"), "")
    return (
        f"The walk begins at {count(seeds, 'phrases')} and {count(walk.begun - seeds, 'passages')} of the "
        f"dense search. It follows an edge with probability {walk.damping:g}, took {walk.iterations} "
        f"iterations over {walk.phrases:,} phrases, {walk.passages:,} passages and {walk.links:,} edges, and "
        f"visits “{cut(first, 70)}” most." + (f" The graph does not have {unknown}." if unknown else "")
    )


def _without(run: Run) -> bool:
    """Draw the routes that found no entity to start from, and return whether there was one."""
    told = False
    for result in worked(run):
        if (entities := looked(result)) is not None:
            told = True
            names = ", ".join(f"“{cut(name, 40)}”" for name in entities.unknown[:MAX_NAMES])
            said = "the question names nothing that the graph has, so passages are ranked by dense alone."
            say.info(f"{cut(result.title, 60)}: {said}{f' Not there: {names}.' if names else ''}")
    return told


def _none(run: Run) -> None:
    st.subheader("No route in this run walked a graph", anchor=False)
    graph = Need.GRAPH.enrichment or ""
    able = ", ".join(f"“{route.title}”" for route in routes().values() if Need.GRAPH in route.every_need)
    build = f"Build the entity graph once ({store.recipe(graph).cost})"
    say.caption(f"{build}, then run a question with one of these routes: {able}.")
    with st.container(horizontal=True, gap="small"):
        if st.button("Build the graph", key="graph_build", help=f"Enrichment “{graph}” on Corpus"):
            st.switch_page("corpus.py", query_params={"corpus": run.corpus})
        opened.to("compare.py", "Choose routes in Compare")


def _begun(one: Walked) -> Markup:
    rows = []
    for seed in one.entities.seeds:
        how = join([f"{BY[seed.by]}: ", tag("span", cut(seed.asked, 80), css="dim")])
        rows.append((cut(seed.phrase, 60), how, seed.passages, f"{seed.weight:.3f}"))
    return table(("Phrase", "How it was found", "Passages", "Weight"), rows, numbers=(2, 3))


def _visited(one: Walked, names: list[str], ranks: Mapping[str, int]) -> Markup:
    rows = []
    for node, name in sorted(zip(one.walk.nodes, names, strict=True), key=lambda pair: -pair[0].score):
        rank = ranks.get(node.name, "–") if node.kind == "passage" else "–"
        called = join([tag("span", f"{node.kind} ", css="dim"), cut(name, 60)])
        rows.append((called, rank, f"{node.score:.2%}", f"{node.seed:.2%}"))
    return table(("Node", "Rank", "Walk", "Restarts"), rows, numbers=(1, 2, 3))
