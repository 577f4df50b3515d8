"""Run -> plotly Figure: pure, drawn from spans and rankings alone, without streamlit."""

from ui.charts.match import match_heatmap, match_told
from ui.charts.reliability import reliability_curve, reliability_told
from ui.charts.waterfall import waterfall

__all__ = ["match_heatmap", "match_told", "reliability_curve", "reliability_told", "waterfall"]
