"""Calibrations: a model's answers to one closed question compared with labelled questions.

`data/calibrations/DECISION.MODEL.json` come with the program; those in `HOME/calibrations` were measured here
and take precedence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from core.backends.base import LLM
from core.backends.trained_files import parse_trained, write_trained
from core.domain.errors import Unavailable
from core.domain.settings import PROJECT

Decision = Literal["evidence", "passage relevance", "claim support", "look up", "closed-book answer"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)
SHIPPED = PROJECT / "data" / "calibrations"
SIGNAL = 0.65  # the AUC below which a decision says nothing that a route could go by


@dataclass(frozen=True, slots=True)
class HeldOut:
    """One set judged by the threshold chosen on the other sets."""

    name: str
    n: int
    positive: int
    auc: float | None  # None if all cases are of one kind
    threshold: float | None
    balanced_accuracy: float | None


@dataclass(frozen=True, slots=True)
class DecisionCalibration:
    """The measured reliability of one decision of one model."""

    decision: Decision
    model: str
    prompt: str
    threshold: float  # the one of highest balanced accuracy over all sets
    auc: float  # over all cases; 0.5 is chance
    interval: tuple[float, float]  # 95% bootstrap interval of `auc`
    n: int
    positive: int  # number of the `n` cases that are true
    held_out: tuple[HeldOut, ...]
    questions: Mapping[str, tuple[str, ...]]  # those asked, by set, which no evaluation may report afterwards
    # a `core.evaluation.calibration.Reliability` of the scores scaled to 0 to 1
    reliability: Mapping[str, Any]
    made: str

    @property
    def signal(self) -> bool:
        """Return True if the decision separates true cases from others well enough to use."""
        return self.auc >= SIGNAL

    def in_words(self) -> str:
        """Describe the AUC and its data."""
        low, high = self.interval
        sets = ", ".join(one.name for one in self.held_out)
        return f"AUC {self.auc:.2f} [{low:.2f}, {high:.2f}] on {self.n} cases of {sets} with {self.model}"


def read(decision: Decision, model: str, home: Path | None = None) -> DecisionCalibration | None:
    """Return the calibration of `decision` for `model`, or None. Raises Unavailable if the file is
    damaged.
    """
    folders = (SHIPPED,) if home is None else (home / "calibrations", SHIPPED)
    for path in (folder / file_name(decision, model) for folder in folders):
        try:
            found = parse_trained(DecisionCalibration, path.read_bytes())
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise Unavailable(f"the calibration {path.name} cannot be used ({str(error)[:200]})") from None
        return found if found.model == model else None  # two names may be cut to one file's
    return None


def subject(llm: LLM) -> str:
    """Return the model that a calibration describes: an embedded model's name, else the model named in a
    service's replies, with its endpoint, as a service may ignore the requested name.
    """
    return getattr(llm, "reported", llm.model)


def write(calibration: DecisionCalibration, folder: Path) -> Path:
    """Store it as JSON in `folder`; `read` gives the same back."""
    path = folder / file_name(calibration.decision, calibration.model)
    write_trained(calibration, path)
    return path


def file_name(decision: str, model: str) -> str:
    """Return the name of a calibration's file, without characters that file names cannot contain."""
    return f"{_slug(decision)}.{_slug(model)}.json"


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", text).strip("-.")[:80] or "unnamed"
