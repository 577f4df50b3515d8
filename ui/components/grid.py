"""The columns of Compare, as one HTML element for all routes: the number of elements is what a page costs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from markupsafe import Markup

from core.analysis import external
from core.analysis.rank_overlap import halves
from core.analysis.remarks import remarks
from core.analysis.run_view import Reuse, reuse, top, worked
from core.analysis.searches import rewrites
from core.analysis.term_contributions import Marker
from core.domain.format import milliseconds
from core.domain.rank_changes import moves
from core.domain.relevance import relevant
from core.domain.types import RouteResult, Run
from ui.app import state
from ui.app.data import style
from ui.app.markup import EMPTY, cut, fragment, tag
from ui.app.routes import on_page
from ui.components import citations
from ui.components.hits import Scene, hits, lost

STATUS = {
    "failed": "failed",
    "timeout": "out of time",
    "unavailable": "not available",
    "cancelled": "stopped",
}
MOVES = {"better": ("▲", "up"), "worse": ("▼", "down"), "new": ("+", "new")}  # sign and style
MAX_NAMED = 4  # routes that one line names
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
    gradable: bool = False


def drawn(run: Run, view: View) -> int:
    """Return how many hits the grid shows."""
    return sum(min(view.depth, len(result.hits)) for result in worked(run))


def grid(run: Run, view: View, waiting: Sequence[Waiting] = (), marker: Marker | None = None) -> Markup:
    """Return all routes side by side, the baseline first. Routes without a ranking are in `troubles`.

    Up to WHOLE_HITS hits contain their text, with the words that `marker` finds marked.
    """
    results = sorted(worked(run), key=lambda r: r.route != view.baseline)
    base = next((r for r in results if r.route == view.baseline), None)
    wide = max(NARROW_CHARACTERS, 8 * NARROW_CHARACTERS // max(1, len(results) + len(waiting)))
    whole = drawn(run, view) <= WHOLE_HITS
    scene = Scene(
        run, base, view.depth, view.gold, LINES * wide, whole, marker, numbered(run), gradable=view.gradable
    )
    columns = [_column(scene, result) for result in results]
    foldable = any(notes or texts for _, _, notes, texts, *_ in columns)
    return fragment("grid.grid", columns, waiting, scene, foldable, scene.shared())


def _column(scene: Scene, result: RouteResult) -> tuple[Any, ...]:
    """Return what a column shows: its head, what it was made of, its answer, its hits and the lost ones."""
    is_base = result is scene.base
    moved = moves(scene.base.hits, result.hits, scene.depth) if scene.base and not is_base else None
    counts = {str(kind): n for kind, n in moved.counts.items()} if moved else {}
    marks = [(counts.get(kind, 0), *look, kind) for kind, look in MOVES.items()]
    marks.append((len(moved.lost) if moved else 0, "−", "dim", "lost"))
    notes = [*external.facts(result), *_reused(reuse(scene.run, result)), *remarks(result, scene.run.corpus)]
    notes += [found.line()] if (found := halves(result)) is not None else []
    texts = [" · ".join(cut(text, 220) for text in one.texts) for _, one in rewrites(result) if one.changed]
    return (
        result,
        is_base,
        notes,
        texts,
        found_relevant(scene.gold, result, scene.depth),
        [one for one in marks if one[0]],
        citations.note(scene.run, result),
        hits(scene, result, moved),
        lost(scene, result, moved),
        min(scene.depth, len(result.hits)),
    )


def kept(run: Run, view: View, marker: Marker | None = None) -> Markup:
    """Return `grid` of a finished run, cached by everything that it shows."""
    by = (marker.kinds, marker.analyzer.language, marker.analyzer.stop_words) if marker is not None else None
    results = [
        (one.route, one.status, one.ms, len(one.spans), one.answer, one.answer_error, one.error)
        for one in run.results
    ]
    named = state.engine().opened(run.corpus) is not None
    seen = (view.baseline, view.depth, dict(view.gold), view.gradable)
    shown = repr((run.id, run.created, run.fingerprint, seen, named, by, results))
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
    rules = (
        '.rs :is(.rs-grid,.rs-matrix) [data-p="{0}"]{{background:var(--lit);'
        "border-left-color:var(--lit-line)}}"
        '.rs .rs-grid [data-p="{0}"] mark{{background:var(--lit-mark)}}'
    )
    return tag("style", Markup(".rs-none{}" if number is None else rules.format(number)))


def _reused(used: Reuse) -> list[str]:
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


def found_relevant(gold: Mapping[str, int], result: RouteResult, depth: int) -> Markup:
    """Return how many of the relevant passages are in a route's top `depth`, or nothing without labels."""
    if not (wanted := set(relevant(gold))):
        return EMPTY
    found = len(wanted & {hit.passage.id for hit in result.hits[:depth]})
    title = f"{found} of {len(wanted)} relevant passages in the top {depth}"
    css = "found nowrap" if found else "found none nowrap"
    unit = tag("span", " relevant passages", css="rs-unseen")
    return tag("span", f"{found}/{len(wanted)}", unit, css=css, title=title)


def troubles(results: Sequence[RouteResult]) -> Markup:
    """Return a line for each reason why routes have no ranking or no answer; it opens to their steps."""
    groups: dict[tuple[str, str], list[RouteResult]] = {}
    for result in results:
        why = result.answer_error if result.status == "ok" else result.error or "no reason recorded"
        if why:
            status = STATUS.get(result.status, "could not write an answer")
            groups.setdefault((status, cut(on_page(why), 600)), []).append(result)
    told = [(*key, [(one, top(one)) for one in those]) for key, those in groups.items()]
    return fragment("grid.troubles", told, MAX_NAMED)
