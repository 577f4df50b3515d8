"""Evaluations to compare, by their names or folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.domain.errors import BadInput
from core.evaluation.release.measured import find

if TYPE_CHECKING:
    from core.domain.settings import Settings
    from core.evaluation.experiment_store import Evaluation


def opened(settings: Settings, given: str) -> Evaluation:
    """A saved evaluation by its name or folder; BadInput with what there is, and for a metrics.json alone."""
    evaluation = find(settings, given).evaluation
    if evaluation is None:
        raise BadInput(
            f"{given} is a metrics.json alone, which lacks the questions; give the folder of `eval --out`, "
            "or the name of a saved evaluation"
        )
    return evaluation
