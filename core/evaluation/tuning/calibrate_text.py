"""A calibration in words."""

from __future__ import annotations

from core.evaluation.calibration import Objective
from core.evaluation.finding import NONE, SAME, Finding, count, ends, number, sentence
from core.evaluation.tuning.calibrate import Calibration, Measured, Worth
from core.evaluation.tuning.curves import reliable
from core.evaluation.tuning.targets import Target

RULES: dict[Objective, str] = {
    "f1": "the highest F1",
    "balanced accuracy": "the highest balanced accuracy",
    "precision": "the highest recall with precision of at least {:g}",
    "recall": "the highest precision with recall of at least {:g}",
}
NAMES: dict[Objective, str] = {
    "f1": "F1", "balanced accuracy": "balanced accuracy", "precision": "precision", "recall": "recall",
}  # fmt: skip


def about(target: Target) -> str:
    """What is calibrated."""
    right = "" if target.acts == "from" else "not "
    where = "From this threshold on" if target.acts == "from" else "Below this threshold"
    return (
        f"{where} {target.act}. That is right {'where' if not right else 'unless'} {target.positive}."
        f" A case is one {_unit(target)}."
    )


def in_words(found: Calibration) -> str:
    """The finding in a few sentences: the threshold, what it is worth on held-out questions, and what the
    shipped one is.
    """
    rule = RULES[found.objective].format(found.wanted or 0)
    on = "questions of one half" if found.made else "dev questions"
    return " ".join(
        [
            f"{found.threshold:.3g} chosen on {found.dev} {on} by {rule}.",
            f"On {count(found.held_out)} held out: {_worth(found.chosen)}.",
            f"The shipped {found.shipped.threshold:.3g} gives {_worth(found.shipped)}.",
            difference(found),
        ]
    )


def difference(found: Calibration) -> str:
    """Chosen against shipped, in the objective."""
    by, same = found.difference, found.threshold == found.shipped.threshold
    if by.value is None:
        return f"The {NAMES[found.objective]} of one of them is not defined, so they cannot be compared."
    verdict = SAME if same else NONE if not found.shown else "better" if by.value > 0 else "worse"
    return sentence(Finding(
        "the chosen threshold", NAMES[found.objective], by.value, by.interval, found.p, found.held_out,
        baseline="the shipped one", verdict=verdict, unit="held-out questions",
    ))  # fmt: skip


def halves(found: Calibration) -> str:
    """How the questions were divided, where they have no splits; "" where they have."""
    if not found.made:
        return ""
    return (
        "The evaluation has not both dev and test questions, so they were cut into two halves with a fixed "
        "seed. If these are test questions, what is chosen here must not be reported on them."
    )


def left_out(target: Target, total: int) -> str:
    """What of `total` questions is not counted, and why; "" where all is."""
    met = sum(target.stored.values())
    gone = [f"{count(total - met)}: the route failed or did not take this step"] if met < total else []
    gone += [f"{n:,} {_unit(target, n)}: {why}" for why, n in target.left_out.items()]
    said = f"Not counted: {'; '.join(gone)}." if gone else ""
    if len(target.stored) > 1:
        values = ", ".join(f"{one:.3g} ({n})" for one, n in sorted(target.stored.items())[:5])
        said += f" The results were made with several thresholds: {values}."
    return said.strip()


def reliability_in_words(target: Target) -> str:
    """Whether the scores can be read as probabilities, over all cases."""
    found = reliable(target, target.cases)
    if found is None:
        return (
            "These scores do not claim to be probabilities, so they are held against no share that is right."
        )
    return (
        f"Over all {found.n:,} cases a score is off by {found.ece:.2f} on average from the share that is"
        f" right (expected calibration error); Brier score {found.brier:.3f}."
    )


def note(found: Calibration, evaluation: str) -> str:
    """Where a saved threshold comes from."""
    return f"{in_words(found)} Evaluation {evaluation}, route {found.target.route}, “{found.target.step}”."


def _worth(one: Worth) -> str:
    shares = (("precision", one.precision), ("recall", one.recall), ("balanced accuracy", one.balanced))
    said = ", ".join(f"{name} {_measured(value)}" for name, value in shares)
    return f"{said}; {one.acted:,} of {one.n:,} acted on, {one.right:,} rightly"


def _measured(one: Measured) -> str:
    if one.value is None:
        return "not defined"
    return number(one.value) + (f" ({ends(one.interval)})" if one.interval else "")


def _unit(target: Target, n: int = 1) -> str:
    name = {"question": "question", "passage": "passage", "strip": "piece of a passage"}[target.unit]
    return name if n == 1 else name.replace("piece", "pieces") if "piece" in name else f"{name}s"
