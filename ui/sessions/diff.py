"""The tables of a comparison of two runs: what was asked, settings, and every route with its reason."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup

from core.analysis.run_diff import RunDiff, came_to, value, was, why
from core.analysis.trace_diff import MISSING, ChangedValue
from core.domain.format import milliseconds
from core.evaluation.finding import count
from ui.app.markup import EMPTY, join, table, tag
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
    equal = count(diff.equal, "equal settings")
    if not diff.settings:
        return tag("div", f"Settings: {equal}, no difference.", css="dim rs-block")
    rows = [_row(change.name, change) for change in diff.settings]
    drawn = _table("Settings that differ", ("Setting", "First", "Second"), rows)
    return join([drawn, tag("div", equal, css="dim rs-block")])


def routes_table(diff: RunDiff) -> Markup:
    """Return every route that differs, with the reason, the outcome and times; the others by name."""
    parts: list[Markup] = []
    if diff.differing:
        heads = ("Route", "Why it differs", "Difference", "First", "Second")
        rows = [
            (
                route.before.title,
                words(why(diff, route)),
                words(came_to(route)),
                milliseconds(route.before.ms),
                milliseconds(route.after.ms),
            )
            for route in sorted(diff.differing, key=lambda one: one.same_result)
        ]
        parts.append(_table("Routes that differ", heads, rows))
    equal = [route for route in diff.routes if route.same]
    if equal:
        times = ", ".join(
            f"{route.before.title} ({milliseconds(route.before.ms)}, {milliseconds(route.after.ms)})"
            for route in equal
        )
        summary = tag("summary", f"{count(len(equal), 'routes')} gave the same result")
        told = tag("div", f"Times in both runs: {times}.", css="dim")
        parts.append(tag("details", summary, told, css="rs-trace"))
    return join(parts)


def side(given: object) -> Markup:
    """Return one side of a change."""
    if given is MISSING:
        return tag("span", "missing", css="dim")
    return tag("span", value(given), dir="auto")


def _row(name: str, change: ChangedValue) -> Markup:
    before, after = change.before, change.after
    if name == "Question":
        both = tag("td", word_diff(str(before), str(after)), colspan="2", dir="auto")
        return tag("tr", tag("td", name), both)
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        return tag("tr", tag("td", name), tag("td", words(was(change)), colspan="2"))
    return tag("tr", tag("td", name), tag("td", side(before)), tag("td", side(after)))


def _table(title: str, heads: tuple[str, ...], rows: Sequence[Markup | tuple[object, ...]]) -> Markup:
    drawn = table(heads, rows, numbers={3, 4})
    return tag("div", tag("h4", title), tag("div", drawn, css="rs-sessions-wide"), css="rs-block")
