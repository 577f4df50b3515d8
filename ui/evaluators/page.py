"""The Evaluators page: first what graders and decisions did in words, then each of them to look into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import streamlit as st

from core.analysis.answers import decisions, warned, writing
from core.analysis.grades import JUDGING, decided, findings, held
from core.domain.types import Run
from core.routes.registry import routes
from core.steps.beam import trees
from ui.app.markup import cut, join, md, show, tag
from ui.app.tabs import tabs
from ui.components import gold as labels
from ui.evaluators import beam, gates, grades, sentence_filter, thresholds, trust
from ui.evaluators.decisions import path
from ui.evaluators.drafts import drafts

TAB = "evaluators_tab"
MAX_SENTENCES = 6  # sentences about passages, and lines of decisions, that are shown at once


@st.fragment  # a click leaves the line on the run and the sidebar as they are
def draw(run: Run, gold: Mapping[str, int]) -> None:
    """Draw the page below the line about the run."""
    views = _views(run, gold)
    if not views:
        st.subheader("No route of this run graded or decided anything", anchor=False)
        st.caption(md(f"Run a question with a route that does: {_judging()}."))
        st.page_link("compare.py", label="Go to Compare")
        return
    words(run, gold)
    if st.query_params.get("tab") == "Kept and dropped":  # what links called it before
        st.query_params["tab"] = "Passed and dropped"
    tabs(views, TAB)
    lacking = [
        name
        for name in ("Grades", "Decisions", "Passed and dropped", "Drafts", "Branches")
        if name not in views
    ]
    if lacking:
        st.caption(
            md(f"Not in this run: {', '.join(lacking).lower()}. Routes that may have them: {_judging()}.")
        )


def words(run: Run, gold: Mapping[str, int]) -> None:
    """Draw the main findings."""
    found = findings(run, gold)
    if not gold:
        found = ["This question has no labels, so it is unknown whether a dropped passage was relevant."]
    elif not found:
        found = ["No grader or filter dropped a labelled passage, and none trusted an unjudged one."]
    more = [f"{len(found) - MAX_SENTENCES} more."] if len(found) > MAX_SENTENCES else []
    told = [held(run), *found[:MAX_SENTENCES], *more]
    ways = Counter(way for _, way in decided(run))
    titles = {way: [result.title for result, one in decided(run) if one == way] for way in ways}
    rows = sorted(ways, key=lambda way: (ways[way] > 3, -way.count("→")))
    lines = [
        tag(
            "li",
            tag("b", ", ".join(cut(one, 40) for one in titles[way][:3])),
            f" and {ways[way] - 3} more: " if ways[way] > 3 else ": ",
            cut(way, 200),
        )
        for way in rows[:MAX_SENTENCES]
    ]
    rest = len(rows) - MAX_SENTENCES
    if rest > 0:
        lines.append(tag("li", f"{rest} more: see Decisions", css="dim"))
    body = [tag("li", one, dir="auto") for one in told]
    head = [tag("div", tag("b", "Decisions"))] if lines else []
    show(
        tag("div", tag("ul", *body), *head, tag("ul", *lines) if lines else "", css="rs rs-evaluators-words")
    )


def _views(run: Run, gold: Mapping[str, int]) -> dict[str, Callable[[], None]]:
    views: dict[str, Callable[[], None]] = {}
    if grades.steps(run):
        views["Grades"] = lambda: _grades(run, gold)
    if any(decisions(result) or warned(result) for result in run.results):
        views["Decisions"] = lambda: _decisions(run)
    if sentence_filter.steps(run):
        views["Passed and dropped"] = lambda: sentence_filter.draw(run, gold, labels.gold_of(run).quotes)
    if any(writing(result) for result in run.results):
        views["Drafts"] = lambda: show(drafts(run))
    if trees(run):
        views["Branches"] = lambda: beam.draw(run)
    return views


def _grades(run: Run, gold: Mapping[str, int]) -> None:
    drawn = grades.draw(run, gold)
    if drawn is not None:
        thresholds.draw(run, *drawn)
    trust.draw(run)


def _decisions(run: Run) -> None:
    gates.draw(run)
    show(join([path(run)]))
    trust.judgements(run)


def _judging() -> str:
    return ", ".join(route.title for route in routes().values() if route.family in JUDGING)
