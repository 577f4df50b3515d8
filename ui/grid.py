"""The columns of Compare: one HTML element for all routes, because element count is what a page costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from core.charts.look import milliseconds
from core.moves import Moves, moves
from core.reading import Reuse, reuse, rewritings, top
from core.types import RouteResult, Run
from ui import cited
from ui.hits import Scene, hits
from ui.markup import EMPTY, cut, join, tag

STATUS = {
    "failed": "failed",
    "timeout": "out of time",
    "unavailable": "not available",
    "cancelled": "stopped",
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """A route that has not ended: what it is at, if it has begun."""

    title: str
    running: bool
    step: str = ""
    text: str = ""  # what a model is writing right now


@dataclass(frozen=True, slots=True)
class View:
    """How to draw: the baseline route, hits a column, density S, M or L, and gold grades by passage id."""

    baseline: str | None = None
    depth: int = 10
    density: str = "M"
    gold: Mapping[str, int] = field(default_factory=dict)


def grid(run: Run, view: View, waiting: Sequence[Waiting] = ()) -> Markup:
    """All routes side by side, the baseline first, those without a ranking last."""
    results = sorted(run.results, key=lambda r: (r.route != view.baseline, r.status != "ok"))
    base = next((r for r in results if r.route == view.baseline and r.status == "ok"), None)
    scene = Scene(run, base, view.depth, view.gold)
    columns = [_column(scene, result) for result in results] + [_waiting(one) for one in waiting]
    return tag(
        "div",
        tag("style", _light(len(scene.numbers))),
        tag("div", *columns, css="rs-grid", role="list", aria_label="routes side by side", tabindex="0"),
        css=f"rs rs-{view.density.lower()}",
    )


def _light(count: int) -> Markup:
    """Pointing at a passage, or opening it, lights it up in every route."""
    return Markup(
        "".join(
            f'.rs-grid:has([data-p="{n}"]:is(:hover,:focus-within,[open])) [data-p="{n}"]'
            "{background:var(--lit);border-left-color:var(--lit-line)}"
            for n in range(count)
        )
    )


def _column(scene: Scene, result: RouteResult) -> Markup:
    is_base = result is scene.base
    works = result.status == "ok"
    moved = moves(scene.base.hits, result.hits, scene.depth) if scene.base and works and not is_base else None
    return tag(
        "section",
        _head(scene, result, moved),
        tag("div", cited.note(scene.run, result), hits(scene, result, moved), css="rs-body")
        if works
        else _trouble(result),
        css="rs-col base" if is_base else "rs-col",
        role="listitem",
    )


def _head(scene: Scene, result: RouteResult, moved: Moves | None) -> Markup:
    chip = EMPTY
    if result is scene.base:
        chip = tag("span", "baseline", css="chip accent")
    elif result.status != "ok":
        chip = tag("span", STATUS[result.status], css="chip bad")
    lines = [tag("div", tag("span", result.title), chip, css="name")]
    if result.status != "unavailable":
        alone = (tag("span", milliseconds(result.ms), css="ms"), " ", tag("span", "alone", css="dim"))
        lines.append(tag("div", *alone, css="line", title="what this route takes when it runs by itself"))
    lines += [tag("div", mark, css="line dim") for mark in marks(reuse(scene.run, result))]
    if moved is not None:
        lines.append(_counts(moved))
    if scene.gold and result.status == "ok":
        lines.append(_gold_found(scene, result))
    for rewriting in rewritings(result):
        if rewriting.changed:
            text = " · ".join(cut(item, 220) for item in rewriting.after)
            lines.append(tag("div", text, css="query", dir="auto", title="searched with"))
    return tag("header", *lines, css="rs-head")


def marks(used: Reuse) -> list[str]:
    """Whose time a route's time is, in words."""
    found = []
    when = f", made {used.made[:10]}" if used.made else ""
    if used.recorded_ms:
        found.append(f"recorded: {used.model}, {milliseconds(used.recorded_ms)} then{when}")
    if used.cached_ms:
        found.append(f"cached: {used.model}, {milliseconds(used.cached_ms)} then{when}")
    if used.shared_ms:
        found.append(f"{milliseconds(used.shared_ms)} of it shared with other routes")
    return found


def _counts(moved: Moves) -> Markup:
    css = {"better": "up", "worse": "down", "same": "dim", "new": "new"}
    parts = [tag("span", f"{n} {kind}", css=f"{css[kind]} nowrap") for kind, n in moved.counts.items()]
    parts.append(tag("span", f"{len(moved.lost)} lost", css="dim nowrap"))
    return tag("div", join(parts, " · "), css="line")


def _gold_found(scene: Scene, result: RouteResult) -> Markup:
    floor = min(2, max(1, *scene.gold.values()))  # background (1) is no find where there is better
    relevant = {id for id, grade in scene.gold.items() if grade >= floor}
    found = relevant & {hit.passage.id for hit in result.hits[: scene.depth]}
    words = f"◆ {len(found)} of {len(relevant)} relevant"
    return tag("div", words, tag("span", f" in the top {scene.depth}", css="dim"), css="line")


def _trouble(result: RouteResult) -> Markup:
    """Why there is no ranking, and the steps that were done until then."""
    css = "dim" if result.status in ("unavailable", "cancelled") else "bad"
    steps = [
        tag(
            "li",
            tag("span", cut(span.name, 60), css="bad" if span.error else ""),
            tag("span", milliseconds(span.ms), css="dim nowrap"),
        )
        for span in top(result)
    ]
    return tag(
        "div",
        tag("div", cut(result.error or "no reason was given", 600), css=css, dir="auto"),
        tag("ul", *steps, css="rs-steps") if steps else EMPTY,
        css="rs-note",
    )


def _waiting(one: Waiting) -> Markup:
    doing = one.step or ("starting" if one.running else "waiting for its turn")
    state = tag("span", "running", css="chip accent") if one.running else tag("span", "waiting", css="chip")
    bars = [tag("div", css="bar")] * 3
    return tag(
        "section",
        tag("header", tag("div", tag("span", one.title), state, css="name"), css="rs-head"),
        tag("div", doing, *bars, css="rs-wait"),
        tag("div", one.text, css="rs-note said", dir="auto") if one.text else EMPTY,
        css="rs-col",
        role="listitem",
    )
