"""Passages and sentences that filters kept, against a threshold that can be moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st
from markupsafe import Markup

from core.analysis.run_view import Recorded, strippings
from core.analysis.what_if.grading import floor_of, nears, reaching, refloored
from core.domain.outputs import Selection, SentenceFilter
from core.domain.types import RouteResult, Run, Span
from ui.app.choice import choice, slider
from ui.app.markup import fragment, show
from ui.app.names import title_of
from ui.components import saved_thresholds
from ui.evaluators.grades import step_name

CUT = "cut_step"
Step = Recorded[SentenceFilter] | Recorded[Selection]
Row = tuple[Any, ...]  # grade, whether it has a labelled quote, text, score, passed now, passed in the run


def steps(run: Run) -> dict[str, tuple[RouteResult, Step]]:
    """Return the steps that filtered passages or sentences, by "route:span"."""
    found: dict[str, tuple[RouteResult, Step]] = {}
    for result in run.results:
        some: list[Step] = [*nears(result), *strippings(result)]
        for one in sorted(some, key=lambda one: one.span.id):
            found[f"{result.route}:{one.span.id}"] = (result, one)
    return found


def draw(run: Run, gold: Mapping[str, int], quotes: Mapping[str, Sequence[str]]) -> None:
    """Draw the chosen step, with its floor as a control if the stored scores reproduce what was kept."""
    found = steps(run)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        named = {name: step_name(found, name) for name in found}
        name = choice("cut", CUT, "Filtered by", named, width=460)
        result, step = found[name]
        kept, floor = step.output, None
        stored = kept.floor if isinstance(kept, Selection) else floor_of(kept)
        if stored is not None:
            floor = slider("floor", f"floor:{run.id}:{name}", "Threshold", -1.0, 1.0, stored, step=0.005)
    if floor is not None and stored is not None:
        saved_thresholds.offer(run, result, step.span, {"floor": floor}, {"floor": stored})
    show(filtered(run, result, step.span, kept, floor, gold, quotes))


def filtered(
    run: Run,
    result: RouteResult,
    span: Span,
    kept: Selection | SentenceFilter,
    floor: float | None,
    gold: Mapping[str, int],
    quotes: Mapping[str, Sequence[str]],
) -> Markup:
    """Return what a filter passes and drops with the threshold `floor`, and what it did in the run."""
    if isinstance(kept, Selection):
        what, (passed, rows) = "Passage", _passages(run, kept, floor, gold)
    else:
        what, (passed, rows) = "Sentence", _sentences(run, kept, floor, gold, quotes)
    rule = "" if floor is None else f", threshold {floor:.3g}"
    if floor is not None and what == "Sentence":
        rule += "; each passage's best sentence always passes"
    return fragment("evaluators.filtered", result, span, passed, rule, what, rows)


def _passages(
    run: Run, step: Selection, floor: float | None, gold: Mapping[str, int]
) -> tuple[str, list[Row]]:
    now, then = set(reaching(step, floor)), set(reaching(step, step.floor))
    lost = [id for id in step.cosines if gold.get(id, 0) > 0 and id not in now]
    passed = f"{len(now)} of {len(step.cosines)} passages passed"
    rows = [
        (gold.get(id, 0), False, title_of(run, id), f"{score:.3f}", id in now, id in then)
        for id, score in sorted(step.cosines.items(), key=lambda one: -one[1])
    ]
    return (f"{passed}; {len(lost)} labelled dropped" if lost else passed), rows


def _sentences(
    run: Run,
    step: SentenceFilter,
    floor: float | None,
    gold: Mapping[str, int],
    quotes: Mapping[str, Sequence[str]],
) -> tuple[str, list[Row]]:
    now = step if floor is None or floor == floor_of(step) else refloored(step, floor) or step
    passed = f"{now.kept} of {len(now.sentences)} sentences passed"
    if now is not step:
        passed += f" ({step.kept} in the run)"
    rows: list[Row] = []
    quoted: list[bool] = []
    for id, some in now.by_passage.items():
        passage = run.passages.get(id)
        wanted = [" ".join(quote.split()) for quote in quotes.get(passage.doc_id, ())] if passage else []
        count = f"{sum(one.kept for one in some)} of {len(some)}"
        rows.append((gold.get(id, 0), False, title_of(run, id), "", count, None))
        for one, old in zip(some, step.by_passage[id], strict=True):
            text = " ".join(one.text.split())
            mark = any(text and (text in quote or quote in text) for quote in wanted)
            quoted += [one.kept] if mark else []
            score = "–" if one.score is None else f"{one.score:.2f}"
            rows.append((0, mark, one.text, score, one.kept, old.kept))
    return (f"{passed}; {sum(quoted)} of {len(quoted)} with labelled quotes" if quoted else passed), rows
