"""The effect of a changed fusion on the labelled set's metrics, with confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.analysis.what_if.fusion import ReplayedFusion
from core.domain.format import between, number
from core.domain.types import RouteResult, Run
from core.engine.request import settled
from core.evaluation.finding import Finding, listed, sentence
from core.evaluation.tuning.batch_run import Base, BatchRun, after, base, compare
from core.routes.registry import routes
from ui.app import address, say
from ui.app.choice import choice
from ui.app.markup import fragment, md, show
from ui.components import batch_run

SPLIT = "fusion_split"
ALL = "all"


def draw(
    run: Run, result: RouteResult, fusion: ReplayedFusion, changes: Mapping[str, Any], *, ranks: bool
) -> None:
    """Draw the effect of the changes on the labelled questions."""
    st.markdown("##### Effect on all labelled questions")
    parameters, _ = settled(routes()[result.route], result.parameters)  # those that this version has
    survey = batch_run.batch_ran(run.corpus, result, parameters, "fusion_survey")
    if survey is None:
        return
    if survey.fingerprint != run.fingerprint:
        st.caption("The corpus was reindexed after this run. These figures come from the current index.")
    key = f"{survey.name}:{run.id}:{result.route}:{fusion.span.id}"
    found = _base(key, survey, result.route, fusion, ranks)
    ids = _split(survey, found)
    moved = [id for id in ids if found.asked[id].fusion is not None]
    if not moved:
        st.caption("No labelled question in this split used this step, so there are no figures.")
        return
    _effect(compare(found.before, after(found, result.route, changes, ids)), changes)
    say.caption(_counted(found, ids, moved, ranks=ranks))


@st.cache_resource(max_entries=8, show_spinner="Reading the fused lists of all questions")
def _base(key: str, _survey: BatchRun, route: str, _fusion: ReplayedFusion, ranks: bool) -> Base:  # noqa: ARG001
    return base(_survey, route, _fusion, ranks=ranks)


def _split(survey: BatchRun, found: Base) -> list[str]:
    """Draw the choice of a split and return its questions."""
    splits = {question.id: question.split or ALL for question in survey.labelled.questions}
    there = sorted({splits[id] for id in found.asked} - {ALL})
    if len(there) < 2:
        address.keep("split", None)
        return list(found.asked)
    named = {**{split: md(split) for split in there}, ALL: "all"}
    chosen = choice("split", SPLIT, "Questions", named, segmented=True)
    if chosen != there[0]:
        say.warning(f"Choose values on {there[0]} and check the other questions once, at the end.")
    return [id for id in found.asked if chosen in (ALL, splits[id])]


def _effect(compared: Sequence[Finding], changes: Mapping[str, Any]) -> None:
    """Draw which metrics change, in words and as a table."""
    texts = [sentence(one) for one in compared if one.shown]
    if rest := [one.metric for one in compared if not one.shown]:
        texts.append(f"No difference found in {listed(rest)}: each confidence interval includes 0.")
    rows = []
    for one in compared:
        before, change = one.before or 0.0, one.estimate or 0.0
        interval = between(*one.interval, signed=True) if one.interval else "–"
        rows.append((one, (number(before), number(before + change), number(change, signed=True), interval)))
    show(fragment("fusion.effect", texts[0], texts[1:], bool(changes), rows))


def _counted(found: Base, ids: Sequence[str], moved: Sequence[str], *, ranks: bool) -> str:
    """Describe which questions the figures cover."""
    whole, same = len(found.survey.labelled.questions), len(ids) - len(moved)
    sentences = {
        f"{len(ids)} labelled questions, the same before and after. Intervals: t+1, 95%.": True,
        "The figures measure this step's list. Later steps reorder it for the final ranking.": not ranks,
        f"{same} did not use this step and count unchanged.": same,
        f"{found.failed} failed and do not count.": found.failed,
        f"{found.unlabelled} of {whole} have no relevant passage and do not count.": found.unlabelled,
    }
    return " ".join(text for text, holds in sentences.items() if holds)
