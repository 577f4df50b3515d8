"""The criteria that a route must meet to ship, and their form on a command line and in Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, replace
from shlex import join
from typing import Any

from core.domain.errors import BadInput
from core.evaluation.finding import MARGIN
from core.evaluation.spec import check, option, options

DERIVABLE = ("minimum", "max_p95_ms", "max_unjudged")  # limits taken from the baseline unless given


@dataclass(frozen=True, slots=True)
class Criteria:
    """Limits that a route must meet (None: no such limit), and how sure the choice must be."""

    metric: str = option("ndcg@10", "Metric of quality.")
    # least mean of the metric
    minimum: float | None = option(
        None, "Minimum mean of the metric.", "X", flags="--min-quality", least=None
    )
    max_p95_ms: float | None = option(None, "Maximum p95 latency.", "MS")
    max_cost: float | None = option(
        None, "Maximum price of 1,000 questions, at the prices stored with the evaluation.", "X"
    )
    max_tokens: float | None = option(None, "Maximum model tokens per question.", "N")
    max_calls: float | None = option(None, "Maximum model calls per question.", "N")
    max_failed: float | None = option(
        0.0, "Maximum share of questions that the route fails on.", "SHARE", most=1
    )
    max_unjudged: float | None = option(
        None, "Maximum share of unjudged passages in the top 10; undecided above it.", "SHARE", most=1
    )
    no_loss: bool = option(
        True,
        "Reject or allow routes shown worse than the baseline on a kind of question.",
        flags="--no-loss/--allow-loss",
    )
    cheaper: bool = option(
        True, "Ship the cheapest route that is good enough, or only the best one.", flags="--cheapest/--best"
    )
    margin: float = option(
        MARGIN,
        "Loss of the metric accepted for a cheaper route. A route ships if it is shown to be at most this "
        "much worse than every other.",
        "X",
        most=1,
    )
    min_questions: int | None = option(
        None,
        "Scored questions needed to ship a route and to call routes equivalent. Default: 25 and 3 / margin "
        "(60 at 0.05, 150 at 0.02).",
        "N",
        least=1,
    )
    unlike_machines: bool = option(
        False,
        "Use times although they were measured on machines of different kinds.",
        flags="--allow-unlike-machines",
    )
    derive: bool = option(
        True,
        "Take limits on quality, p95 and unjudged passages that are not given from the baseline, or apply "
        "none.",
        flags="--derive/--no-derive",
    )
    min_effect: float | None = option(
        None, "Smallest drop since --against that fails. Default: the margin.", "X", most=1
    )
    # the limits that were taken from the baseline, see core.evaluation.release.measured.settled
    derived: tuple[str, ...] = ()

    @property
    def least_drop(self) -> float:
        """Return the smallest drop since an earlier release that fails a build."""
        return self.margin if self.min_effect is None else self.min_effect

    def __post_init__(self) -> None:
        if not isinstance(self.metric, str) or not self.metric:
            raise BadInput(f"metric={self.metric!r}; give the name of a measure, such as ndcg@10")
        for name, (one, _) in options(self).items():
            check(one, getattr(self, name))

    @classmethod
    def of_keywords(cls, given: Mapping[str, Any]) -> Criteria:
        """Read the criteria from the keywords of core.api.gate. Raises TypeError for an unknown keyword."""
        names = keywords()
        if unknown := [name for name in given if name not in names]:
            raise TypeError(f"gate() got an unexpected keyword argument {unknown[0]!r}")
        found = {names[name].name: value for name, value in given.items()}
        if "allow_loss" in given:
            check(names["allow_loss"], given["allow_loss"], "allow_loss")
            found["no_loss"] = not given["allow_loss"]
        return cls(**found)


def keywords() -> dict[str, Field[Any]]:
    """Return the fields of Criteria by keyword: the option's name; of --no-loss/--allow-loss the latter."""
    found = {}
    for one, own in options(Criteria).values():
        flags = own.flags.split("/")
        found[flags[-1 if one.name == "no_loss" else 0].strip("-").replace("-", "_")] = one
    return found


def command(name: str, criteria: Criteria, *, against: str | None = None, report: str | None = None) -> str:
    """Return one line for a shell: the `gate` command that applies these limits and no others. The share that
    may fail is 1 if they have no such limit.
    """
    words = ["python", "-m", "core", "gate", name]
    criteria = replace(criteria, derive=all(getattr(criteria, one) is not None for one in DERIVABLE))
    # numbers first, the margin last of them
    for one, own in sorted(
        options(criteria).values(), key=lambda pair: (pair[0].type == "bool", pair[0].name == "margin")
    ):
        value = getattr(criteria, one.name)
        value = 1 if value is None and one.name == "max_failed" else value
        if value is not None and (one.name, value) != ("margin", MARGIN):
            words += own.argument(value)
    words += ["--against", against] if against else []
    words += ["--report", report] if report else []
    return join(words)
