"""The weight of dense search that a corpus was measured to need, with its evidence."""

from __future__ import annotations

import streamlit as st

from core.corpus.types import DenseWeight
from ui.app.markup import md
from ui.app.plot import plot
from ui.charts.sweep import weight_curve


def draw(measured: DenseWeight, key: str) -> None:
    """Say the weight in a sentence, and draw how well each weight found the known items."""
    st.caption(md(f"Weight of dense: {measured.line()}."))
    if measured.found:
        plot(weight_curve(measured), key, "Known items found by weight, best near the dashed line.")
