"""Broken and fixed questions: a table, and the selected one with its passages and links to Why."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.evaluation.diff.evaluations import displacements, passage_change
from core.evaluation.diff.questions import QuestionDiff, QuestionsDiff
from core.evaluation.experiment_store import Evaluation
from core.evaluation.finding import count
from ui.app import say
from ui.app.choice import choice
from ui.app.evaluated import to_sessions
from ui.app.markup import cut, fragment, md, show
from ui.components import tables

SIDES = {"broken": "Broken", "fixed": "Fixed"}


def draw(found: QuestionsDiff, key: str, runs: Mapping[str, Evaluation | None]) -> None:
    """Draw the questions that changed.

    `runs` are the evaluations that the links open, by the names on their buttons; None for an evaluation
    that is not available. `key` separates several such tables.
    """
    sides = {side: [one for one in found.questions if one.change == side] for side in SIDES}
    counted = {side: f"{label} ({len(sides[side])})" for side, label in SIDES.items()}
    side = choice("change", f"{key}_change", "Questions", counted, segmented=True)
    kept = sides[side]
    if not kept:
        st.caption(f"No question was {side} among the {count(len(found.questions))} compared.")
        return
    by_id = {one.id: one for one in kept}
    rows = [
        {
            "Question": cut(question.text, 240),
            "Passage": one.passage,
            "Rank before": one.before,
            "Rank after": one.after,
            "Why": one.loss.kind,
            "Losing step": one.loss.step or "not known",
            "Mode": question.mode,
        }
        for question in kept
        if (one := question.decisive) is not None
    ]
    selected = tables.pick(
        rows,
        kept,
        f"{key}_{side}:{[one.id for one in kept][:3]}",
        "Questions that changed, each with the passage that decided",
    )
    picked = tables.keep_pick(selected.id if selected else None, "question", f"{key}_question", list(by_id))
    if picked is None:
        st.caption("Select a row to see its passages and to open the question in Why.")
    else:
        _detail(by_id[picked], key, runs)


def _detail(question: QuestionDiff, key: str, runs: Mapping[str, Evaluation | None]) -> None:
    facts = [question.id, count(question.relevant, "relevant passages")]
    facts += [] if question.status == ("ok", "ok") else [" then ".join(question.status)]
    moved = [f"Lost: {passage_change(one)}" for one in question.lost]
    moved += [f"Gained: {passage_change(one)}" for one in question.gained]
    show(fragment("evaluate.changed", question, facts, [*moved, *displacements(question)]))
    passage = question.decisive
    with st.container(horizontal=True, vertical_alignment="center"):
        for place, (name, evaluation) in enumerate(runs.items()):
            if evaluation is None or passage is None:
                continue
            if not evaluation.run_id(question.id):
                say.caption(f"{evaluation.name} saved no run of this question.")
            elif st.button(f"Open in Why, {md(name)}", key=f"{key}_why_{place}"):
                run = to_sessions(evaluation, question.id)
                st.switch_page("why.py", query_params={"run": run, "passage": passage.passage})
