"""Criteria to begin with, from what the baseline reaches."""

from __future__ import annotations

from core.evaluation.release.criteria import Criteria
from core.evaluation.release.measured import UNJUDGED, Measured

LEAST_MS = 1000.0  # what `derived` allows any route: Nielsen 1993, a user's train of thought is kept for 1 s
MOST_FAILED = 0.05  # what `derived` allows at most, however often the baseline fails
SLACK = 0.05  # by how much more of the first ten may be unjudged than of the baseline's


def derived(measured: Measured, metric: str = "ndcg@10") -> Criteria:
    """Criteria to begin with: as good as the baseline, not much slower, and judged about as well.

    Without a figure of the baseline its limit is left out. A baseline that fails often does not meet them.
    """
    base = measured.baseline
    mean, p95 = measured.mean(base, metric), measured.p95(base)
    unjudged, failed = measured.mean(base, UNJUDGED), measured.failed(base)
    return Criteria(
        metric,
        minimum=None if mean is None else int(mean * 100) / 100,
        max_p95_ms=None if p95 is None else float(max(LEAST_MS, 100 * round(2 * p95 / 100))),
        max_failed=0.0 if not failed else min(MOST_FAILED, int(failed * 100 + 1) / 100),
        max_unjudged=None if unjudged is None else round(min(1.0, unjudged + SLACK), 2),
    )
