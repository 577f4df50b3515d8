"""The agreement of annotators beyond chance, and their disagreements. Models are compared with people
separately.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from core.evaluation.labels.desk import Desk
from core.evaluation.labels.final import final
from core.store.labels import GRADES, Judgement, Pair

LEVELS = tuple(sorted(GRADES))
BANDS = ((0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "substantial"))


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of two annotators on the `n` passages that both graded. `observed`: the share with the
    same grade. The kappas are None if they are undefined, and `why` has the reason; "linear" and "quadratic"
    weigh a difference of grades by its size and its square. `ci95` is the `interval` of the plain kappa.
    `confusion[i][j]`: passages that `first` graded i and `second` graded j.
    """

    first: str
    second: str
    n: int
    observed: float | None
    kappa: float | None
    linear: float | None
    quadratic: float | None
    confusion: tuple[tuple[int, ...], ...]
    why: str = ""
    ci95: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A passage with different grades: (annotator, grade) in the annotators' order; `distance` between the
    extremes. `adjudication` is the judgement that settles it, or None.
    """

    question: str
    passage: str
    grades: tuple[tuple[str, int], ...]
    distance: int
    adjudication: Judgement | None = None


def between(desk: Desk) -> tuple[Agreement, ...]:
    """Compare every pair of people and imports, in their order."""
    graded = {who: desk.grades(who) for who in desk.annotators()}
    return tuple(agree(a, graded[a], b, graded[b]) for a, b in combinations(graded, 2))


def suggestions(desk: Desk) -> tuple[Agreement, ...]:
    """Compare every model with the final grades ("final grade"), then with each annotator."""
    counted = {pair: one.grade for pair, one in final(desk).items() if one.grade is not None}
    people = {who: desk.grades(who) for who in desk.annotators()}
    against: dict[str, Mapping[Pair, int]] = {"final grade": counted, **people}
    return tuple(
        agree(model, desk.grades(model), name, grades)
        for model in desk.models()
        for name, grades in against.items()
    )


def agree(first: str, grades: Mapping[Pair, int], second: str, others: Mapping[Pair, int]) -> Agreement:
    """Two annotators' grades compared where both gave one.

    Cohen 1960, "A coefficient of agreement for nominal scales"; weighted: Cohen 1968, "Weighted kappa".
    """
    from sklearn.metrics import cohen_kappa_score, confusion_matrix

    both = [pair for pair in grades if pair in others]
    mine, theirs = [grades[pair] for pair in both], [others[pair] for pair in both]
    if not both:
        none = tuple((0,) * len(LEVELS) for _ in LEVELS)
        return Agreement(first, second, 0, None, None, None, None, none, "no passage was graded by both")
    counts = confusion_matrix(mine, theirs, labels=LEVELS)
    confusion = tuple(tuple(int(count) for count in row) for row in counts)
    observed = sum(a == b for a, b in zip(mine, theirs, strict=True)) / len(both)
    if len({*mine, *theirs}) == 1:
        why = f"both gave grade {mine[0]} alone, so that chance would agree as well"
        return Agreement(first, second, len(both), observed, None, None, None, confusion, why)
    plain, linear, quadratic = (
        float(cohen_kappa_score(mine, theirs, labels=LEVELS, weights=weights))
        for weights in (None, "linear", "quadratic")
    )
    told = interval(tuple((pair[0], grades[pair], others[pair]) for pair in both))
    return Agreement(first, second, len(both), observed, plain, linear, quadratic, confusion, ci95=told)


@lru_cache(maxsize=64)
def interval(both: tuple[tuple[str, int, int], ...]) -> tuple[float, float] | None:
    """95% bootstrap interval of Cohen's kappa over (question, grade, other grade), see `kappa`."""
    from core.evaluation.statistics import kappa

    return kappa(both, LEVELS).ci95


def disagreements(desk: Desk) -> tuple[Disagreement, ...]:
    """Return the passages that people or imports graded differently: furthest apart first, settled ones
    last.
    """
    settled, graded = desk.adjudicated(), {who: desk.grades(who) for who in desk.annotators()}
    found = []
    for pair in desk.pairs:
        grades = {who: by[pair] for who, by in graded.items() if pair in by}
        if apart := max(grades.values(), default=0) - min(grades.values(), default=0):
            found.append(Disagreement(*pair, tuple(grades.items()), apart, settled.get(pair)))
    return tuple(sorted(found, key=lambda one: (one.adjudication is not None, -one.distance)))


def landis_koch(kappa: float) -> str:
    """Return the band of a kappa: poor below 0, slight to 0.20, fair to 0.40, moderate to 0.60, substantial
    to 0.80, almost perfect above. The authors call the bounds arbitrary.

    Landis & Koch 1977, "The measurement of observer agreement for categorical data", table on p. 165.
    """
    return "poor" if kappa < 0 else next((name for bound, name in BANDS if kappa <= bound), "almost perfect")
