"""Asks before anything is chosen on questions of split test."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.domain.errors import BadInput
from core.evaluation.dataset import LabelledSet
from core.evaluation.tuning.sweep_split import TEST, Split, split
from ui.app.markup import md

KEY = "tune_on_test"


def divided(labelled: LabelledSet, ids: Sequence[str] | None = None) -> Split | None:
    """Return the questions divided, or None, with a box to confirm, if all are of split test."""
    try:
        return split(labelled, ids)
    except BadInput:
        st.info(
            md(
                "All questions are of split test, which is kept for the final measurement. A value chosen on "
                "them looks better than it is."
            )
        )
        on = st.checkbox("Choose on half of the test questions", key=KEY, persist_state="session")
        return split(labelled, ids, TEST) if on else None
