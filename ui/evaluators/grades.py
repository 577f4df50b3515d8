"""Passage grades: thresholds to move, the decisions they make, and the consequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st
from markupsafe import Markup

from core.analysis.grades import errors
from core.analysis.run_view import Recorded, gradings
from core.analysis.what_if.grading import again, at, bands, by_best, by_mean
from core.domain.outputs import Grading, Round
from core.domain.types import RouteResult, Run
from core.evaluation.tuning.batch_run import SPENT, follows
from ui.app import address, say
from ui.app.choice import choice
from ui.app.markup import cut, fragment, md, show
from ui.app.names import tail, title_of
from ui.app.plot import plot
from ui.charts.grades import BANDS, describe_strip, grade_strip
from ui.components import saved_thresholds

Edges = tuple[float, float]  # low, high
Step = Recorded[Grading]
STEP = "graded_step"
LONGEST_NAME = 42  # characters of a passage's name in the chart
KEPT = {"use what was found": "stay, best grade first"}  # of the passages, by the route's next action


def steps(run: Run) -> dict[str, tuple[RouteResult, Step]]:
    """Return the steps that graded passages, by "route:span" for the address."""
    return {
        f"{result.route}:{one.span.id}": (result, one) for result in run.results for one in gradings(result)
    }


def step_name(found: Mapping[str, tuple[RouteResult, Recorded[Any]]], name: str) -> str:
    """Return the name of one of the steps in a list: its route, its name, and which of several it is."""
    result, step = found[name]
    same = [one for one in found if found[one][0] is result and found[one][1].span.name == step.span.name]
    turn = f", {same.index(name) + 1} of {len(same)}" if len(same) > 1 else ""
    decision = step.output.decision if isinstance(step.output, Grading) else ""
    decided = f": {cut(decision, 40)}" if decision else ""
    return f"{cut(result.title, 50)} · {cut(step.span.name, 50)}{turn}{decided}"


def draw(run: Run, gold: Mapping[str, int]) -> None:
    """Draw the chosen step with its controls."""
    found = steps(run)
    named = {name: step_name(found, name) for name in found}
    name = choice("step", STEP, "Graded by", named, width=520, disabled=len(found) == 1)
    result, step = found[name]
    grading, judged = step.output, by_mean(step.output)
    if judged is not None:
        low, high = _of_mean(run, name, result, step, judged)
    else:
        low, high = _edges(run, name, grading)
        show(fragment("evaluators.decided", step.span, grading, _lines(result, step, low, high)))
        was = {"low": grading.low, "high": grading.high}
        saved_thresholds.offer(run, result, step.span, {"low": low, "high": high}, was)
    known = (one.id for one in grading.grades if one.id in run.passages)
    titles = {id: tail(title_of(run, id), LONGEST_NAME) for id in known}
    stored = (grading.low, grading.high)
    figure = grade_strip(grading.grades, titles, gold, low, high, stored)
    decision = at(grading.grades, low, high).decision if by_best(grading) else grading.decision
    told = describe_strip(grading.grades, gold, low, high, decision)
    say.caption(told + (" The dotted line is the stored threshold." if stored != (low, high) else ""))
    plot(figure, f"strip-{name}", told, table=False)
    show(table(run, gold, grading, low, high))


def _edges(run: Run, name: str, grading: Grading) -> Edges:
    """Draw the thresholds and return them, or the stored ones if those are not a range from 0 to 1."""
    stored = (grading.low, grading.high)
    if not 0 <= grading.low <= grading.high <= 1:
        say.caption(
            f"The stored thresholds {grading.low:g} and {grading.high:g} are not a range between 0 and 1."
        )
        return stored
    key, near = f"edges:{run.id}:{name}", (round(grading.low, 3), round(grading.high, 3))
    address.take("thresholds", key, read_edges)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.session_state.setdefault(key, near)
        label = "Thresholds: passages below the lower one are doubted, from the upper one trusted"
        given: Any = {"step": 0.001, "format": "%.3f", "width": 620, "persist_state": "session"}
        tried: Edges = st.slider(label, 0.0, 1.0, key=key, **given)  # two ends, as its value in the state
        (low, high), changed = tried, tried != near
        note = md(f"Back to {grading.low:.3f} and {grading.high:.3f}, the thresholds of the run")
        back: Any = {"on_click": st.session_state.__setitem__, "args": (key, near), "help": note}
        st.button("As stored", key=f"as_stored:{name}", disabled=not changed, **back)
    address.keep("thresholds", f"{low:.3f}-{high:.3f}" if changed else None)
    # The slider rounds: where it stands as stored, the stored thresholds themselves count.
    return (stored[0] if low == near[0] else low, stored[1] if high == near[1] else high)


def read_edges(text: str) -> Edges:
    """Return two thresholds from an address ("0.2-0.44"). Raises ValueError for an invalid range."""
    low, high = map(float, text.split("-"))
    if not 0 <= low <= high <= 1:
        raise ValueError(f"thresholds {text!r} must satisfy 0 <= low <= high <= 1")
    return low, high


def _of_mean(run: Run, name: str, result: RouteResult, step: Step, judged: Round) -> Edges:
    """Draw the controls of a step that decides by the mean grade of a round, and what they decide."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        label, key = "Mean grade that passes (1 to 5)", f"mean:{run.id}:{name}"
        stored_at = min(5.0, max(1.0, judged.threshold))
        threshold = st.slider(label, 1.0, 5.0, stored_at, 0.01, key=key, width=420, persist_state="session")
        label, key = "Minimum gain over the previous round", f"gain:{run.id}:{name}"
        stored_gain = min(4.0, max(0.0, judged.gain))
        gain = st.slider(label, 0.0, 4.0, stored_gain, 0.01, key=key, width=320, persist_state="session")
    decision, reason = again(judged, threshold, gain)
    mean = "no grades" if judged.mean is None else f"mean grade {judged.mean:.2f} of 5"
    changed = (threshold, gain) != (judged.threshold, judged.gain)
    told = f"{mean}, threshold {threshold:.2f}" + (f": {reason}" if reason else "")
    lines = [(f"with these: {decision}", "", told)] if changed else []
    show(fragment("evaluators.decided", step.span, step.output, lines))
    stored = {"threshold": judged.threshold, "gain": judged.gain}
    saved_thresholds.offer(run, result, step.span, {"threshold": threshold, "gain": gain}, stored)
    edge = (threshold - 1) / 4
    return (edge, edge) if changed else (step.output.low, step.output.high)


def _lines(result: RouteResult, step: Step, low: float, high: float) -> list[tuple[str, str, str]]:
    """Return the decision at these thresholds and what the route would do then: fact, chip and reason."""
    grading = step.output
    if not by_best(grading):
        note = "The stored decision does not depend on the best grade; the thresholds only mark passages."
        return [("", "", note)] if grading.decision else []
    verdict, lines = at(grading.grades, low, high), []
    if (low, high) != (grading.low, grading.high):
        chip = "decision changes" if verdict.decision != grading.decision else "same decision"
        lines.append((f"with these: {verdict.decision}", chip, verdict.why))
    if (action := follows(result, step, verdict)) is not None:
        stay = KEPT.get(action.decision, "stay, in the order they were found")
        told = (
            f"all {len(grading.grades)} graded passages {'are dropped' if action.decision in SPENT else stay}"
        )
        if verdict.decision != "correct" and grading.decision == "correct":
            told += "; web results are unknown, as this run did not search the web"
        lines.append((f"then: {action.decision}", "", told))
    return lines


def table(run: Run, gold: Mapping[str, int], grading: Grading, low: float, high: float) -> Markup:
    """Return every graded passage with its label, grade, and place before and after; ungraded ones apart."""
    now, then = _bands(grading, low, high), _bands(grading, grading.low, grading.high)
    graded = sorted((one for one in grading.grades if one.id in now), key=lambda one: -(one.grade or 0.0))
    rows = [(title_of(run, one.id), gold.get(one.id), one, now[one.id], then[one.id]) for one in graded]
    failed = [(title_of(run, id), why) for id, why in errors(grading)]
    return fragment("evaluators.grades", rows, failed)


def _bands(grading: Grading, low: float, high: float) -> dict[str, str]:
    found = bands(grading.grades, low, high)
    return {
        one.id: name
        for (name, _), some in zip(BANDS, (found.above, found.between, found.below), strict=True)
        for one in some
    }
