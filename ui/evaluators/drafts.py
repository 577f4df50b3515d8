"""The drafts of an answer: what changed between them, the claims found in each, and why writing ended."""

from __future__ import annotations

from markupsafe import Markup

from core.analysis.answers import Writing, writing
from core.analysis.run_view import Recorded
from core.domain.format import milliseconds
from core.domain.outputs import ClaimChanges, Critique
from core.domain.types import RouteResult, Run
from ui.app.markup import EMPTY, cut, join, table, tag
from ui.components.rewrites import word_diff

WORDS = {"kept": "unchanged", "changed": "verdict changed", "added": "new", "dropped": "removed"}


def drafts(run: Run) -> Markup:
    """Return every draft of routes that judged their drafts, or a note if none did."""
    blocks = [_block(result, found) for result in run.results if (found := writing(result))]
    if not blocks:
        return tag("div", "No route of this run revised an answer or judged a draft.", css="rs dim")
    return tag("div", *blocks, css="rs")


def _block(result: RouteResult, found: Writing) -> Markup:
    parts = []
    before: str | None = None
    for number, one in enumerate(found.drafts, 1):
        parts.append(_draft(number, one, before, number == found.kept))
        before = one.output.draft
    why = tag("div", tag("b", found.why)) if found.why else EMPTY
    return tag("div", tag("h4", result.title), join(parts), why, css="rs-block")


def _draft(number: int, step: Recorded[Critique], before: str | None, kept: bool) -> Markup:
    one, changes = step.output, step.output.changes or ClaimChanges()
    head = tag(
        "div",
        tag("b", f"Draft {number}"),
        tag("span", f"  {step.span.name} · {milliseconds(step.span.ms)}  ", css="dim"),
        tag("span", "final answer", css="chip accent") if kept else EMPTY,
    )
    text = one.draft if before is None else word_diff(before, one.draft)
    rows = []
    for claim in one.claims:
        said = {True: "supported", False: "not supported", None: "not judged"}[claim.supported]
        where = f" [{claim.passage}]" if claim.passage is not None else ""
        why = tag("div", cut(claim.why, 200), css="dim", dir="auto") if claim.why else EMPTY
        verdict = tag("span", said + where, css="bad" if claim.supported is False else "")
        became = next((text for name, text in WORDS.items() if claim.claim in getattr(changes, name)), "")
        rows.append((cut(claim.claim, 300), join([verdict, why]), (became, "dim")))
    rows += [(tag("del", cut(gone, 300)), EMPTY, (WORDS["dropped"], "dim")) for gone in changes.dropped]
    claims = EMPTY
    if rows:
        claims = table(("Claim", "Supported by passages", "Since the previous draft"), rows)
    feedback = tag("div", "Feedback: ", one.feedback, css="dim", dir="auto") if one.feedback else EMPTY
    decided = tag(
        "div", tag("span", cut(one.decision, 80), css="chip accent"), tag("span", f"  {one.why}", css="dim")
    )
    return join([head, tag("div", text, css="rs-quote", dir="auto"), claims, feedback, decided])
