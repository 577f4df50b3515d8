"""Passages and sentences that filters kept, against a threshold that can be moved."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import streamlit as st
from markupsafe import Markup

from core.analysis.run_view import Recorded, strippings
from core.analysis.what_if.grading import floor_of, nears, reaching, refloored
from core.domain.format import milliseconds
from core.domain.outputs import Selection, Sentence, SentenceFilter
from core.domain.types import RouteResult, Run, Span
from ui.app import address
from ui.app.choice import choice
from ui.app.markup import EMPTY, cut, join, show, table, tag
from ui.app.names import title_of
from ui.components import saved_thresholds

STRIP_CHARACTERS = 400  # characters of a strip that are shown
CUT = "cut_step"
Step = Recorded[SentenceFilter] | Recorded[Selection]


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
    names = list(found)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        name = choice(
            "cut",
            CUT,
            "Filtered by",
            names,
            width=460,
            format_func=lambda one: _named(names, found, one),
        )
        result, step = found[name]
        kept = step.output
        stored = kept.floor if isinstance(kept, Selection) else floor_of(kept)
        floor = None if stored is None else _floor(run, name, stored)
    if isinstance(kept, Selection):
        body = _passages(run, result, step.span, kept, gold, floor)
    else:
        anew = None if floor is None or floor == stored else refloored(kept, floor)
        body = _block(run, result, step.span, kept, anew, floor, gold, quotes)
    if floor is not None and stored is not None:
        saved_thresholds.offer(run, result, step.span, {"floor": floor}, {"floor": stored})
    show(tag("div", body, css="rs"))


def _named(names: Sequence[str], found: Mapping[str, tuple[RouteResult, Step]], name: str) -> str:
    result, step = found[name]
    same = [one for one in names if found[one][0] is result and found[one][1].span.name == step.span.name]
    turn = f", {same.index(name) + 1} of {len(same)}" if len(same) > 1 else ""
    return f"{cut(result.title, 50)} · {cut(step.span.name, 60)}{turn}"


def strips(run: Run) -> Markup:
    """Return every step that kept parts of passages, or nothing if there is none."""
    blocks = [
        _block(run, result, step.span, step.output, None, floor_of(step.output), {}, {})
        for result in run.results
        for step in strippings(result)
    ]
    return tag("div", *blocks, css="rs") if blocks else EMPTY


def _floor(run: Run, name: str, stored: float) -> float:
    key, near = f"floor:{run.id}:{name}", min(1.0, max(-1.0, round(stored, 3)))
    address.take("floor", key, _cosine)
    st.session_state.setdefault(key, near)
    floor: float = st.slider(
        "Threshold", -1.0, 1.0, step=0.005, format="%.3f", key=key, width=420, persist_state="session"
    )
    changed = floor != near
    address.keep("floor", f"{floor:.3f}" if changed else None)
    return floor if changed else stored


def _cosine(text: str) -> float:
    value = float(text)
    if not -1 <= value <= 1:
        raise ValueError(f"threshold {text!r} must be from -1 to 1")
    return value


def _passages(
    run: Run, result: RouteResult, span: Span, step: Selection, gold: Mapping[str, int], floor: float | None
) -> Markup:
    """Draw whole passages against the floor."""
    now, then = set(reaching(step, floor)), set(reaching(step, step.floor))
    lost = [id for id in step.cosines if gold.get(id, 0) > 0 and id not in now]
    passed = f"{len(now)} of {len(step.cosines)} passages passed"
    if lost:
        passed += f"; {len(lost)} labelled dropped"
    rows = [
        (join([_label(gold, id), cut(title_of(run, id), 90)]), f"{score:.3f}", _state(id in now, id in then))
        for id, score in sorted(step.cosines.items(), key=lambda one: -one[1])
    ]
    return _framed(result, span, passed, f", threshold {floor:.3g}", "Passage", rows)


def _block(
    run: Run,
    result: RouteResult,
    span: Span,
    step: SentenceFilter,
    anew: SentenceFilter | None,
    floor: float | None,
    gold: Mapping[str, int],
    quotes: Mapping[str, Sequence[str]],
) -> Markup:
    now = anew or step
    passed = f"{now.kept} of {len(now.sentences)} sentences passed"
    if anew is not None:
        passed += f" ({step.kept} in the run)"
    before, after = step.by_passage, now.by_passage
    quoted = {id: _quoted(run, id, some, quotes) for id, some in after.items()}
    total = sum(map(len, quoted.values()))
    if total:
        held = sum(
            strip.kept for id, some in after.items() for n, strip in enumerate(some) if n in quoted[id]
        )
        passed += f"; {held} of {total} with labelled quotes"
    rule = "" if floor is None else f", threshold {floor:.3g}; each passage's best sentence always passes"
    rows: list[Sequence[object]] = []
    for id, some in after.items():
        title = join([_label(gold, id), tag("b", cut(title_of(run, id), 90))])
        rows.append((title, "", (f"{sum(strip.kept for strip in some)} of {len(some)}", "dim")))
        for n, (strip, old) in enumerate(zip(some, before[id], strict=True)):
            mark = tag("span", "◆ ", title="labelled quote", css="new") if n in quoted[id] else EMPTY
            text = join([mark, tag("span", cut(strip.text, STRIP_CHARACTERS))])
            score = "–" if strip.score is None else f"{strip.score:.2f}"
            rows.append(((text, "" if strip.kept else "dim"), score, _state(strip.kept, old.kept)))
    return _framed(result, span, passed, rule, "Sentence", rows)


def _framed(
    result: RouteResult, span: Span, passed: str, rule: str, what: str, rows: Sequence[Sequence[object]]
) -> Markup:
    facts = f"  {span.name} · {milliseconds(span.ms)}"
    return tag(
        "div",
        tag("h4", result.title, tag("span", facts, css="dim")),
        tag("div", tag("b", passed), tag("span", rule, css="dim")),
        table((what, "Score", ""), rows, numbers={1}),
        css="rs-block",
    )


def _quoted(
    run: Run, id: str, some: Sequence[Sentence], quotes: Mapping[str, Sequence[str]]
) -> Collection[int]:
    """Return the sentences that contain a labelled quote or are part of one."""
    passage = run.passages.get(id)
    wanted = [" ".join(quote.split()) for quote in quotes.get(passage.doc_id, ())] if passage else []
    texts = [" ".join(strip.text.split()) for strip in some]
    return [
        n
        for n, text in enumerate(texts)
        if any(text and (text in quote or quote in text) for quote in wanted)
    ]


def _state(now: bool, before: bool) -> object:
    word = "passed" if now else "dropped"
    if now != before:
        return join([tag("b", word), tag("span", f" was {'passed' if before else 'dropped'}", css="dim")])
    return word if now else (word, "dim")


def _label(gold: Mapping[str, int], id: str) -> Markup:
    return tag("span", f"◆ {gold[id]} ", css="chip accent") if gold.get(id, 0) > 0 else EMPTY
