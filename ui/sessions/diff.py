"""Two runs compared: what was asked, settings, and every route with its reason; then trace against trace."""

from __future__ import annotations

import json
import re
from itertools import zip_longest
from typing import Any

from markupsafe import Markup

from core.analysis import run_diff
from core.analysis.run_diff import ChangedValue, RunDiff, RunRouteDiff, StepDiff
from core.analysis.run_view import depths, facts, texts
from core.domain.outputs import Output
from core.domain.rank_changes import moves
from core.domain.types import Hit, Run, Span
from ui.app.markup import EMPTY, cut, fragment, join, tag
from ui.app.names import named
from ui.components.rewrites import word_diff

_CODE = re.compile(r"`([^`]*)`")
SPOKEN = {"question": "Question", "history": "Conversation", "corpus": "Corpus", "fingerprint": "Index"}
MAX_COMPARED = 4000  # characters of a text that are compared word by word
MOVES = {"better": ("▲", "up"), "worse": ("▼", "down"), "new": ("new", "new"), "same": ("", "dim")}


def runs(diff: RunDiff) -> Markup:
    """Return the differences in the question, the settings and the routes."""
    apart = sorted(diff.differing, key=lambda one: one.same_result)
    return fragment(
        "sessions.runs",
        words(run_diff.headline(diff)),
        [(SPOKEN.get(change.name, change.name), _sides(change)) for change in diff.asked],
        [(change.name, _sides(change)) for change in diff.settings],
        diff.equal,
        [(one, words(run_diff.why(diff, one)), words(run_diff.came_to(one))) for one in apart],
        [one for one in diff.routes if one.same],
    )


def route(diff: RunDiff, one: RunRouteDiff, before: Run, after: Run) -> Markup:
    """Return everything about one route in both runs, as one element."""
    told = words(f"{run_diff.why(diff, one)}: {run_diff.came_to(one)}.")
    answer = next((change for change in one.result if change.name == "answer"), None)
    said = word_changes(answer.before or "", answer.after or "") if answer else EMPTY
    ranks = [] if one.ranking.same else _ranks(one, before, after)
    depth = depths(one.before.spans), depths(one.after.spans)
    steps = [_step(step, depth) for step in one.steps]
    return fragment("sessions.route", one, told, said, run_diff.ranking(one.ranking), ranks, steps)


def words(text: str) -> Markup:
    """Return a sentence with its `names` set as code."""
    parts = _CODE.split(text)
    return join([tag("code", part) if n % 2 else part for n, part in enumerate(parts)])


def _sides(change: ChangedValue) -> list[Markup]:
    """Return both sides of a change, or one text for both."""
    before, after = change.before, change.after
    if change.name == "question":
        return [word_diff(str(before), str(after))]
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        return [words(run_diff.was(change))]
    missing = tag("span", "missing", css="dim")
    return [missing if side is run_diff.MISSING else join([run_diff.value(side)]) for side in (before, after)]


def _ranks(one: RunRouteDiff, before: Run, after: Run) -> list[tuple[Any, ...]]:
    """Return both top tens side by side: a passage, whether it dropped out, the rank change, a passage."""
    moved, rows = moves(one.before.hits, one.after.hits, run_diff.DEPTH), []
    for first, second in zip_longest(one.before.hits[: run_diff.DEPTH], one.after.hits[: run_diff.DEPTH]):
        sign, css = "", ""
        if second is not None:
            move = moved.of[second.passage.id]
            sign, css = MOVES[move.kind]
            sign += str(move.by or "")
        dropped = first is not None and first.passage.id in moved.lost
        rows.append((_named(first, before), dropped, sign, css, _named(second, after)))
    return rows


def _named(hit: Hit | None, run: Run) -> tuple[str, str] | None:
    """Return a passage's name, and its place with its beginning."""
    if hit is None:
        return None
    passage = run.passages.get(hit.passage.id, hit.passage)
    where = f"characters {passage.start}–{passage.end}: {cut(passage.text, 300)}"
    return cut(named(run.corpus, passage), 80), where


def _step(step: StepDiff, depth: tuple[dict[int, int], dict[int, int]]) -> tuple[Any, ...]:
    """Return a step with its depth, its reuse, which run alone has it, and its differences."""
    before, after = step.before, step.after
    at = depth[0][before.id] if before else depth[1][after.id] if after else 0
    only = "only in the first" if after is None else "only in the second" if before is None else ""
    origins = [_origin(span) for span in (before, after) if span is not None]
    reuse = f"{origins[0]}, then {origins[1]}" if len(set(origins)) == 2 else ""
    parts: list[tuple[str, Markup | str]] = [("", words(run_diff.was(change))) for change in step.inputs]
    if step.output is not None:
        parts.append(("result", word_changes(_text(step.output.before), _text(step.output.after))))
    if step.hits is not None and not step.hits.same:
        parts.append(("", f"hits: {run_diff.ranking(step.hits)}"))
    if step.error is not None:
        parts.append(("error", f"{step.error.before or 'none'} → {step.error.after or 'none'}"))
    return step, at, reuse, only, parts


def _origin(span: Span) -> str:
    """Describe where a step took its work from."""
    if span.cached:
        return f"from the {span.cached}"
    return f"shared with {span.shared_with.split('#', 1)[0]}" if span.shared_with else "done here"


def word_changes(before: str, after: str) -> Markup:
    """Return a word diff; long texts are compared only at their beginning."""
    long = max(len(before), len(after)) > MAX_COMPARED
    note = tag("div", f"Compares the first {MAX_COMPARED:,} characters only.", css="dim") if long else EMPTY
    diff = word_diff(before[:MAX_COMPARED], after[:MAX_COMPARED])
    return tag("div", diff, note, css="rs-quote", dir="auto")


def _text(given: Output) -> str:
    """Return a step's output as text, or all its facts as JSON if it has none."""
    if found := texts(given):
        return "\n".join(found)
    told = facts(given)
    return json.dumps(told, ensure_ascii=False, indent=1) if told else ""
