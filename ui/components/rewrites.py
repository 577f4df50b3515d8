"""Rewrites: what each route searched with instead of the question, as word diffs, and what each found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from functools import partial
from typing import Any

from markupsafe import Markup

from core.analysis.run_view import asked_again, below, source, worked
from core.analysis.searches import TextFinds, changed, finds, rewrites, searches
from core.domain.format import milliseconds
from core.domain.outputs import FiltersRead, Rewrite
from core.domain.rank_changes import ranks
from core.domain.types import RouteResult, Run, Span
from ui.app.markup import EMPTY, cut, fragment, join, tag
from ui.app.names import title_of
from ui.app.routes import title
from ui.components.citations import thoughts

_WORD = re.compile(r"\w+|[^\w\s]|\s+")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?\n]*\s*|[.!?\n]+\s*")
MAX_PAIRS = 2_000_000  # of pieces that are compared at most, some 0.2 s
MAX_NAMED = 5  # passages of a list that are named


def texts(run: Run, depth: int, gold: Mapping[str, int] | None = None) -> Markup:
    """Return each route that wrote a text or searched with a rewrite, then the routes that did not."""
    routes, grades = [], gold or {}
    for result in run.results:
        found, read = rewrites(result), _filters(result)
        if changed(run, result) or any(one.changed for _, one in found) or read:
            steps = [_step(run, result, span, one) for span, one in found]
            rows = [_row(run, result, one, grades) for one in finds(run, result, depth)]
            routes.append((result, steps, read, rows))
    shown = [result for result, *_ in routes]
    same = [one for one in worked(run) if one not in shown]
    spans = [(one.title, span) for one in same for span, _ in rewrites(one)]
    notes = [(name, str(span.attributes["note"])) for name, span in spans if span.attributes.get("note")]
    return fragment("transform.texts", routes, same, notes, depth, partial(title_of, run), grades)


def _step(run: Run, result: RouteResult, span: Span, one: Rewrite) -> tuple[Any, ...]:
    """Return what one step wrote; texts in the table below are not repeated."""
    facts = [span.name, milliseconds(span.ms)]
    if came_from := source(result, span):
        facts.append(f"from {'a' if came_from == 'recording' else 'the'} {came_from}")
    if span.shared_with:
        facts.append(f"shared with {title(span.shared_with.split('#', 1)[0])}")
    diff = word_diff(one.before, " ".join(one.texts)) if one.single else EMPTY
    listed: list[str] = []
    if one.changed and not one.terms and not one.single:
        searched = {each.text for each in searches(result)}
        listed = [text for text in one.texts if one.role == "passages" or text not in searched]
    titles = list(dict.fromkeys(title_of(run, id) for id in one.passages))
    more = f" and {len(titles) - MAX_NAMED} more" if len(titles) > MAX_NAMED else ""
    origin = (
        f"added terms are from {', '.join(titles[:MAX_NAMED])}{more}" if one.added else "no term was added"
    )
    notes = [str(span.attributes["note"])] if span.attributes.get("note") else []
    if (first := asked_again(result, span)) is not None:
        notes.append(f"The model was called twice. Its first reply was not valid: “{cut(first, 200)}”")
    return " · ".join(facts), one, diff, listed, origin, thoughts(below(result, span)), notes


def _filters(result: RouteResult) -> list[tuple[Span, FiltersRead]]:
    """Return the steps that read filters from the question."""
    outputs = ((span, span.output) for span in result.spans)
    return [(span, one) for span, one in outputs if isinstance(one, FiltersRead) and one.found]


def _row(run: Run, result: RouteResult, one: TextFinds, gold: Mapping[str, int]) -> tuple[Any, ...]:
    """Return a query, whether the route wrote it, and the passages that only it found, labels first."""
    query, own = cut(one.text, 240), bool(one.text) and one.text != run.query.text
    if one.text == run.query.text:
        query = f"the question{', in other routes' if one.elsewhere else ''}"
    elif not one.text:
        count = sum(text != run.query.text for text in one.mean)
        parts = [f"{count} rewrite{'s' * (count > 1)}"] if count else []
        parts += ["the question"] if run.query.text in one.mean else []
        step = one.step or "a vector made by the route's own code"
        query = f"{step}{': ' if parts else ''}{' and '.join(parts)}"
    final = ranks(result.hits)
    order = sorted(one.only, key=lambda id: (-gold.get(id, 0), final.get(id, len(final) + 1)))
    named = [(id, final.get(id, "not ranked")) for id in order[:MAX_NAMED]]
    return query, own, one, named, len(order) - MAX_NAMED


def word_diff(before: str, after: str) -> Markup:
    """Return a diff with deletions struck out and insertions marked.

    Changes separated only by a space are merged. Long texts are compared by sentence, or not at all, since
    the time grows with the product of their lengths.
    """
    old, new = [before], [after]
    for pieces in (_SENTENCE, _WORD):
        parts = pieces.findall(before), pieces.findall(after)
        if len(parts[0]) * len(parts[1]) <= MAX_PAIRS:
            old, new = parts
    made: list[Markup] = []
    gone = come = ""
    for change, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        left, right = "".join(old[a:b]), "".join(new[c:d])
        if change == "equal" and (right.strip() or not (gone or come)):
            made += [_change(gone, come), tag("span", right)]
            gone = come = ""
        else:
            gone, come = gone + left, come + right
    return join([*made, _change(gone, come)])


def _change(gone: str, come: str) -> Markup:
    struck = tag("del", gone.strip()) if gone.strip() else EMPTY
    marked = tag("ins", come.strip()) if come.strip() else EMPTY
    space = " " if struck and marked else come[: len(come) - len(come.lstrip())]
    last = come or gone
    return join([struck, space, marked, last[len(last.rstrip()) :]])
