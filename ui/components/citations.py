"""Answers with checked citations: each marker shows its passage, or that no passage has its number."""

from __future__ import annotations

import re

from markupsafe import Markup

from core.analysis.answers import Checked, checked, decisions, forced
from core.analysis.run_view import below
from core.domain.outputs import Written
from core.domain.types import RouteResult, Run
from ui.app.markup import EMPTY, cut, join, tag
from ui.app.names import title_of
from ui.components.reasoning import thoughts

_MARKER = re.compile(r"(\[\s*\d{1,3}(?:\s*[,;]\s*\d{1,3})*\s*\])")


def answers(run: Run) -> Markup:
    """Return all routes' answers side by side, or a hint if no route wrote one."""
    cards = [
        _card(run, result, found) if (found := checked(result)) is not None else _failed_card(result)
        for result in run.results
        if result.answer_status != "not asked"
    ]
    if not cards:
        message = "No route in this run wrote an answer. Use the Answers menu to choose which routes answer."
        return tag("div", message, css="rs dim")
    return tag("div", tag("div", *cards, css="rs-answers"), css="rs")


def note(run: Run, result: RouteResult) -> Markup:
    """Return one route's answer for display above its hits."""
    found = checked(result)
    if found is None:
        return EMPTY if result.answer_error is None else tag("div", _failure(result), css="rs-note")
    return tag(
        "div", _head(found.written), tag("div", said(run, found), css="said", dir="auto"), css="rs-note"
    )


def _failed_card(result: RouteResult) -> Markup:
    return tag("section", tag("h4", result.title), _failure(result), css="rs-block")


def _failure(result: RouteResult) -> Markup:
    """Return why the answer could not be written; the hits are unaffected."""
    chips = join([tag("span", "Answer", css="dim"), tag("span", "failed", css="chip bad")], " ")
    reason = f"The answer could not be written: {result.answer_error}"
    return join([tag("div", chips), tag("div", cut(reason, 400), css="said", dir="auto")])


def said(run: Run, found: Checked) -> Markup:
    """Return the answer's text.

    A marker opens its passage; an invalid one is marked, and sentences without a citation are underlined.
    """
    parts = []
    for piece in _pieces(found.written):
        body = join([_marker(run, found, part) for part in _MARKER.split(piece)])
        bare = piece.strip() in found.written.uncited
        parts.append(
            tag("span", body, css="uncited", title="This sentence cites no passage") if bare else body
        )
    return join(parts)


def _pieces(found: Written) -> list[str]:
    """Split the text so that each sentence without a citation is one piece."""
    pieces, rest = [], found.text
    for sentence in found.uncited:
        before, hit, after = rest.partition(sentence)
        if hit:
            pieces += [before, sentence]
            rest = after
    return [piece for piece in (*pieces, rest) if piece]


def _marker(run: Run, found: Checked, part: str) -> Markup:
    if not _MARKER.fullmatch(part):
        return join([part])
    shown = []
    for number in (int(n) for n in re.findall(r"\d+", part)):
        passage = run.passages.get(found.cited.get(number, ""))
        if passage is not None:
            name = title_of(run, passage.id)
            preview = f"{name}: {cut(passage.text, 300)}"
            head = tag("summary", f"[{number}]", title=preview)
            text = join([tag("b", name), "\n", passage.text])
            shown.append(tag("details", head, tag("div", text, css="full", dir="auto"), css="cite"))
        elif number in found.cited:
            shown.append(tag("span", f"[{number}]", css="cite", title=found.cited[number]))
        else:
            shown.append(tag("span", f"[{number}?]", css="cite bad", title="No passage has this number"))
    return join(shown)


def _head(found: Written) -> Markup:
    chips = [tag("span", "Answer", css="dim")]
    if found.abstained:
        chips.append(tag("span", "abstains", css="chip"))
    if found.copied:
        chips.append(tag("span", "copied sentences", css="chip", title="Not written by a language model"))
    if found.wrong:
        chips.append(tag("span", f"{len(found.wrong)} wrong citations", css="chip bad"))
    if found.uncited and not found.abstained:
        chips.append(
            tag("span", f"{len(found.uncited)} uncited", css="chip bad", title="Sentences without a citation")
        )
    return tag("div", join(chips, " "))


def _card(run: Run, result: RouteResult, found: Checked) -> Markup:
    sources = [
        tag(
            "details",
            tag("summary", f"[{number}] ", tag("span", title_of(run, id), dir="auto")),
            tag("div", passage.text if (passage := run.passages.get(id)) else id, css="full", dir="auto"),
        )
        for number, id in sorted(found.cited.items())
    ]
    last = next(
        (
            forced(one.span) or one.output.why
            for one in reversed(decisions(result))
            if found.written.abstained and one.output.why
        ),
        "",
    )
    return tag(
        "section",
        tag("h4", result.title),
        _head(found.written),
        tag("div", said(run, found), css="said", dir="auto"),
        tag("div", last, css="dim", dir="auto") if last else EMPTY,
        *sources,
        *(thoughts(below(result, span)) for span in result.spans if span.id == result.answer_span),
        css="rs-block",
    )
