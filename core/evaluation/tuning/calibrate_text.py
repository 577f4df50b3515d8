"""A calibration in words."""

from __future__ import annotations

from core.domain.format import number
from core.evaluation.calibration import Objective
from core.evaluation.finding import NONE, SAME, Finding, count, ends, sentence
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
    "f1": "F1",
    "balanced accuracy": "balanced accuracy",
    "precision": "precision",
    "recall": "recall",
}


def about(target: Target) -> str:
    """Describe the calibrated threshold."""
    where = "From this threshold on," if target.acts == "from" else "Below this threshold,"
    condition = "if" if target.acts == "from" else "unless"
    return (
        f"{where} {target.act}. That is correct {condition} {target.positive}."
        f" Each case is one {_unit(target)}."
    )


def in_words(found: Calibration) -> str:
    """Return the finding in a few sentences: the threshold and its figures on held-out questions, next to
    those of the one in use.
    """
    rule = RULES[found.objective].format(found.wanted or 0)
    on = "questions of one half" if found.made else "dev questions"
    return " ".join(
        [
            f"{found.threshold:.3g} has {rule} on {found.dev} {on}.",
            f"On {count(found.held_out, 'held-out questions')}: {_worth(found.chosen)}.",
            f"The threshold in use, {found.shipped.threshold:.3g}, gives {_worth(found.shipped)}.",
            difference(found),
        ]
    )


def difference(found: Calibration) -> str:
    """Return the chosen threshold against the one in use, in the objective."""
    by, same = found.difference, found.threshold == found.shipped.threshold
    if by.value is None:
        return f"They cannot be compared: the {NAMES[found.objective]} of one of them is undefined."
    verdict = SAME if same else NONE if not found.shown else "better" if by.value > 0 else "worse"
    return sentence(
        Finding(
            "the chosen threshold",
            NAMES[found.objective],
            by.value,
            by.interval,
            found.p,
            found.held_out,
            baseline="the one in use",
            verdict=verdict,
            unit="held-out questions",
        )
    )


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
    met = sum(target.stored.values())
    gone = [f"{count(total - met)}: the route failed or did not take this step"] if met < total else []
    gone += [f"{n:,} {_unit(target, n)}: {why}" for why, n in target.left_out.items()]
    text = f"Excluded: {'; '.join(gone)}." if gone else ""
    if len(target.stored) > 1:
        values = ", ".join(f"{one:.3g} ({n})" for one, n in sorted(target.stored.items())[:5])
        text += f" The stored results used several thresholds: {values}."
    return text.strip()


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


def _worth(one: Worth) -> str:
    shares = (("precision", one.precision), ("recall", one.recall), ("balanced accuracy", one.balanced))
    figures = ", ".join(f"{name} {_measured(value)}" for name, value in shares)
    return f"{figures}; {one.acted:,} of {one.n:,} acted on, {one.right:,} correctly"


def _measured(one: Measured) -> str:
    if one.value is None:
        return "not defined"
    return number(one.value) + (f" ({ends(one.interval)})" if one.interval else "")


def _unit(target: Target, n: int = 1) -> str:
    name = {"question": "question", "passage": "passage", "strip": "piece of a passage"}[target.unit]
    return name if n == 1 else name.replace("piece", "pieces") if "piece" in name else f"{name}s"
