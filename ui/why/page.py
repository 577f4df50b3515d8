"""The page on why routes found or lost passages: its choices, and the parts in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core.analysis import external
from core.analysis.diagnosis import Diagnosis, diagnose, disputed, mode_of
from core.analysis.loss_evidence import unmet_in
from core.analysis.occurrences import held
from core.analysis.passage_trace import PassageTrace
from core.analysis.searches import rewrites
from core.corpus.corpus import Corpus
from core.domain.relevance import FULL, relevant
from core.domain.types import Run
from ui.app import opened, picked
from ui.app.choice import choice
from ui.app.markup import cut, join, md, show, tag
from ui.components import complaint
from ui.components.gold import gold_fates, gold_quotes, labelled_mode
from ui.components.view import DEPTHS
from ui.why import diagnoses, find, rank_steps

LINKS = 3
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
def draw(run: Run, gold: Mapping[str, int]) -> None:
    """Draw the page below the line about the run."""
    if not run.results:
        st.info("No route in this run has finished. Run the question again from Compare.")
        return
    corpus = find.corpus_of(run)
    quotes = gold_quotes(run, FULL)
    before = gold_fates(run)
    funnels = [PassageTrace(result, quotes, unmet_in(corpus), before) for result in run.results]
    wanted = relevant(gold) if any(grade > 0 for grade in gold.values()) else []
    asked = [st.query_params.get("passage", ""), st.session_state.get(picked.PASSAGE) or ""]
    beyond = find.beyond(corpus, run, [*gold, *asked])
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        none = "All labelled passages" if wanted else "Passage that most routes miss"
        chosen = picked.pick(run, gold, none=none, also=beyond)
        depth = _depth()
        find.find(corpus, run)
        looked_at = {**run.passages, **beyond}.get(chosen or "")
        complaint.popover(run, "wrong_here", gold, wanted=looked_at)
    view = diagnoses.DiagnosisView(funnels, depth, gold, {**run.passages, **beyond}, run.corpus)
    if wanted:
        _diagnosed(run, view, corpus)
    else:
        st.info(
            "This question has no labels, so RouteScope cannot judge the routes. Below, you can follow one"
            " passage through each route. To judge the routes, mark the passage that should have been found."
        )
    _depths(run)
    ids = [chosen] if chosen else wanted
    if not ids:
        ids = _disputed(run, depth)
    if not ids:
        return
    show(join([diagnoses.passage(id, view) for id in ids]))
    for id in ids:
        if not held(funnels, id):
            show(find.unfound(corpus, run, id))
    if chosen and chosen in view.passages:
        text = tag("div", view.passages[chosen].text, css="rs-why-text", dir="auto")
        show(tag("details", tag("summary", "Show passage text"), text, css="rs rs-why-none"))
    _pictures(ids, view)


def _depths(run: Run) -> None:
    """Draw how far external pipelines can be inspected."""
    said = [words for result in run.results if (words := external.depth(result))]
    if said:
        st.caption(md(" ".join(said)))


def _depth() -> int:
    return choice("depth", "depth", "Top", DEPTHS, usual=10, segmented=True)


def _diagnosed(run: Run, view: diagnoses.DiagnosisView, corpus: Corpus | None) -> None:
    made = diagnose(run, view.funnels, view.gold, view.depth)
    terms = corpus.analyzer.terms if corpus is not None else None
    mode = mode_of(run, view.gold, labelled_mode(run), view.passages, terms)
    show(join([diagnoses.headline(made, mode, view.depth), diagnoses.diagnoses(made, view)]))
    _look_closer(made)


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


def _disputed(run: Run, depth: int) -> list[str]:
    base = st.session_state.get("baseline")
    id = disputed(run, base if isinstance(base, str) else None, depth)
    if id is None:
        st.caption("No route in this run found a passage.")
        return []
    st.caption(
        md(
            f"No expected passage is set, so this shows a hit of the first route's top {depth} that most "
            "other routes miss. It may be irrelevant."
        )
    )
    return [id]


def _pictures(ids: Sequence[str], view: diagnoses.DiagnosisView) -> None:
    """Draw the first passage open and the other labelled ones folded."""
    parts = [tag("h3", "Rank after each step", css="rs-part")]
    for at, id in enumerate(ids[:DRAWN]):
        summary = tag("summary", view.title(id, 140), dir="auto")
        parts.append(
            tag(
                "details",
                summary,
                rank_steps.picture(id, view),
                css="rs-why-none",
                open="" if at else "open",
            )
        )
    more = len(ids) - DRAWN
    if more > 0:
        parts.append(
            tag("div", f"{more} more labelled passages. Select one above to show its ranks.", css="dim")
        )
    show(tag("div", *parts, css="rs"))
