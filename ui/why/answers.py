"""Each route's answer next to the right one: whether it is right, which claim is not, and its evidence."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.analysis.answers import checked
from core.analysis.label_flow import ORDER, Reading
from core.domain.types import RouteResult, Run
from core.evaluation.gold import Gold
from core.evaluation.judged_answers import JudgedAnswer
from ui.app.markup import EMPTY, cut, show, tag
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
        lines = [tag("div", cut(one, 600), css="said", dir="auto") for one in known.answers]
        if known.answerable is False:
            lines = [tag("div", "The documents have no answer: abstaining is right.")]
        none = tag("div", "Not known. Mark an answer as right to compare the others with it.", css="dim")
        show(tag("div", tag("h3", "Right answer", css="rs-part"), *(lines or [none]), css="rs"))
    groups: dict[tuple[str, bool | None], list[JudgedAnswer]] = {}
    for one in judged:
        groups.setdefault((one.text, one.right), []).append(one)
    rest = [group for group in groups.values() if group[0].right]
    first = [group for group in groups.values() if not group[0].right] or rest
    results = {result.route: result for result in run.results}
    with beside:
        for group in first:
            _answer(run, results[group[0].route], group)
        if rest and first is not rest:
            count = sum(map(len, rest))
            with st.expander(f"{count} right {'answer' if count == 1 else 'answers'}"):
                for group in rest:
                    _answer(run, results[group[0].route], group)


def _answer(run: Run, result: RouteResult, group: Sequence[JudgedAnswer]) -> None:
    """Draw the answer that all routes of `group` gave."""
    found, one = checked(result), group[0]
    if found is None:
        return
    verdict, css = VERDICTS[one.right]
    how = f", {HOW[one.how]}" if one.how else ""
    names = cut(", ".join(each.title for each in group), 120)
    head = tag("div", tag("b", names), ": ", tag("b", verdict, css=css), tag("span", how, css="dim"))
    flaws = [
        tag(
            "li",
            tag("span", f"“{cut(claim.text, 200)}” ") if len(one.claims) > 1 else EMPTY,
            tag("span", claim.why, css="bad" if claim.right is False else "dim"),
            dir="auto",
        )
        for claim in one.claims
        if claim.why and claim.right is not True
    ]
    came: dict[Reading, list[str]] = {}
    for each in group:
        if each.evidence:
            came.setdefault(min(each.evidence.values(), key=ORDER.index), []).append(each.title)
    evidence = [
        tag(
            "div",
            "Relevant passages: ",
            tag("b", EVIDENCE[reading], css="up" if reading == "cited" else "bad"),
            tag("span", f" ({cut(', '.join(titles), 90)})", css="dim") if len(came) > 1 else EMPTY,
        )
        for reading, titles in sorted(came.items(), key=lambda pair: ORDER.index(pair[0]))
    ]
    body = tag("div", said(run, found), css="said", dir="auto")
    with st.container(border=True):
        show(tag("div", head, body, tag("ul", *flaws) if flaws else EMPTY, *evidence, css="rs"))
        with st.container(horizontal=True):
            if not one.right and not found.written.abstained:
                keeping.right(run, one.route, found.written.text)
            if one.right is not False:
                keeping.wrong(run, one.route)
