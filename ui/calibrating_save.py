"""The offer to save a chosen threshold, or why it cannot be saved."""

from __future__ import annotations

import streamlit as st

from core.domain.errors import BadInput
from core.evaluate.keeping import Evaluation
from core.tune.calibrate import Calibration
from core.tune.calibrate_told import note
from core.tune.saving import setting
from ui import named_saving
from ui.markup import md


def offer(found: Calibration, evaluation: Evaluation) -> None:
    """Draw it."""
    try:
        chosen = setting(found.target, found.threshold)
    except BadInput as error:
        st.caption(md(f"{error}."))
        return
    corpus = str(evaluation.spec.get("corpus") or evaluation.labelled.name)
    named_saving.offer("cal", chosen, corpus, note(found, evaluation.name), f"{evaluation.name} thresholds")
