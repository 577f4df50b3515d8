"""One route of two runs: what it came to, its two rankings, and trace against trace."""

from __future__ import annotations

import json

from markupsafe import Markup

from core.analysis.run_diff import RunDiff, RunRouteDiff, came_to, ranking, was, why
from core.analysis.run_view import facts, texts
from core.analysis.trace_diff import DEPTH, ChangedValue, StepDiff
from core.domain.format import milliseconds
from core.domain.outputs import Output
from core.domain.rank_changes import moves
from core.domain.types import Ranking, Run, Span
from ui.app.markup import EMPTY, cut, join, show, table, tag
from ui.app.names import named
from ui.components.rewrites import word_diff
from ui.sessions.diff import side, words

MAX_COMPARED = 4000  # characters of a text that are compared word by word
ARROWS = {"better": "▲", "worse": "▼", "new": "new", "same": ""}


def draw_route(diff: RunDiff, route: RunRouteDiff, before: Run, after: Run) -> None:
    """Return everything about one route in both runs, as one element."""
    parts = [_sentence(diff, route)]
    changed = {change.name: change for change in route.result}
    if "answer" in changed:
        said = _texts(changed["answer"].before or "", changed["answer"].after or "")
        parts.append(tag("div", tag("h4", "Answer"), said, css="rs-block"))
    if "error" in changed:
        errors = [
            tag("div", tag("span", f"{which} ", css="dim"), cut(error, 600), dir="auto")
            for which, error in (("First", route.before.error), ("Second", route.after.error))
            if error
        ]
        parts.append(tag("div", tag("h4", "Error"), *errors, css="rs-block"))
    if not route.ranking.same:
        parts.append(_rankings(route, before, after))
    parts.append(_trace(route))
    show(tag("div", *parts, css="rs"))


def _sentence(diff: RunDiff, route: RunRouteDiff) -> Markup:
    if route.same:
        return tag("p", f"{route.before.title} gave the same result in both runs.")
    return tag("p", tag("b", route.before.title), " ", words(f"{why(diff, route)}: {came_to(route)}."))


def _rankings(route: RunRouteDiff, before: Run, after: Run) -> Markup:
    """Return both top tens side by side, with the rank changes."""
    first, second = route.before.hits[:DEPTH], route.after.hits[:DEPTH]
    moved = moves(route.before.hits, route.after.hits, DEPTH)
    rows = []
    for n in range(max(len(first), len(second))):
        mark = EMPTY
        if n < len(second):
            move = moved.of[second[n].passage.id]
            css = {"better": "up", "worse": "down", "new": "new"}.get(move.kind, "dim")
            mark = tag("span", f"{ARROWS[move.kind]}{move.by or ''} ", css=css)
        out = n < len(first) and first[n].passage.id in moved.lost
        gone = tag("span", " dropped out", css="down") if out else EMPTY
        rows.append(
            (str(n + 1), join([_title(first, n, before), gone]), join([mark, _title(second, n, after)]))
        )
    return tag(
        "div",
        tag("h4", "Ranking", tag("span", f"  {ranking(route.ranking)}", css="dim")),
        tag(
            "div",
            table(("Rank", "First", "Second"), rows, numbers={0}, css="rs-sessions-halves"),
            css="rs-sessions-wide",
        ),
        css="rs-block",
    )


def _title(hits: Ranking, n: int, run: Run) -> Markup:
    if n >= len(hits):
        return EMPTY
    passage = run.passages.get(hits[n].passage.id, hits[n].passage)
    where = f"characters {passage.start}–{passage.end}: "
    name = named(run.corpus, passage)
    return tag("span", cut(name, 80), title=where + cut(passage.text, 300), dir="auto")


def _trace(route: RunRouteDiff) -> Markup:
    """Return the steps of both runs in order, each with its differences."""
    depths = (_depths(route.before.spans), _depths(route.after.spans))
    rows = [_step(step, depths) for step in route.steps]
    if not rows:
        return tag("div", "Neither run has steps of this route.", css="dim")
    heads = ("Step", "First", "Second", "What differs")
    apart = sum(not step.same for step in route.steps)
    told = f"  {apart} of {len(rows)} steps differ{'s' * (apart == 1)}" if apart else "  no differences"
    drawn = table(heads, rows, numbers={1, 2}, css="rs-sessions-trace")
    head = tag("h4", "Traces compared", tag("span", told, css="dim"))
    return tag("div", head, tag("div", drawn, css="rs-sessions-wide"), css="rs-block")


def _step(step: StepDiff, depths: tuple[dict[int, int], dict[int, int]]) -> Markup:
    before, after = step.before, step.after
    span = before or after
    name = span.name if span else ""
    depth = depths[0].get(before.id, 0) if before else depths[1].get(after.id, 0) if after else 0
    only = "only in the first" if after is None else "only in the second" if before is None else ""
    told = tag("span", only, css="bad") if only else join(_differences(step))
    if step.elsewhere:
        told = tag("span", f"{only}: in the other run, another route did this work", css="dim")
    return tag(
        "tr",
        tag("td", name, _reuse(before, after), style=f"padding-left:{1.1 * depth:.1f}rem"),
        tag("td", milliseconds(before.ms) if before else "–", css="num"),
        tag("td", milliseconds(after.ms) if after else "–", css="num"),
        tag("td", told if not step.same or only else tag("span", "the same", css="dim")),
        css="" if step.same else "apart",
    )


def _reuse(before: Span | None, after: Span | None) -> Markup:
    """Describe where the two steps took their work from, if they differ."""
    was_from, now_from = (_from(span) for span in (before, after))
    if before is None or after is None or was_from == now_from:
        return EMPTY
    return tag("div", f"{was_from}, then {now_from}", css="dim")


def _from(span: Span | None) -> str:
    if span is None:
        return ""
    if span.cached:
        return f"from the {span.cached}"
    return f"shared with {span.shared_with.split('#', 1)[0]}" if span.shared_with else "done here"


def _differences(step: StepDiff) -> list[Markup]:
    parts = [tag("div", words(was(change))) for change in step.inputs]
    if step.output is not None:
        said = _texts(_text(step.output.before), _text(step.output.after))
        parts.append(tag("div", tag("span", "result ", css="dim"), said))
    if step.hits is not None and not step.hits.same:
        parts.append(tag("div", f"hits: {ranking(step.hits)}"))
    if step.error is not None:
        parts.append(tag("div", tag("span", "error ", css="dim"), _sides(step.error)))
    return parts


def _texts(before: str, after: str) -> Markup:
    """Return a word diff; long texts are compared only at their beginning."""
    cut_off = max(len(before), len(after)) > MAX_COMPARED
    note = (
        tag("div", f"Compares the first {MAX_COMPARED:,} characters only.", css="dim") if cut_off else EMPTY
    )
    return tag(
        "div", word_diff(before[:MAX_COMPARED], after[:MAX_COMPARED]), note, css="rs-quote", dir="auto"
    )


def _text(given: Output) -> str:
    """Return a step's output as text, or all its facts as JSON if it has none."""
    found = texts(given)
    if found:
        return "\n".join(found)
    told = facts(given)
    return json.dumps(told, ensure_ascii=False, indent=1) if told else ""


def _sides(change: ChangedValue) -> Markup:
    return join([side(change.before or "none"), " → ", side(change.after or "none")])


def _depths(spans: tuple[Span, ...]) -> dict[int, int]:
    depth: dict[int | None, int] = {None: -1}
    for span in spans:
        depth[span.id] = depth.get(span.parent, 0) + 1
    return {id: at for id, at in depth.items() if id is not None}
