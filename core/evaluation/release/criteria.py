"""The criteria that a route must meet to ship, and their form on a command line and in Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, field, fields
from math import isfinite
from typing import Any

from core.domain.errors import BadInput
from core.evaluation.finding import MARGIN

OPTION = "option"  # the key of a field's CriterionOption


@dataclass(frozen=True, slots=True)
class CriterionOption:
    """The option of `gate` for one criterion; "--on/--off" for a switch that is on by default."""

    flags: str
    help: str
    metavar: str | None = None
    # the values allowed; None for no limit
    least: float | None = 0
    most: float | None = None

    def argument(self, value: Any) -> list[str]:
        """Return the words of a command line that give `value`; [] for the default of a switch."""
        if not isinstance(value, bool):
            return [self.flags, value if isinstance(value, str) else f"{value:.10g}"]
        on, _, off = self.flags.partition("/")
        return ([off] if not value else []) if off else [on] * value


def _criterion(default: Any, *option: Any, **limits: Any) -> Any:
    return field(default=default, metadata={OPTION: CriterionOption(*option, **limits)})


@dataclass(frozen=True, slots=True)
class Criteria:
    """Limits that a route must meet (None: no such limit), and how sure the choice must be."""

    metric: str = _criterion("ndcg@10", "--metric", "Metric of quality.")
    # least mean of the metric
    minimum: float | None = _criterion(None, "--min-quality", "Minimum mean of the metric.", "X", least=None)
    max_p95_ms: float | None = _criterion(None, "--max-p95-ms", "Maximum p95 latency.", "MS")
    max_cost: float | None = _criterion(
        None,
        "--max-cost",
        "Maximum price of 1,000 questions, at the prices stored with the evaluation.",
        "X",
    )
    max_tokens: float | None = _criterion(None, "--max-tokens", "Maximum model tokens per question.", "N")
    max_calls: float | None = _criterion(None, "--max-calls", "Maximum model calls per question.", "N")
    max_failed: float | None = _criterion(
        0.0, "--max-failed", "Maximum share of questions that the route fails on.", "SHARE", most=1
    )
    max_unjudged: float | None = _criterion(
        None,
        "--max-unjudged",
        "Maximum share of unjudged passages in the top 10; undecided above it.",
        "SHARE",
        most=1,
    )
    no_loss: bool = _criterion(
        True,
        "--no-loss/--allow-loss",
        "Reject or allow routes shown worse than the baseline on a kind of question.",
    )
    cheaper: bool = _criterion(
        True,
        "--cheapest/--best",
        "Ship the cheapest route that is good enough, or only the best one.",
    )
    margin: float = _criterion(
        MARGIN,
        "--margin",
        "Loss of the metric accepted for a cheaper route. A route ships if it is shown to be at most this "
        "much worse than every other.",
        "X",
        most=1,
    )
    min_questions: int | None = _criterion(
        None,
        "--min-questions",
        "Scored questions needed to ship a route and to call routes equivalent. Default: 25 and 3 / margin "
        "(60 at 0.05, 150 at 0.02).",
        "N",
        least=1,
    )
    unlike_machines: bool = _criterion(
        False,
        "--allow-unlike-machines",
        "Use times although they were measured on machines of different kinds.",
    )
    min_effect: float | None = _criterion(
        None,
        "--min-effect",
        "Smallest drop since --against that fails. Default: the margin.",
        "X",
        most=1,
    )

    @property
    def least_drop(self) -> float:
        """Return the smallest drop since an earlier release that fails a build."""
        return self.margin if self.min_effect is None else self.min_effect

    def __post_init__(self) -> None:
        for one in fields(self):
            _check(one, getattr(self, one.name))

    def document(self) -> dict[str, Any]:
        """Return the criteria as JSON values."""
        return asdict(self)

    @classmethod
    def of_keywords(cls, given: Mapping[str, Any]) -> Criteria:
        """Read the criteria from the keywords of core.api.gate. Raises TypeError for an unknown keyword."""
        names = keywords()
        if unknown := [name for name in given if name not in names]:
            raise TypeError(f"gate() got an unexpected keyword argument {unknown[0]!r}")
        found = {names[name].name: value for name, value in given.items()}
        if "allow_loss" in given:
            _check(names["allow_loss"], given["allow_loss"], "allow_loss")
            found["no_loss"] = not given["allow_loss"]
        return cls(**found)


def option_of(one: Field[Any]) -> CriterionOption:
    """Return the option of a field of Criteria."""
    found: CriterionOption = one.metadata[OPTION]
    return found


def keywords() -> dict[str, Field[Any]]:
    """Return the fields of Criteria by keyword: the option's name; of --no-loss/--allow-loss the latter."""
    found = {}
    for one in fields(Criteria):
        flags = option_of(one).flags.split("/")
        found[flags[-1 if one.name == "no_loss" else 0].strip("-").replace("-", "_")] = one
    return found


def _check(one: Field[Any], value: Any, name: str = "") -> None:
    """Check a value by the type and the limits of its field. Raises BadInput."""
    option, kind = option_of(one), str(one.type)
    least, most = option.least, option.most
    to = "" if least is None else f" {least} or more" if most is None else f" {least} to {most}"
    if value is None and "None" in kind:
        return
    if kind == "str":
        good, wanted = isinstance(value, str) and bool(value), " the name of a measure, such as ndcg@10"
    elif kind == "bool":
        good, wanted = isinstance(value, bool), " true or false"
    else:
        whole = kind.startswith("int")
        good = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        good = (
            good and isfinite(value) and (least is None or value >= least) and (most is None or value <= most)
        )
        wanted = f" a whole number from {least}" if whole else to or " a number"
    if not good:
        raise BadInput(f"{name or one.name}={value!r}; give{wanted}")
