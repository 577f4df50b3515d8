"""Decisions by one score: the threshold to move, and what it would have decided for each route."""

from __future__ import annotations

import streamlit as st

from core.analysis.what_if.grading import Gate, gates
from core.domain.types import Run
from ui.app import say
from ui.app.choice import choice, slider
from ui.app.help_mark import term
from ui.app.markup import cut, fragment, show
from ui.components import saved_thresholds

KIND = "gate_kind"
EVIDENCE = "is the answer in the passages"  # the step that holds answers back, whatever the route


def draw(run: Run) -> None:
    """Draw one kind of decision with its threshold, or nothing if no step has a score and a threshold."""
    found: dict[str, list[Gate]] = {}  # by step and threshold
    for gate in (gate for result in run.results for gate in gates(result)):
        found.setdefault(f"{gate.span.name} · from {gate.threshold:g}", []).append(gate)
    if not found:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        named = {one: cut(one, 80) for one in found}
        name = choice("gate", KIND, "Try another threshold on", named, width=420)
        stored, key = found[name][0].threshold, f"gate:{run.id}:{name}"
        at = slider("gate_at", key, "Threshold", 0.0, 1.0, stored, step=0.001, help=term("threshold"))
    say.caption(describe_gates(found[name], at))
    gate = found[name][0]
    if len(found[name]) == 1 and gate.name in gate.span.set_by:
        saved_thresholds.offer(run, gate.result, gate.span, {gate.name: at}, {gate.name: stored})
    elif at != stored and name.startswith(EVIDENCE):
        say.caption("This is the setting answer_evidence of all routes. Change it in Settings.")
    elif at != stored:
        st.caption("Several routes use this threshold. To save a change, try it on a run with one of them.")
    show(fragment("evaluators.gates", found[name], at))


def describe_gates(found: list[Gate], at: float) -> str:
    """Describe which decisions the threshold `at` would change."""
    other = [gate for gate in found if gate.decide(at) != gate.decision]
    if not other:
        return f"At {at:.3g} all {len(found)} decisions for this question stay the same."
    titles = ", ".join(dict.fromkeys(cut(gate.result.title, 40) for gate in other))
    ends = " and ".join(dict.fromkeys(gate.decide(at) for gate in other))
    return f"At {at:.3g} {len(other)} of {len(found)} decisions would change (to {ends}): {titles}."
