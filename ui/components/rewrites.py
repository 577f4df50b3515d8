"""Rewrites: what each route searched with instead of the question, as word diffs, and what each found."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from markupsafe import Markup

from core.analysis.run_view import asked_again, below, source, worked
from core.analysis.searches import TextFinds, changed, finds, rewrites, searches
from core.domain.format import milliseconds
from core.domain.outputs import FiltersRead, Rewrite
from core.domain.rank_changes import ranks
from core.domain.types import RouteResult, Run, Span
from ui.app.markup import EMPTY, cut, join, table_of, tag
from ui.app.names import title_of
from ui.app.routes import title
from ui.components.reasoning import thoughts

_WORD = re.compile(r"\w+|[^\w\s]|\s+")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?\n]*\s*|[.!?\n]+\s*")
MAX_PAIRS = 2_000_000  # of pieces that are compared at most, some 0.2 s
MAX_NAMED = 5  # passages of a list that are named


def texts(run: Run, depth: int, gold: Mapping[str, int] | None = None) -> Markup:
    """Return each route that wrote a text or searched with a rewrite, then the routes that did not."""
    shown = [
        one
        for one in run.results
        if changed(run, one) or any(r.changed for _, r in rewrites(one)) or filters(one)
    ]
    blocks = [_route(run, one, gold or {}, depth) for one in shown]
    return tag("div", *blocks, _unchanged(run, shown), css="rs")


def _unchanged(run: Run, shown: Sequence[RouteResult]) -> Markup:
    """Return the other routes in one line, with the notes of their rewriting steps."""
    same = [one for one in worked(run) if one not in shown]
    if not same:
        return EMPTY
    notes = [
        tag("li", f"{one.title}: {cut(str(span.attributes['note']), 200)}", dir="auto")
        for one in same
        for span, _ in rewrites(one)
        if span.attributes.get("note")
    ]
    titles = ", ".join(one.title for one in same)
    return tag(
        "div",
        tag("div", f"Searched with the question as written: {titles}.", css="dim"),
        tag("ul", *notes, css="dim") if notes else EMPTY,
        css="rs-block",
    )


def _route(run: Run, result: RouteResult, gold: Mapping[str, int], depth: int) -> Markup:
    state = "" if result.status == "ok" else f" · {result.status}: {cut(result.error or '', 160)}"
    head = tag("h4", result.title, tag("span", state, css="bad") if state else EMPTY)
    steps = [_step(run, result, span, one) for span, one in rewrites(result)]
    steps += [_filters(span, one) for span, one in filters(result)]
    return tag("div", head, *steps, _finds(run, result, gold, depth), css="rs-block")


def _step(run: Run, result: RouteResult, span: Span, one: Rewrite) -> Markup:
    """Return what one step wrote; texts in the table below are not repeated."""
    facts = [span.name, milliseconds(span.ms)]
    if came_from := source(result, span):
        facts.append(f"from {'a' if came_from == 'recording' else 'the'} {came_from}")
    if span.shared_with:
        facts.append(f"shared with {title(span.shared_with.split('#', 1)[0])}")
    head = tag("div", " · ".join(facts), css="dim")
    if not one.changed:
        body = tag("div", f"{one.before} (unchanged)", dir="auto")
    elif one.terms:
        body = _weighted(run, one)
    elif one.single:
        body = tag("div", word_diff(one.before, " ".join(one.texts)), dir="auto")
    else:
        searched = {each.text for each in searches(result)}
        listed = [text for text in one.texts if one.role == "passages" or text not in searched]
        body = join([tag("div", text, css="rs-quote", dir="auto") for text in listed])
    thought = thoughts(below(result, span))
    return tag("div", head, body, thought, _notes(result, span), css="rs-transform-step")


def filters(result: RouteResult) -> list[tuple[Span, FiltersRead]]:
    """Return the steps that read filters from the question."""
    found = [(span, span.output) for span in result.spans if isinstance(span.output, FiltersRead)]
    return [(span, output) for span, output in found if output.found]


def _filters(span: Span, read: FiltersRead) -> Markup:
    """Return each filter with the words it was read from and its number of matching passages."""
    by = "by rules" if read.by == "rules" else "by the language model"
    facts = [span.name, by, milliseconds(span.ms), f"{read.left:,} of {read.of:,} passages are left"]
    head = tag(
        "tr", tag("th", "Filter"), tag("th", "Read from"), tag("th", "Passages", css="num"), tag("th", "Used")
    )
    rows = [
        tag(
            "tr",
            tag("td", str(one.filter), dir="auto"),
            tag("td", f"“{one.words}”" if one.words else "", dir="auto"),
            tag("td", f"{one.passages:,}", css="num"),
            tag("td", f"no: {one.dropped}" if one.dropped else "yes", dir="auto"),
        )
        for one in read.found
    ]
    return tag(
        "div",
        tag("div", " · ".join(facts), css="dim"),
        table_of(head, rows, css="rs-transform-finds"),
        tag("div", "To edit them: Filters on Compare, “Use for all routes”.", css="dim"),
        css="rs-transform-step",
    )


def _weighted(run: Run, one: Rewrite) -> Markup:
    """Return terms with their weights, added ones marked, and the passages they came from."""
    titles = list(dict.fromkeys(title_of(run, id) for id in one.passages))
    more = f" and {len(titles) - MAX_NAMED} more" if len(titles) > MAX_NAMED else ""
    came_from = (
        f"added terms are from {', '.join(titles[:MAX_NAMED])}{more}" if one.added else "no term was added"
    )
    terms = [
        join(
            [
                tag("ins", term) if term in one.added else tag("span", term),
                tag("span", f" {weight:.3f}", css="dim"),
            ]
        )
        for term, weight in one.terms
    ]
    return tag(
        "div",
        tag("div", join(terms, " · "), dir="auto"),
        tag("div", came_from, css="dim", dir="auto"),
    )


def _finds(run: Run, result: RouteResult, gold: Mapping[str, int], depth: int) -> Markup:
    """Return a row for each query: how much it found, what only it found, and the final ranks of that."""
    rows = finds(run, result, depth)
    if len(rows) < 2:
        return EMPTY
    head = tag(
        "tr",
        tag("th", "Query"),
        tag("th", f"Found in top {depth}", css="num"),
        tag("th", "Found by no other query", css="num"),
        tag("th", f"… kept in the final top {depth}", css="num"),
        tag("th", "Passages only this query found (final rank)"),
    )
    body = [_row(run, result, one, gold) for one in rows]
    return table_of(head, body, css="rs-transform-finds")


def _row(run: Run, result: RouteResult, one: TextFinds, gold: Mapping[str, int]) -> Markup:
    query: object = cut(one.text, 240)
    if one.text == run.query.text:
        query = tag("span", f"the question{', in other routes' if one.elsewhere else ''}", css="dim")
    elif not one.text:
        count = sum(text != run.query.text for text in one.mean)
        step = one.step or "a vector made by the route's own code"
        parts = [f"{count} rewrite{'s' * (count > 1)}"] if count else []
        parts += ["the question"] if run.query.text in one.mean else []
        query = tag("span", f"{step}{': ' if parts else ''}{' and '.join(parts)}", css="dim", dir="auto")
    return tag(
        "tr",
        tag("td", query, dir="auto"),
        tag("td", len(one.found), css="num"),
        tag("td", len(one.only), css="num"),
        tag("td", len(one.kept), css="num"),
        tag("td", named(run, result, one.only, gold)),
    )


def named(run: Run, result: RouteResult, ids: Sequence[str], gold: Mapping[str, int]) -> Markup:
    """Return passages by title with their final rank: labelled ones first and marked, the rest counted."""
    if not ids:
        return tag("span", "none", css="dim")
    final = ranks(result.hits)
    order = sorted(ids, key=lambda id: (-gold.get(id, 0), final.get(id, len(final) + 1)))
    items = [
        tag(
            "span",
            passage(run, id, gold),
            tag("span", f" ({final.get(id, 'not ranked')})", css="dim"),
            dir="auto",
        )
        for id in order[:MAX_NAMED]
    ]
    more = f"; {len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else ""
    return join([join(items, "; "), tag("span", more, css="dim") if more else EMPTY])


def passage(run: Run, id: str, gold: Mapping[str, int]) -> Markup:
    """Return a passage's title, or its id if the run does not contain it, with its grade if labelled."""
    title = cut(title_of(run, id), 70)
    if not gold.get(id):
        return tag("span", title)
    return tag("span", tag("b", f"◆{gold[id]} "), title, css="rs-transform-gold")


def _notes(result: RouteResult, span: Span) -> Markup:
    notes = [str(span.attributes["note"])] if span.attributes.get("note") else []
    first = asked_again(result, span)
    if first is not None:
        notes.append(f"The model was called twice. Its first reply was not valid: “{cut(first, 200)}”")
    return join([tag("div", note, css="dim") for note in notes])


def word_diff(before: str, after: str) -> Markup:
    """Return a diff with deletions struck out and insertions marked.

    Changes separated only by a space are merged. Long texts are compared by sentence, since the time grows
    with the product of their lengths.
    """
    old, new = _compared(before, after)
    parts: list[Markup] = []
    gone = come = ""
    for change, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        left, right = "".join(old[a:b]), "".join(new[c:d])
        if change == "equal" and (right.strip() or not (gone or come)):
            parts += [_change(gone, come), tag("span", right)]
            gone = come = ""
        else:
            gone, come = gone + left, come + right
    return join([*parts, _change(gone, come)])


def _compared(before: str, after: str) -> tuple[list[str], list[str]]:
    """Split both texts into words, or into sentences or not at all if there are too many pieces."""
    for pieces in (_WORD, _SENTENCE):
        old, new = pieces.findall(before), pieces.findall(after)
        if len(old) * len(new) <= MAX_PAIRS:
            return old, new
    return [before], [after]


def _change(gone: str, come: str) -> Markup:
    space = " " if gone.strip() and come.strip() else ""
    return join(
        [
            tag("del", gone.strip()) if gone.strip() else EMPTY,
            space or come[: len(come) - len(come.lstrip())],
            tag("ins", come.strip()) if come.strip() else EMPTY,
            (come or gone)[len((come or gone).rstrip()) :],
        ]
    )
