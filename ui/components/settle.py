"""A link from an undecided comparison to the questions whose labels would decide it."""

from __future__ import annotations

import streamlit as st

from core.domain.errors import RouteScopeError
from core.evaluation.experiment_store import Evaluation
from core.evaluation.labels import label_next
from core.evaluation.labels.pool import store_of
from ui.app import state
from ui.app.help_mark import term
from ui.app.markup import md
from ui.app.routes import title


def button(evaluation: Evaluation | None, pair: tuple[str, str] | None, key: str) -> None:
    """Draw the button that opens Label at the questions that decide between the two routes."""
    if evaluation is None or pair is None:
        return
    route, other = pair
    count = len(label_next.of_evaluation(evaluation, route, other))
    if not count:
        st.caption(
            md(
                f"You have judged every passage that separates {title(route)} and {title(other)}. To decide "
                "between them, add questions."
            )
        )
        return
    told = (
        f"Unjudged passages of {count} questions decide between {title(route)} and {title(other)}. The most "
        "decisive questions come first."
    )
    if st.button(
        "Label the deciding passages", key=key, icon=":material/checklist:", help=term("label next", told)
    ):
        _open(evaluation, route, other)


def _open(evaluation: Evaluation, route: str, other: str) -> None:
    engine = state.engine()
    try:
        with st.spinner("Preparing the queue"):
            corpus = engine.corpus(str(evaluation.spec["corpus"]))
            name, _ = label_next.begin(store_of(engine), evaluation, route, other, corpus)
    except RouteScopeError as error:
        st.error(md(str(error)))
        return
    order = label_next.ORDER.join((evaluation.name, route, other))
    st.switch_page("label.py", query_params={"set": name, "order": order})
