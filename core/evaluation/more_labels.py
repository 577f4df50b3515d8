"""How many more labelled questions would settle a comparison of two routes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from core.evaluation.effects import LEAST_DIFFERING, effect
from core.evaluation.finding import count, ends, number
from core.evaluation.power import FEASIBLE, POWER, needed, rounded, upper_sd
from core.evaluation.statistics import (
    ALPHA,
    difference_interval,
    excluded,
    least_for_equivalence,
    least_to_show,
    sign_flip_p,
)

MARGIN = 0.05  # of a metric between 0 and 1: a difference below it is of no account
State = Literal["settled", "practically equal", "more", "no number", "unknown"]


@dataclass(frozen=True, slots=True)
class MoreLabels:
    """The comparison of `route` with `other` over the questions both have, and what would settle it.

    "settled": the difference is shown already. "practically equal": it is shown to be below `margin`, so the
    cheaper one can be taken. "more": `more` questions settle it in one of these two ways. "no number": more
    than FEASIBLE do. "unknown": the questions at hand do not tell.
    """

    route: str
    other: str
    state: State
    # Questions both routes have, and how many of them differ.
    n: int
    differing: int
    # Mean difference, the interval that the state rests on, and the standard deviation of the differences.
    delta: float
    ci95: tuple[float, float] | None
    sd: float
    margin: float
    # After correction for so many comparisons.
    alpha: float
    comparisons: int
    # Questions beyond `n` that settle it with the power POWER if the measured difference and spread are true;
    # `high` if the true spread is at its upper 80% limit, None beyond FEASIBLE. If the state is "unknown" the
    # least number that can settle anything.
    more: int | None = None
    high: int | None = None

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "ci95": list(self.ci95) if self.ci95 else None}


def between(
    mine: Mapping[str, float],
    theirs: Mapping[str, float],
    route: str,
    other: str,
    *,
    comparisons: int = 1,
    margin: float = MARGIN,
) -> MoreLabels | None:
    """Compare `route` with `other`, whose values between 0 and 1 are given by question, as one of so many
    `comparisons`; None below two questions in common.

    A route is practically equal if the 95% interval of the difference is within `margin` on both sides (two
    one-sided tests: Schuirmann 1987) and there are enough questions to exclude such a loss.
    """
    apart = [mine[question] - theirs[question] for question in mine if question in theirs]
    if len(apart) < 2:
        return None
    one, alpha = effect(apart), ALPHA / comparisons
    n, delta, sd, differing = one["n"], one["delta"], one["sd"], one["wins"] + one["losses"]
    adjusted, plain = difference_interval(apart, level=1 - alpha), difference_interval(apart)

    def found(state: State, ends: tuple[float, float] | None, *more: int | None) -> MoreLabels:
        return MoreLabels(
            route, other, state, n, differing, delta, ends, sd, margin, alpha, comparisons, *more
        )

    if excluded(adjusted) != "no difference shown" and sign_flip_p(apart) < alpha:
        return found("settled", adjusted)
    least = least_for_equivalence(margin)
    if plain is not None and -margin < plain[0] and plain[1] < margin and n >= least:
        return found("practically equal", plain)
    if differing < LEAST_DIFFERING or n < least_to_show(comparisons):
        return found("unknown", plain, max(1, max(least, least_to_show(comparisons)) - n))
    total, high = (_total(delta, spread, alpha, margin) for spread in (sd, upper_sd(sd, n)))
    if total is None or total - n > FEASIBLE:
        return found("no number", plain)
    return found("more", plain, max(1, total - n), None if high is None else max(1, high - n))


def sentence(found: MoreLabels, named: Callable[[str], str] = str) -> str:
    """Return the result in one or two sentences."""
    one, other = named(found.route), named(found.other)
    apart = f"{number(found.delta, signed=True)}, {ends(found.ci95, signed=True)}, {count(found.n)}"
    margin = number(found.margin)
    if found.state == "settled":
        return f"No more labels are needed between {one} and {other}: the difference is shown ({apart})."
    if found.state == "practically equal":
        return (
            f"No more labels are needed: {one} and {other} are equivalent within {margin} ({apart}), so the "
            "cheaper one can be taken."
        )
    if found.state == "unknown":
        return (
            f"How many more labels would settle {one} against {other} cannot be determined: they differ on "
            f"{found.differing} of {count(found.n)}. At least {_told(found.more)} more are needed."
        )
    if found.more is None:
        return (
            f"No feasible number of labels (up to {FEASIBLE:,} more questions) would settle {one} against "
            f"{other} ({apart})."
        )
    corrected = f", corrected for {found.comparisons} comparisons" if found.comparisons > 1 else ""
    questions = "question" if found.more == 1 else "questions"
    high = f"over {FEASIBLE:,}" if found.high is None else _told(found.high)
    return (
        f"About {_told(found.more)} more labelled {questions} would settle {one} against {other} ({apart}): "
        f"they would show the difference, or that it is below {margin}, with power {POWER:.0%} if it is as "
        f"measured{corrected}; up to {high} if the spread is at its upper 80% limit."
    )


def _total(delta: float, sd: float, alpha: float, margin: float) -> int | None:
    """Return the questions that show a difference, or that it is within the margin, whichever are fewer."""
    shown = needed(abs(delta), sd, alpha=alpha)
    equal = needed(-abs(delta), sd, above=-margin)
    known = [shown, None if equal is None else max(equal, least_for_equivalence(margin))]
    return min((one for one in known if one is not None), default=None)


def _told(value: int | None) -> str:
    return f"{rounded(value or 0):,}"
