"""Decisions by one score: the threshold to move, and what it would have decided for each route."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from core.analysis.what_if.grading import Gate, gates
from core.domain.types import Run
from ui.app import address, say
from ui.app.choice import choice
from ui.app.help_mark import term
from ui.app.markup import cut, md, show, tag
from ui.app.markup import table as cells
from ui.components import saved_thresholds

KIND = "gate_kind"
EVIDENCE = "is the answer in the passages"  # the step that holds answers back, whatever the route


def kinds(run: Run) -> dict[str, list[Gate]]:
    """Return the run's decisions by one score, grouped by step name and threshold."""
    found: dict[str, list[Gate]] = {}
    for result in run.results:
        for gate in gates(result):
            found.setdefault(f"{gate.span.name} · from {gate.threshold:g}", []).append(gate)
    return found


def draw(run: Run) -> None:
    """Draw one kind of decision with its threshold, or nothing if no step has a score and a threshold."""
    found = kinds(run)
    if not found:
        return
    names = list(found)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        name = choice(
            "gate", KIND, "Try another threshold on", names, format_func=lambda one: cut(one, 80), width=420
        )
        stored = found[name][0].threshold
        key = f"gate:{run.id}:{name}"
        address.take("gate_at", key, _share)
        st.session_state.setdefault(key, min(1.0, max(0.0, round(stored, 3))))
        tried = st.slider(
            "Threshold",
            0.0,
            1.0,
            step=0.001,
            format="%.3f",
            key=key,
            width=420,
            persist_state="session",
            help=term("threshold"),
        )
    changed = tried != round(stored, 3)
    address.keep("gate_at", f"{tried:.3f}" if changed else None)
    at = tried if changed else stored
    say.caption(describe_gates(found[name], at))
    gate = found[name][0]
    if len(found[name]) == 1 and gate.name in gate.span.set_by:
        saved_thresholds.offer(run, gate.result, gate.span, {gate.name: at}, {gate.name: stored})
    elif changed:
        st.caption(
            md(
                "This threshold is the setting answer_evidence, which applies to all routes. Change it in "
                "Settings."
            )
            if name.startswith(EVIDENCE)
            else "Several routes use this threshold. To save a change, try it on a run with one of them."
        )
    show(tag("div", table(found[name], at), css="rs"))


def describe_gates(found: list[Gate], at: float) -> str:
    """Describe which decisions the threshold `at` would change."""
    other = [gate for gate in found if gate.decide(at) != gate.decision]
    if not other:
        return f"At {at:.3g} all {len(found)} decisions for this question stay the same."
    titles = ", ".join(dict.fromkeys(cut(gate.result.title, 40) for gate in other))
    ends = " and ".join(dict.fromkeys(gate.decide(at) for gate in other))
    return f"At {at:.3g} {len(other)} of {len(found)} decisions would change (to {ends}): {titles}."


def table(found: list[Gate], at: float) -> Markup:
    """Return a row for each route, best score first."""
    rows = [
        (
            gate.result.title,
            f"{gate.score:.3f}",
            gate.decision,
            tag("b" if gate.decide(at) != gate.decision else "span", gate.decide(at)),
        )
        for gate in sorted(found, key=lambda one: -one.score)
    ]
    return cells(("Route", "Score", "Decision", "At this threshold"), rows, numbers={1})


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(f"threshold {text!r} must be from 0 to 1")
    return value
