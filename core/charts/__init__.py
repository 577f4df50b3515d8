"""Run -> plotly Figure: pure, drawn from spans and rankings alone, without streamlit."""

from core.charts.matrix import rank_matrix
from core.charts.waterfall import waterfall

__all__ = ["rank_matrix", "waterfall"]
