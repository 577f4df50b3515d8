"""The two routes that a decision hinges on, and how many more labels would settle it between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.evaluation.more_labels import MoreLabels, between
from core.evaluation.release.call import Call
from core.evaluation.release.rule import Choice, Row

Values = Mapping[str, Mapping[str, float]]  # route -> question -> value


def labels(
    values: Values | None, rows: Sequence[Row], choice: Choice[Row], called: Call | None
) -> MoreLabels | None:
    """How many more labels would settle the decision; None where the values of the questions are not known or
    there are not two routes that share two questions. The correction is the one of the decision's own family.
    """
    pair = hinge(rows, choice, called)
    if values is None or pair is None:
        return None
    one, other = pair
    return between(values[one], values[other], one, other, comparisons=max(1, len(choice.rivals)))


def hinge(rows: Sequence[Row], choice: Choice[Row], called: Call | None) -> tuple[str, str] | None:
    """The best route and the cheaper one that is shipped for it; else the one shipped and what the gate would
    choose next (see core.evaluation.release.call); else the two with the highest means, of those that pass
    where some do. None with fewer than two: the decision hinges on a criterion.
    """
    if choice.best and choice.chosen and choice.best.route != choice.chosen.route:
        return choice.best.route, choice.chosen.route
    if choice.chosen and called and called.rival and called.rival_share > 0:
        return choice.chosen.route, called.rival
    among = [one for one in (choice.passing or rows) if one.mean is not None]
    ranked = sorted(among, key=lambda one: (-(one.mean or 0.0), one.expense))
    return (ranked[0].route, ranked[1].route) if len(ranked) > 1 else None
