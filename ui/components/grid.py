"""The columns of Compare, as one HTML element for all routes: the number of elements is what a page costs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import streamlit as st
from markupsafe import Markup

from core.analysis import external
from core.analysis.rank_overlap import halves
from core.analysis.remarks import remarks
from core.analysis.run_view import Reuse, reuse, top
from core.analysis.searches import rewrites
from core.analysis.term_contributions import Marker
from core.domain.format import milliseconds
from core.domain.rank_changes import Moves, moves
from core.domain.relevance import relevant
from core.domain.types import RouteResult, Run
from ui.app.data import style
from ui.app.markup import EMPTY, cut, join, tag
from ui.components import citations
from ui.components.hits import Scene, hits

STATUS = {
    "failed": "failed",
    "timeout": "out of time",
    "unavailable": "not available",
    "cancelled": "stopped",
}
WHOLE_HITS = 400  # hits up to which each opens and holds its whole text; beyond, each is as little as can be
LINES = 7  # of a text, at the widest density
NARROW_CHARACTERS = 60  # characters a line has in the narrowest column
DENSITY = {density: style(f"density-{density}") for density in "SL"}  # M is what style.css says


@dataclass(frozen=True, slots=True)
class Waiting:
    """A route that has not ended, with its current step if it has begun."""

    title: str
    running: bool
    step: str = ""
    text: str = ""  # what a model is writing right now


@dataclass(frozen=True, slots=True)
class View:
    """The display options of a run."""

    baseline: str | None = None
    depth: int = 10
    density: str = "M"
    gold: Mapping[str, int] = field(default_factory=dict)
    lit: str | None = None


def drawn(run: Run, view: View) -> int:
    """Return how many hits the grid shows."""
    return sum(min(view.depth, len(result.hits)) for result in run.results if result.status == "ok")


def grid(run: Run, view: View, waiting: Sequence[Waiting] = (), marker: Marker | None = None) -> Markup:
    """Return all routes side by side, the baseline first and routes without a ranking last.

    Up to WHOLE_HITS hits contain their text, with the words that `marker` finds marked.
    """
    results = sorted(run.results, key=lambda r: (r.route != view.baseline, r.status != "ok"))
    base = next((r for r in results if r.route == view.baseline and r.status == "ok"), None)
    wide = max(NARROW_CHARACTERS, 8 * NARROW_CHARACTERS // max(1, len(results) + len(waiting)))
    whole = drawn(run, view) <= WHOLE_HITS
    scene = Scene(run, base, view.depth, view.gold, LINES * wide, whole, marker, numbered(run))
    columns = [_column(scene, result) for result in results] + [_waiting(one) for one in waiting]
    return tag(
        "div",
        tag("style", _light(scene.shared())),
        tag("div", *columns, css="rs-grid", role="list", aria_label="routes side by side", tabindex="0"),
        css="rs" if whole else "rs rs-large",
    )


def kept(run: Run, view: View, marker: Marker | None = None) -> Markup:
    """Return `grid` of a finished run, cached by everything that it shows."""
    by = (marker.kinds, marker.analyzer.language, marker.analyzer.stop_words) if marker is not None else None
    results = [
        (one.route, one.status, one.ms, len(one.spans), one.answer, one.answer_error, one.error)
        for one in run.results
    ]
    shown = repr(
        (run.id, run.created, run.fingerprint, view.baseline, view.depth, dict(view.gold), by, results)
    )
    return _kept(hashlib.blake2b(shown.encode(), digest_size=16).hexdigest(), run, view, marker)


@st.cache_resource(max_entries=16, show_spinner=False)  # text is never changed: no copy is needed
def _kept(shown: str, _run: Run, _view: View, _marker: Marker | None) -> Markup:  # noqa: ARG001 - the cache key
    return grid(_run, _view, marker=_marker)


def numbered(run: Run) -> dict[str, int]:
    """Return a number for each passage of a run, so that no id has to be made safe for CSS."""
    return {id: number for number, id in enumerate(run.passages)}


def dense(density: str) -> Markup:
    """Return the style of a density (S, M or L), separate from the grid for the same reason as `lit`."""
    return tag("style", Markup(DENSITY.get(density, ".rs-none{}")))


def lit(run: Run, id: str | None) -> Markup:
    """Return the style that highlights the selected passage.

    It is separate from the grid, which stays unchanged when another passage is selected: redrawing a
    thousand hits is slow in a browser.
    """
    number = numbered(run).get(id) if id is not None else None
    if number is None:
        return tag("style", Markup(".rs-none{}"))
    return tag(
        "style",
        Markup(
            f'.rs .rs-grid [data-p="{number}"]{{background:var(--lit);border-left-color:var(--lit-line)}}'
            f'.rs .rs-grid [data-p="{number}"] mark{{background:var(--lit-mark)}}'
        ),
    )


def _light(numbers: Sequence[int]) -> Markup:
    """Return a style that highlights a passage in every route while it is pointed at or open."""
    return Markup(
        "".join(
            f'.rs-grid:has([data-p="{n}"]:is(:hover,:focus-within,[open])) [data-p="{n}"]'
            "{background:var(--lit);border-left-color:var(--lit-line)}"
            for n in numbers
        )
    )


def _column(scene: Scene, result: RouteResult) -> Markup:
    is_base = result is scene.base
    works = result.status == "ok"
    moved = moves(scene.base.hits, result.hits, scene.depth) if scene.base and works and not is_base else None
    return tag(
        "section",
        _head(scene, result, moved),
        tag(
            "div",
            citations.note(scene.run, result),
            hits(scene, result, moved),
            css="rs-body",
            style=f"--hits:{min(scene.depth, len(result.hits))}",
        )
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
        lines.append(tag("div", *alone, css="line", title="Time this route takes when it runs alone"))
    said = [*external.facts(result), *marks(reuse(scene.run, result)), *remarks(result, scene.run.corpus)]
    said += [found.line()] if (found := halves(result)) is not None else []
    lines += [tag("div", mark, css="line dim") for mark in said]
    if moved is not None:
        lines.append(_counts(moved))
    if relevant(scene.gold) and result.status == "ok":
        lines.append(_gold_found(scene, result))
    for _, rewrite in rewrites(result):
        if rewrite.changed:
            text = " · ".join(cut(item, 220) for item in rewrite.texts)
            lines.append(tag("div", text, css="query", dir="auto", title="Query"))
    return tag("header", *lines, css="rs-head")


def marks(used: Reuse) -> list[str]:
    """Describe which parts of a route's time were recorded, cached or reused."""
    found = []
    when = f", made {used.made[:10]}" if used.made else ""
    if used.recorded_ms:
        found.append(f"recorded: {used.model}, {milliseconds(used.recorded_ms)} then{when}")
    if used.cached_ms:
        found.append(f"cached: {used.model}, {milliseconds(used.cached_ms)} then{when}")
    if used.shared_ms:
        found.append(f"{milliseconds(used.shared_ms)} reused from other routes")
    return found


def _counts(moved: Moves) -> Markup:
    css = {"better": "up", "worse": "down", "same": "dim", "new": "new"}
    parts = [tag("span", f"{n} {kind}", css=f"{css[kind]} nowrap") for kind, n in moved.counts.items()]
    parts.append(tag("span", f"{len(moved.lost)} lost", css="dim nowrap"))
    return tag("div", join(parts, " · "), css="line")


def _gold_found(scene: Scene, result: RouteResult) -> Markup:
    wanted = set(relevant(scene.gold))
    found = wanted & {hit.passage.id for hit in result.hits[: scene.depth]}
    words = f"◆ {len(found)} of {len(wanted)} relevant"
    return tag("div", words, tag("span", f" in the top {scene.depth}", css="dim"), css="line")


def _trouble(result: RouteResult) -> Markup:
    """Return why there is no ranking, and the steps that were run until then."""
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
        tag("div", cut(result.error or "no reason recorded", 600), css=css, dir="auto"),
        tag("ul", *steps, css="rs-steps") if steps else EMPTY,
        css="rs-note",
    )


def _waiting(one: Waiting) -> Markup:
    doing = one.step or ("starting" if one.running else "waiting to start")
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
