"""The tables of a comparison of two runs: what was asked, settings, and every route with its reason."""

from __future__ import annotations

import re

from markupsafe import Markup

from core.analysis.run_diff import RunDiff, RunRouteDiff
from core.analysis.run_diff_text import came_to, value, was, why
from core.analysis.trace_diff import MISSING, ChangedValue
from core.domain.format import milliseconds
from ui.app.markup import EMPTY, join, table_of, tag
from ui.components.rewrites import word_diff

_CODE = re.compile(r"`([^`]*)`")
SPOKEN = {"question": "Question", "history": "Conversation", "corpus": "Corpus", "fingerprint": "Index"}


def words(text: str) -> Markup:
    """Return a sentence with its `names` set as code."""
    parts = _CODE.split(text)
    return join([tag("code", part) if n % 2 else part for n, part in enumerate(parts)])


def asked(diff: RunDiff) -> Markup:
    """Return the differences in the question, or nothing if it is the same."""
    rows = [_row(SPOKEN.get(change.name, change.name), change) for change in diff.asked]
    return _table("Question and corpus", ("", "First", "Second"), rows) if rows else EMPTY


def settings_table(diff: RunDiff) -> Markup:
    """Return the settings that differ, and how many are equal."""
    equal = f"{diff.equal} equal setting{'s' * (diff.equal != 1)}"
    if not diff.settings:
        return tag("div", f"Settings: {equal}, no difference.", css="dim rs-block")
    rows = [_row(change.name, change) for change in diff.settings]
    table = _table("Settings that differ", ("Setting", "First", "Second"), rows)
    return join([table, tag("div", equal, css="dim rs-block")])


def routes_table(diff: RunDiff) -> Markup:
    """Return every route that differs, with the reason, the outcome and times; the others by name."""
    parts: list[Markup] = []
    if diff.differing:
        heads = ("Route", "Why it differs", "Difference", "First", "Second")
        rows = [_route(diff, route) for route in sorted(diff.differing, key=lambda one: one.same_result)]
        parts.append(_table("Routes that differ", heads, rows))
    equal = [route for route in diff.routes if route.same]
    if equal:
        times = ", ".join(
            f"{route.before.title} ({milliseconds(route.before.ms)}, {milliseconds(route.after.ms)})"
            for route in equal
        )
        summary = tag("summary", f"{len(equal)} route{'s' * (len(equal) != 1)} gave the same result")
        told = tag("div", f"Times in both runs: {times}.", css="dim")
        parts.append(tag("details", summary, told, css="rs-trace"))
    return join(parts)


def side(given: object) -> Markup:
    """Return one side of a change."""
    if given is MISSING:
        return tag("span", "missing", css="dim")
    return tag("span", value(given), dir="auto")


def _route(diff: RunDiff, route: RunRouteDiff) -> Markup:
    reason = why(diff, route)
    return tag(
        "tr",
        tag("td", route.before.title),
        tag("td", words(reason)),
        tag("td", words(came_to(route))),
        tag("td", milliseconds(route.before.ms), css="num"),
        tag("td", milliseconds(route.after.ms), css="num"),
    )


def _row(name: str, change: ChangedValue) -> Markup:
    before, after = change.before, change.after
    if name == "Question":
        both = tag("td", word_diff(str(before), str(after)), colspan="2", dir="auto")
        return tag("tr", tag("td", name), both)
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        return tag("tr", tag("td", name), tag("td", words(was(change)), colspan="2"))
    return tag("tr", tag("td", name), tag("td", side(before)), tag("td", side(after)))


def _table(title: str, heads: tuple[str, ...], rows: list[Markup]) -> Markup:
    numbers = len(heads) == 5
    head = [tag("th", text, css="num" if numbers and n > 2 else "") for n, text in enumerate(heads)]
    table = table_of(tag("tr", *head), rows)
    return tag("div", tag("h4", title), tag("div", table, css="rs-sessions-wide"), css="rs-block")
