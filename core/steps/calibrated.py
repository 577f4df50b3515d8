"""The step that tells, before anything is spent, what a decision is worth with the model in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from core.backends.calibrations import SIGNAL, Calibration, subject
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
class Worth(Decided):
    """What a decision is worth with the model in use, and the threshold to decide by: the one given, else the
    calibrated one, else `fallback`.
    """

    decision: State
    why: str
    about: Name
    model: str
    auc: float | None
    cut: float


class Calibrated(StepBase):
    """Thresholds that were measured."""

    @step("CHAIN", CHECKED)
    def calibrated(self, about: Name, given: float, fallback: float) -> Worth:
        """The threshold of the decision `about`: `given`, or for 0 the one calibrated for the model in use,
        or for a model that was not calibrated `fallback`.
        """
        model = subject(self.context.llm)
        found = self.context.calibration(about)
        state, why = worth(about, model, found)
        known = found if state != "not calibrated" else None
        cut = given or (known.threshold if known is not None else fallback)
        return Worth(state, why, about, model, None if known is None else known.auc, cut)


def worth(about: Name, model: str, found: Calibration | None) -> tuple[State, str]:
    """What the decision `about` is worth with `model`, by its calibration, and the sentence that says so."""
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
