"""Each route's answer next to the right one: whether it is right, which claim is not, and its evidence."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.analysis.answers import checked
from core.analysis.label_flow import ORDER, Reading
from core.domain.types import RouteResult, Run
from core.evaluation.finding import count
from core.evaluation.gold import Gold, JudgedAnswer
from ui.app.markup import cut, fragment, show
from ui.components.citations import said
from ui.why import keeping

HOW = {
    "a person": "marked by a person",
    "exact": "equals the right answer",
    "contained": "contains the right answer",
    "content words": "by the content words it shares with the right answer",
    "abstention": "by whether the documents answer",
}
EVIDENCE: dict[Reading, str] = {
    "cited": "cited",
    "read": "read and ignored",
    "cut": "cut before the prompt",
    "not read": "retrieved, not read",
    "not retrieved": "not retrieved",
}
VERDICTS: dict[bool | None, tuple[str, str]] = {
    True: ("right", "up"),
    False: ("wrong", "bad"),
    None: ("not judged", "dim"),
}


def draw(run: Run, known: Gold, judged: Sequence[JudgedAnswer]) -> None:
    """Draw the right answer and all answers, equal ones once; right ones are folded if others are not."""
    left, beside = st.columns([1, 2], gap="medium")
    with left:
        show(fragment("why.right", known))
    groups: dict[tuple[str, bool | None], list[JudgedAnswer]] = {}
    for one in judged:
        groups.setdefault((one.text, one.right), []).append(one)
    good = [group for group in groups.values() if group[0].right]
    first = [group for group in groups.values() if not group[0].right]
    results = {result.route: result for result in run.results}
    with beside:
        for group in first or good:
            _answer(run, results[group[0].route], group)
        if first and good:
            with st.expander(count(sum(map(len, good)), "right answers")):
                for group in good:
                    _answer(run, results[group[0].route], group)


def _answer(run: Run, result: RouteResult, group: Sequence[JudgedAnswer]) -> None:
    """Draw the answer that all routes of `group` gave."""
    found, one = checked(result), group[0]
    if found is None:
        return
    names = cut(", ".join(each.title for each in group), 120)
    flaws = [
        (claim.text if len(one.claims) > 1 else "", claim.why, claim.right is False)
        for claim in one.claims
        if claim.why and claim.right is not True
    ]
    came: dict[Reading, list[str]] = {}
    for each in group:
        if each.evidence:
            came.setdefault(min(each.evidence.values(), key=ORDER.index), []).append(each.title)
    readings = sorted(came, key=ORDER.index)
    evidence = [(EVIDENCE[reading], reading == "cited", came[reading]) for reading in readings]
    how = f", {HOW[one.how]}" if one.how else ""
    with st.container(border=True):
        verdict = *VERDICTS[one.right], how
        show(fragment("why.answer", names, *verdict, said(run, found), flaws, evidence, one.nuggets))
        with st.container(horizontal=True):
            if not one.right and not found.written.abstained:
                keeping.right(run, one.route, found.written.text)
            if one.right is not False:
                keeping.wrong(run, one.route)
