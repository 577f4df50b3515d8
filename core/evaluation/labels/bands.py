"""Words for kappa, by the bands that Landis and Koch proposed."""

from __future__ import annotations

BANDS = ((0.0, "poor"), (0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "substantial"))


def landis_koch(kappa: float) -> str:
    """Return the band of a kappa: poor below 0, slight to 0.20, fair to 0.40, moderate to 0.60, substantial
    to 0.80, almost perfect above. The authors call the bounds arbitrary.

    Landis & Koch 1977, "The measurement of observer agreement for categorical data", table on p. 165.
    """
    if kappa < 0:
        return "poor"
    return next((name for bound, name in BANDS[1:] if kappa <= bound), "almost perfect")
