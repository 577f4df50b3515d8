"""A link from an undecided comparison to the questions whose labels would decide it."""

from __future__ import annotations

import streamlit as st

from core.evaluation.experiment_store import Evaluation
from core.evaluation.labels import label_next
from ui.app import say, state
from ui.app.help_mark import term
from ui.app.routes import title


def button(evaluation: Evaluation | None, pair: tuple[str, str] | None, key: str) -> None:
    """Draw the button that opens Label at the questions that decide between the two routes."""
    if evaluation is None or pair is None:
        return
    route, other = pair
    count = len(label_next.of_evaluation(evaluation, route, other))
    if not count:
        both = f"{title(route)} and {title(other)}"
        say.caption(f"You have judged every passage that separates {both}. To decide, add questions.")
        return
    told = f"Unjudged passages of {count} questions decide between {title(route)} and {title(other)}."
    told += " The most decisive questions come first."
    note = term("label next", told)
    if not st.button("Label the deciding passages", key=key, icon=":material/checklist:", help=note):
        return
    engine = state.engine()
    with say.errors():
        with st.spinner("Preparing the queue"):
            corpus = engine.corpus(str(evaluation.spec["corpus"]))
            name, _ = label_next.begin(state.store(), evaluation, route, other, corpus)
        order = label_next.ORDER.join((evaluation.name, route, other))
        st.switch_page("label.py", query_params={"set": name, "order": order})
