"""The Evaluators page: first what graders and decisions did in words, then each of them to look into."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from core.analysis.answers import decisions, warned, writing
from core.analysis.grades import JUDGING, decided, findings, held
from core.domain.types import Run
from core.routes.registry import routes
from core.steps.beam import trees
from ui.app import opened, say
from ui.app.markup import cut, fragment, show
from ui.app.tabs import tabs
from ui.components import gold as labels
from ui.evaluators import beam, gates, grades, sentence_filter, trust
from ui.evaluators.decisions import drafts, path

TAB = "evaluators_tab"
KINDS = ("Grades", "Decisions", "Passed and dropped", "Drafts", "Branches")
MAX_SENTENCES = 6  # sentences about passages, and lines of decisions, that are shown at once


@st.fragment  # a click leaves the line on the run and the sidebar as they are
def draw(run: Run, gold: Mapping[str, int]) -> None:
    """Draw the page below the line about the run."""
    views = _views(run, gold)
    if not views:
        st.subheader("No route of this run graded or decided anything", anchor=False)
        say.caption(f"Run a question with a route that does: {_judging()}.")
        opened.ask()
        return
    words(run, gold)
    tabs(views, TAB)
    lacking = [name.lower() for name in KINDS if name not in views]
    if lacking:
        say.caption(f"Not in this run: {', '.join(lacking)}. Routes that may have them: {_judging()}.")


def words(run: Run, gold: Mapping[str, int]) -> None:
    """Draw the main findings."""
    found = findings(run, gold)
    if not gold:
        found = ["This question has no labels, so it is unknown whether a dropped passage was relevant."]
    elif not found:
        found = ["No grader or filter dropped a labelled passage, and none trusted an unjudged one."]
    more = [f"{len(found) - MAX_SENTENCES} more."] if len(found) > MAX_SENTENCES else []
    names: dict[str, list[str]] = {}  # titles of the routes by the way they took
    for result, way in decided(run):
        names.setdefault(way, []).append(cut(result.title, 40))
    ways = sorted(names.items(), key=lambda one: (len(one[1]) > 3, -one[0].count("→")))
    told = [held(run), *found[:MAX_SENTENCES], *more]
    show(fragment("evaluators.words", told, ways[:MAX_SENTENCES], len(ways) - MAX_SENTENCES))


def _views(run: Run, gold: Mapping[str, int]) -> dict[str, Callable[[], None]]:
    """Return the views of what this run has."""
    quotes = labels.gold_of(run).quotes
    deciding = [one for one in run.results if decisions(one) or warned(one)]
    writers = [one for one in run.results if writing(one)]
    any_of: dict[str, tuple[object, Callable[[], None]]] = {
        "Grades": (grades.steps(run), lambda: _grades(run, gold)),
        "Decisions": (deciding, lambda: _decisions(run)),
        "Passed and dropped": (sentence_filter.steps(run), lambda: sentence_filter.draw(run, gold, quotes)),
        "Drafts": (writers, lambda: show(drafts(run))),
        "Branches": (trees(run), lambda: beam.draw(run)),
    }
    return {name: draw for name, (there, draw) in any_of.items() if there}


def _grades(run: Run, gold: Mapping[str, int]) -> None:
    grades.draw(run, gold)
    st.page_link("tune.py", label="Measure thresholds over all labelled questions on Tune")
    trust.draw(run)


def _decisions(run: Run) -> None:
    gates.draw(run)
    show(path(run))
    trust.judgements(run)


def _judging() -> str:
    return ", ".join(route.title for route in routes().values() if route.family in JUDGING)
