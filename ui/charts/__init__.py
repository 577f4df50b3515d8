"""Run -> plotly Figure: pure, drawn from spans and rankings alone.

Imports core and plotly, and nothing of ui.
"""

from ui.charts.match import match_heatmap, match_in_words
from ui.charts.reliability import reliability_curve, reliability_in_words
from ui.charts.waterfall import waterfall

__all__ = ["match_heatmap", "match_in_words", "reliability_curve", "reliability_in_words", "waterfall"]
