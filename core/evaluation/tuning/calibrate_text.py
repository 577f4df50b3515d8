"""A calibration in words."""

from __future__ import annotations

from dataclasses import replace

from core.evaluation.calibration import OBJECTIVES, Objective
from core.evaluation.finding import NONE, SAME, Finding, sentence
from core.evaluation.templating import say
from core.evaluation.tuning.calibrate import Calibration, reliable
from core.evaluation.tuning.threshold_cases import Target

NAMES: dict[Objective, str] = {name: name for name in OBJECTIVES} | {"f1": "F1"}


def about(target: Target) -> str:
    """Describe the calibrated threshold."""
    return say("calibration.about", target)


def in_words(found: Calibration) -> str:
    """Return the finding in a few sentences: the threshold and its figures on held-out questions, next to
    those of the one in use.
    """
    return say("calibration.found", found, difference(found))


def difference(found: Calibration) -> str:
    """Return the chosen threshold against the one in use, in the objective."""
    by, same = found.difference, found.threshold == found.shipped.threshold
    if by.value is None:
        return f"They cannot be compared: the {NAMES[found.objective]} of one of them is undefined."
    verdict = SAME if same else NONE if not found.shown else "better" if by.value > 0 else "worse"
    numbers = (by.value, by.interval, found.p, found.held_out)
    made = Finding("the chosen threshold", NAMES[found.objective], *numbers, None, "the one in use", verdict)
    return sentence(replace(made, unit="held-out questions"))


def halves(found: Calibration) -> str:
    """Return a sentence on how the questions were divided if they have no splits, or "" if they have."""
    if not found.made:
        return ""
    return (
        "The evaluation lacks dev or test questions, so they were split into two halves with a fixed "
        "seed. If they are test questions, do not report figures on them for a threshold chosen here."
    )


def left_out(target: Target, total: int) -> str:
    """Return the part of `total` questions that is excluded, and why, or "" if none is."""
    return say("calibration.left_out", target, total - sum(target.stored.values()))


def reliability_in_words(target: Target) -> str:
    """Return a sentence on whether the scores can be read as probabilities, over all cases."""
    found = reliable(target, target.cases)
    if found is None:
        return "These scores are not meant as probabilities, so their calibration is not measured."
    return (
        f"Over all {found.n:,} cases, scores differ from the share of correct cases by {found.ece:.2f} on"
        f" average (expected calibration error); Brier score {found.brier:.3f}."
    )


def note(found: Calibration, evaluation: str) -> str:
    """Return a note on the origin of a saved threshold."""
    return f"{in_words(found)} Evaluation {evaluation}, route {found.target.route}, “{found.target.step}”."
