"""How far a model's answers to one closed question can be trusted, as measured on labelled questions.

`data/calibrations/DECISION.MODEL.json` are those that come with the program; `HOME/calibrations` holds those
made here, which go first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import TypeAdapter, ValidationError

from core.backends.base import LLM
from core.domain.errors import Unavailable
from core.domain.settings import PROJECT

Decision = Literal["evidence", "passage relevance", "claim support", "look up", "closed-book answer"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)
SHIPPED = PROJECT / "data" / "calibrations"
SIGNAL = 0.65  # the AUC below which a decision says nothing that a route could go by


@dataclass(frozen=True, slots=True)
class HeldOut:
    """One set judged by the threshold chosen on the other sets; None where it has cases of one kind alone."""

    name: str
    n: int
    positive: int
    auc: float | None
    threshold: float | None
    balanced_accuracy: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """What one decision of one model is worth.

    `threshold` is that of the highest balanced accuracy over all sets. `auc` with its 95 % bootstrap interval
    is over all cases: 0.5 is chance. `positive` of `n` cases are true. `questions` names those asked, by set,
    which nobody may report on afterwards. `reliability` is a `core.evaluation.reliability.Reliability` of the
    scores put on 0 to 1.
    """

    decision: Decision
    model: str
    prompt: str
    threshold: float
    auc: float
    interval: tuple[float, float]
    n: int
    positive: int
    held_out: tuple[HeldOut, ...]
    questions: Mapping[str, tuple[str, ...]]
    reliability: Mapping[str, Any]
    made: str

    @property
    def signal(self) -> bool:
        """Whether the decision tells true cases from others well enough to go by."""
        return self.auc >= SIGNAL

    def in_words(self) -> str:
        """The AUC and where it comes from."""
        low, high = self.interval
        sets = ", ".join(one.name for one in self.held_out)
        return f"AUC {self.auc:.2f} [{low:.2f}, {high:.2f}] on {self.n} cases of {sets} with {self.model}"


_READER = TypeAdapter(Calibration)


def read(decision: Decision, model: str, home: Path | None = None) -> Calibration | None:
    """The calibration of `decision` for `model`, or None where there is none. Raises Unavailable for a file
    that is damaged: a threshold of other numbers than one thinks is worse than none.
    """
    folders = (SHIPPED,) if home is None else (home / "calibrations", SHIPPED)
    for path in (folder / file_name(decision, model) for folder in folders):
        try:
            stored = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise Unavailable(f"the calibration {path.name} cannot be read: {error.strerror}") from None
        try:
            found = _READER.validate_json(stored)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the file"
            raise Unavailable(
                f"the calibration {path.name} cannot be used ({where}: {first['msg']})"
            ) from None
        return found if found.model == model else None  # two names may be cut to one file's
    return None


def subject(llm: LLM) -> str:
    """Whose judgements a calibration is of: an embedded model's name, else the model that the
    replies of a service name, with its endpoint: it may ignore the name that it is asked for.
    """
    return getattr(llm, "reported", llm.model)


def write(calibration: Calibration, folder: Path) -> Path:
    """Store it as JSON in `folder`; `read` gives the same back."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name(calibration.decision, calibration.model)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(asdict(calibration), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)
    return path


def file_name(decision: str, model: str) -> str:
    """The name of a calibration's file; a model's name may hold what a file's may not."""
    return f"{_slug(decision)}.{_slug(model)}.json"


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", text).strip("-.")[:80] or "unnamed"
