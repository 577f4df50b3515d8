"""Run -> plotly Figure: pure, drawn from spans and rankings alone, without streamlit."""

from core.charts.match import match_heatmap, match_told
from core.charts.reliability import reliability_curve, reliability_told
from core.charts.waterfall import waterfall

__all__ = ["match_heatmap", "match_told", "reliability_curve", "reliability_told", "waterfall"]
