"""Parameters, thresholds and weights chosen on labelled questions."""
