"""The step that tells, before anything is spent, what a decision is worth with the model in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from core.backends.calibrations import SIGNAL, DecisionCalibration, subject
from core.backends.calibrations import Decision as Name
from core.backends.prompting.prompts import EVIDENCE
from core.backends.prompting.prompts_confidence import CLOSED_ANSWER
from core.backends.prompting.prompts_corrective import CLAIM, LOOK_UP, RELEVANT
from core.domain.program import COMMAND
from core.steps.base import StepBase
from core.steps.decisions import Decided
from core.steps.step import step

PROMPTS: Mapping[Name, str] = {  # a calibration holds for the prompt it was made with
    "evidence": EVIDENCE.name,
    "passage relevance": RELEVANT.name,
    "claim support": CLAIM.name,
    "look up": LOOK_UP.name,
    "closed-book answer": CLOSED_ANSWER.name,
}
CHECKED = "check the calibration"  # the step's name
State = Literal["calibrated", "no signal", "not calibrated"]


@dataclass(frozen=True, slots=True)
class DecisionWorth(Decided):
    """The reliability of a decision with the current model, and its threshold: the one given, else the
    calibrated one, else the fallback.
    """

    decision: State
    why: str
    about: Name  # the decision
    model: str
    auc: float | None  # area under the ROC curve in the calibration; None without one
    cut: float  # the threshold to apply


class Calibrated(StepBase):
    """Thresholds that were measured."""

    @step("CHAIN", CHECKED, returns=DecisionWorth)
    def calibrated(self, about: Name, given: float, fallback: float) -> DecisionWorth:
        """Return the threshold of the decision `about`. If `given` is 0, the threshold calibrated for the
        current model applies; without a calibration, `fallback` does.
        """
        model = subject(self.context.llm)
        found = self.context.calibration(about)
        state, why = worth(about, model, found)
        known = found if state != "not calibrated" else None
        cut = given or (known.threshold if known is not None else fallback)
        return DecisionWorth(state, why, about, model, None if known is None else known.auc, cut)


def worth(about: Name, model: str, found: DecisionCalibration | None) -> tuple[State, str]:
    """Return whether the decision `about` is calibrated for `model`, and a sentence that explains it."""
    if found is None:
        why = f"“{about}” was not calibrated for {model}: its threshold is a default"
        return "not calibrated", f"{why}; run {COMMAND} calibrate"
    if found.prompt != PROMPTS[about]:
        why = f"“{about}” was calibrated for prompt {found.prompt}, not {PROMPTS[about]}"
        return "not calibrated", why
    if not found.signal:
        why = f"“{about}” carries no signal: {found.in_words()} is below {SIGNAL:g}; expect no gain from it"
        return "no signal", why
    return "calibrated", f"“{about}”: {found.in_words()}"
