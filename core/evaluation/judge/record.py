"""The measured agreement of a judge with people, when it is valid, and both in sentences.
`HOME/judges/SET.MODEL.json`: the newest measurement of a set with a model.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from core.backends.calibrations import file_name
from core.backends.prompting.prompts import JUDGE
from core.domain.errors import Unavailable
from core.domain.program import COMMAND
from core.evaluation.judge.source import Of
from core.evaluation.labels.final import landis_koch
from core.evaluation.statistics import Kappa
from core.evaluation.stored import checked, whole_lines
from core.evaluation.templating import say, sentences

FOLDER = "judges"  # in the home
# Where "moderate" begins in the bands of Landis and Koch (1977). The lower end of the interval must be above
# it, not the estimate, so that few labels never suffice by luck.
ENOUGH = 0.4
Table = tuple[tuple[int, ...], ...]
Bounds = tuple[float | None, ...]  # from which score the grade is 1, 2, ...; None: the judge never gives it
# Where the passages that are not relevant are from: people graded them so, or their question is one that the
# documents do not answer. A passage that nobody judged is neither.
Negatives = Literal["graded", "unanswerable questions"]


@dataclass(frozen=True, slots=True)
class Part:
    """One half of the labelled pairs: `relevant` of its `pairs` are, to people; ids of its `questions`."""

    pairs: int
    relevant: int
    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgeRecord:
    """A judge on the labels `of` that `name`: `model` with `prompt` and the guidelines `policy`.

    `bounds` were chosen on `chosen`; everything after `held_out` is of those pairs alone. `binary` is Cohen's
    kappa of relevant or not, `quadratic` that over the grades; `confusion[i][j]` counts passages that people
    graded i and the judge j. `auc` is of the judge's score. `unscored` pairs got no score from the model and
    count nowhere. `made` is ISO 8601, UTC.
    """

    of: Of
    name: str
    model: str
    prompt: str
    policy: str
    relevant_from: int
    seed: int
    negatives: Negatives
    bounds: Bounds
    chosen: Part
    held_out: Part
    binary: Kappa
    quadratic: Kappa
    confusion: Table
    auc: float | None
    unscored: int
    made: str

    @property
    def policy_hash(self) -> str:
        """Return the SHA-256 of the guidelines."""
        return policy_hash(self.policy)

    @property
    def two_by_two(self) -> Table:
        """Return `confusion` reduced to not relevant and relevant."""
        at = self.relevant_from

        low, high = (
            (sum(sum(row[:at]) for row in rows), sum(sum(row[at:]) for row in rows))
            for rows in (self.confusion[:at], self.confusion[at:])
        )
        return low, high

    @property
    def shown(self) -> bool:
        """Return whether the measured agreement is high enough to fill in unjudged passages."""
        return self.negatives == "graded" and self.binary.ci95 is not None and self.binary.ci95[0] > ENOUGH

    def document(self) -> dict[str, object]:
        """Return the record as stored, as JSON values."""
        return {**asdict(self), "policy_hash": self.policy_hash, "shown": self.shown}


def policy_hash(policy: str) -> str:
    """Return the SHA-256 of guidelines as annotators see them."""
    return hashlib.sha256(policy.encode()).hexdigest()


def path(home: Path, of: Of, name: str, model: str) -> Path:
    """Return the path of a set's record with a model. As set names are free text, a hash distinguishes
    them.
    """
    mark = hashlib.sha256(json.dumps([of, name, model]).encode()).hexdigest()[:8]
    return home / FOLDER / file_name(name, f"{model}.{mark}")


def read(home: Path, of: Of, name: str, model: str) -> JudgeRecord | None:
    """Return the newest record of a set with a model, or None if it does not exist. Raises Unavailable for a
    damaged file.
    """
    from pydantic import TypeAdapter

    file = path(home, of, name, model)
    try:
        document = json.loads(file.read_bytes())
        known = {key: value for key, value in document.items() if key not in ("policy_hash", "shown")}
        return checked(TypeAdapter(JudgeRecord), known)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"the judge's record {file.name} cannot be read: {error.strerror}") from None
    except (ValueError, AttributeError) as error:
        raise Unavailable(f"the judge's record {file.name} is damaged ({error}); measure it again") from None


def write(record: JudgeRecord, home: Path) -> Path:
    """Store it, whole or not at all, over an earlier one of the same set and model."""
    file = path(home, record.of, record.name, record.model)
    file.parent.mkdir(parents=True, exist_ok=True)
    whole_lines(file, [json.dumps(record.document(), indent=1) + "\n"])
    return file


def agreement(record: JudgeRecord) -> str:
    """Return kappa with its interval, and the number of passages."""
    return say("judge.agreement", record, landis_koch)


def leaves_open(record: JudgeRecord) -> str:
    """Return sentences on how often the judge is wrong either way, and whether chance is ruled out."""
    return " ".join(sentences("judge.leaves_open", record))


def use(record: JudgeRecord) -> str:
    """Describe the allowed use of the judge."""
    if not record.shown:
        return f"It may not grade unjudged passages: {refusal(record)}."
    return f"It may grade unjudged passages (eval --judge): the interval lies above {ENOUGH:g}."


def refusal(record: JudgeRecord) -> str:
    """Return why agreement is not shown."""
    return say("judge.refusal", record, ENOUGH)


def out_of_date(record: JudgeRecord, model: str, policy: str) -> str | None:
    """Return why a record does not apply to this model with these guidelines, or None if it does."""
    if record.model != model:
        return f"it was measured with the model {record.model}, not {model}"
    if record.prompt != JUDGE.name:
        return f"it was measured with the prompt {record.prompt}, not {JUDGE.name}"
    if record.policy_hash != policy_hash(policy):
        return "the guidelines have changed since it was measured"
    return None


def not_calibrated(record: JudgeRecord | None, model: str, policy: str, name: str) -> str | None:
    """Return why this judge has no valid record, with the command that measures it, or None if it has one."""
    never = "its agreement with people was never measured"
    why = out_of_date(record, model, policy) if record is not None else never
    return why and (
        f"the judge {model} is not calibrated for these guidelines: {why}; "
        f"run: {COMMAND} labels judge '{name}'"
    )
