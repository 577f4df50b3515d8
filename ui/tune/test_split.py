"""Asks before anything is chosen on questions of split test."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.domain.errors import BadInput
from core.evaluation.dataset import LabelledSet
from core.evaluation.tuning.sweep_split import TEST, Split, split


def divided(labelled: LabelledSet, ids: Sequence[str] | None = None) -> Split | None:
    """Return the questions divided, or None, with a box to confirm, if all are of split test."""
    try:
        return split(labelled, ids)
    except BadInput:
        st.info("All questions are of split test. A value chosen on them looks better than it is.")
        label = "Choose on half of the test questions"
        on = st.checkbox(label, key="tune_on_test", persist_state="session")
        return split(labelled, ids, TEST) if on else None
