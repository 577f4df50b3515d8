"""The page on why routes found or lost passages: its choices, and the parts in their order."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.analysis import diagnosis as words
from core.analysis import external
from core.analysis.diagnosis import Diagnosis, diagnose, held, mode_of
from core.analysis.label_flow import flow
from core.analysis.loss_evidence import unmet_in
from core.analysis.passage_trace import PassageTrace
from core.analysis.searches import rewrites
from core.corpus.corpus import Corpus
from core.domain.relevance import RelevantLabel
from core.domain.types import Run
from core.evaluation.finding import count
from core.evaluation.gold import Gold, JudgedAnswer, judge_answers
from ui.app import opened, picked, say
from ui.app.choice import choice
from ui.app.markup import cut, join, show, tag
from ui.app.plot import pick_point
from ui.charts.label_flow import describe_flow, label_flow
from ui.components import complaint, gold
from ui.components.view import DEPTHS
from ui.why import answers, diagnoses, displaced, find, keeping

LINKS = 3
MANY = 9  # routes above which only those that lose a passage are drawn
DRAWN = 4  # labelled passages that are drawn at once
VIEWS = {  # of Steps
    "fused away": "Fusion",
    "put behind": "Fusion",
    "reranked away": "Fusion",
    "walked past": "Graph",
    "query drift": "Transform",
    "dropped by grade": "Evaluators",
    "compressed out": "Evaluators",
    "removed by a filter": "Transform",
}


@st.fragment  # a click leaves the line on the run and the sidebar as they are
def draw(run: Run) -> None:
    """Draw the page below the line about the run."""
    if not run.results:
        st.info("No route in this run has finished.")
        opened.to("compare.py", "Run the question again")
        return
    known, corpus = gold.gold_of(run), find.corpus_of(run)
    funnels = [PassageTrace(one, known.quotes, unmet_in(corpus), known.before) for one in run.results]
    wanted = known.wanted()
    asked = [st.query_params.get("passage", ""), st.session_state.get(picked.PASSAGE) or ""]
    beyond = find.beyond(corpus, run, [*known.grades, *asked])
    first = st.container()
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        none = "All labelled passages" if wanted else "Choose a passage to follow"
        chosen = picked.pick(run, known.grades, none=none, also=beyond)
        depth = choice("depth", "depth", "Top", DEPTHS, usual=10, segmented=True)
        find.find(run)
        looked_at = {**run.passages, **beyond}.get(chosen or "")
        complaint.popover(run, "wrong_here", known.grades, wanted=looked_at)
    passages = {**run.passages, **beyond}
    view = diagnoses.DiagnosisView(funnels, depth, known.grades, passages, run.corpus, bool(wanted))
    judged = judge_answers(run, known, funnels)
    if wanted:
        _diagnosed(run, known, view, corpus, first, judged)
    else:
        with first:
            find.expected(run, view)
    if judged and not wanted:
        answers.draw(run, known, judged)
    if depths := " ".join(filter(None, map(external.depth, run.results))):
        say.caption(depths)  # how far external pipelines can be inspected
    ids = [chosen] if chosen else [_shown(funnels, label) for label in wanted]
    if looked_at is not None and not known.grades.get(looked_at.id):
        keeping.expected(run, looked_at, "expected", "Mark this passage as expected")
    if not ids:
        return
    show(join([diagnoses.passage(id, view) for id in ids]))
    displaced.draw(run, ids, view)
    for id in ids:
        if not held(funnels, id):
            find.unfound(corpus, run, id)
    if looked_at is not None:
        text = tag("div", looked_at.text, css="rs-why-text", dir="auto")
        show(tag("details", tag("summary", "Show passage text"), text, css="rs rs-why-none"))
    show(diagnoses.pictures(ids, view, DRAWN))


def _shown(funnels: Sequence[PassageTrace], label: RelevantLabel) -> str:
    """Return the passage of a label that some route ranks best."""
    ranks = {id: [one.flow.final[id] for one in funnels if id in one.flow.final] for id in label.passages}
    return min(ranks, key=lambda id: min(ranks[id], default=10**9))


def _diagnosed(
    run: Run,
    known: Gold,
    view: diagnoses.DiagnosisView,
    corpus: Corpus | None,
    first: DeltaGenerator,
    judged: Sequence[JudgedAnswer],
) -> None:
    """Draw the sentence, the flow and the answers into `first`, and the table below."""
    wanted = known.wanted()
    made = diagnose(run, view.funnels, wanted, known.ndcg(run.results), view.depth)
    terms = corpus.analyzer.terms if corpus is not None else None
    mode = mode_of(run, wanted, known.mode, view.passages, terms)
    with first:
        told = words.headline(made, view.depth, [one.right for one in judged])
        show(tag("div", told, css="rs rs-why-head"))
        keeping.last(run)
        routes = _flow(made, view, wanted)
        if judged:
            answers.draw(run, known, [one for one in judged if one.route in routes])
    made = [one for one in made if one.result.route in routes]
    show(diagnoses.diagnoses(made, view))
    if mode is not None:
        say.caption(f"What makes this question hard: {mode.name} ({words.hard(mode)}).")
    _look_closer(made)


def _flow(
    made: Sequence[Diagnosis], view: diagnoses.DiagnosisView, wanted: Sequence[RelevantLabel]
) -> set[str]:
    """Draw the labels through each route's steps, and return the routes that are chosen there."""
    funnels = {funnel.result.route: funnel for funnel in view.funnels}
    rows = [
        (one.result.route, one.result.title, flow(funnels[one.result.route], wanted, view.depth))
        for one in made
        if one.ran
    ]
    every = {one.result.route for one in made}
    if not rows:
        return every
    if len(rows) > MANY:  # a bar for each route that loses nothing is no finding
        rows = [one for one in rows if len(one[2][-1].present) < len(wanted)] or rows[:1]
        if whole := sum(one.ran for one in made) - len(rows):
            say.caption(f"Without {count(whole, 'routes')} that lose no passage.")
    told = describe_flow(rows, len(wanted))
    chosen = pick_point(label_flow(rows, len(wanted)), "why_flow", told)
    if not chosen:
        return every
    say.caption(f"Only {funnels[chosen[0]].result.title} is shown below. Double-click the figure for all.")
    return {chosen[0]}


def _look_closer(made: Sequence[Diagnosis]) -> None:
    """Draw links to where the losing steps can be examined, for the worst routes of different steps."""
    seen: dict[object, Diagnosis] = {}
    for one in made:
        if one.ran and one.blamed is not None:
            seen.setdefault((one.blamed.kind, one.blamed.step and one.blamed.step.name), one)
    with st.container(horizontal=True, gap="medium"):
        for one in list(seen.values())[:LINKS]:
            if one.blamed is None:
                continue
            wrote = any(text.changed for _, text in rewrites(one.result))
            usual = "Transform" if wrote else None
            view = VIEWS.get(one.blamed.kind, usual)
            step = one.blamed.step.name if one.blamed.step is not None else one.blamed.kind
            label = f"{cut(one.result.title, 30)}: open “{cut(step, 34)}” in {view or 'Compare'}"
            at = {"view": view} if view else {}
            opened.to("steps.py" if view else "compare.py", label, passage=one.lost[0][0], **at)
