"""The kinds of failure that people report, and which of them a run itself tells."""

from __future__ import annotations

from collections.abc import Mapping

from core.analysis.diagnosis import held
from core.analysis.passage_trace import PassageTrace
from core.domain.types import Run

DEPTH = 10  # first passages of a ranking that count as shown
OF_RANKINGS = ("not found", "ranked too low", "cut by a step", "wrong passage on top")
OF_ANSWERS = ("wrong answer", "should have abstained", "should have answered", "wrong citation")
FAILURES: Mapping[str, str] = {kind: kind.capitalize() for kind in (*OF_RANKINGS, *OF_ANSWERS, "other")}


def suggested(run: Run, route: str, passage: str | None = None) -> str:
    """Return the kind that the run itself shows of a route, for the passage that should have been there: not
    found by any step, cut by one, or ranked too low. Without a passage: the answer's, if one was written.
    """
    result = next((one for one in run.results if one.route == route), None)
    if result is None:
        return "other"
    if passage is None:
        if result.abstained:
            return "should have answered"
        return "wrong answer" if result.answer else "not found"
    ranks = {hit.passage.id: at for at, hit in enumerate(result.hits, 1)}
    if passage in ranks:
        return "ranked too low" if ranks[passage] > DEPTH else "wrong answer" if result.answer else "other"
    return "cut by a step" if held([PassageTrace(result)], passage) else "not found"
