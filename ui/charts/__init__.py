"""Charts as plotly figures. They need data of core only, and import neither streamlit nor the rest of ui."""

from ui.charts.match import describe_match, match_heatmap
from ui.charts.reliability import describe_reliability, reliability_curve
from ui.charts.waterfall import waterfall

__all__ = ["describe_match", "describe_reliability", "match_heatmap", "reliability_curve", "waterfall"]
