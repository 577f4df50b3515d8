"""The offer to save a chosen threshold, or why it cannot be saved."""

from __future__ import annotations

import streamlit as st

from core.domain.errors import BadInput
from core.evaluation.experiment_store import Evaluation
from core.evaluation.tuning.calibrate import Calibration
from core.evaluation.tuning.calibrate_text import note
from core.evaluation.tuning.saving import setting
from ui.app.markup import md
from ui.components import preset_saving


def offer(found: Calibration, evaluation: Evaluation) -> None:
    """Draw it."""
    try:
        chosen = setting(found.target, found.threshold)
    except BadInput as error:
        st.caption(md(f"{error}."))
        return
    corpus = str(evaluation.spec.get("corpus") or evaluation.labelled.name)
    preset_saving.offer("cal", chosen, corpus, note(found, evaluation.name), f"{evaluation.name} thresholds")
