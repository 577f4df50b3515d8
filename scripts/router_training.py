"""Trains the classifier of questions and chooses routes for its classes, one set held out at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.backends.question_classifier import (
    CLASSES,
    DEFAULT,
    DEFAULT_ROUTE,
    ClassRoute,
    QuestionClassifier,
)
from core.domain.errors import BadInput
from core.evaluation.oracle import Shown, Standing, standing
from core.evaluation.statistics import difference_interval, mean_interval
from core.steps.question_features import FEATURES
from scripts.router_cases import Case

STRENGTH = 0.1  # C of scikit-learn: the inverse of the L2 penalty, on features of variance 1
LEAST = 0.75  # probability of a class other than the default one from which on it counts
SIGNAL = 0.65  # AUC on sets held out below which a class is not told from the others
FEW = 5  # questions below which nothing is said of a class, or of a route
MANY = 15  # questions of a class on a set below which chance tells nothing of it
FOLDS = 5
LOSS = 0.005  # of value against the default route on any set, above which a route is refused
HOW = (
    "multinomial logistic regression of scikit-learn {version}, L2, C {strength:g}, features standardised; "
    "each set and kind weighs as the square root of its questions, all classes the same"
)
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Judged:
    """A question with what a classifier that had not seen its set took it for."""

    case: Case
    scores: Mapping[str, float]
    taken: str


@dataclass(frozen=True, slots=True)
class Against:
    """How a router stands on a set that it was not trained on, and how many questions it gave to a route."""

    set: str
    standing: Standing
    given: Mapping[str, int]


def fit(found: Sequence[Case], classes: Sequence[str]) -> QuestionClassifier:
    """A classifier that has seen `found`; questions of other classes count as the default one. No routes."""
    from sklearn.linear_model import LogisticRegression

    rows: list[Sequence[float]] = []
    kinds: list[str] = []
    groups: list[tuple[str, str, bool]] = []
    for case in found:
        if case.kind is None:
            continue
        kind = case.kind if case.kind in classes else DEFAULT
        for given, other in [(case.features, False), *((one, True) for one in case.shown.values())]:
            rows.append([given[name] for name in FEATURES])
            kinds.append(kind)
            groups.append((case.set, kind, other))
    present = [name for name in CLASSES if name in kinds]
    if len(present) < 2:
        raise BadInput(f"{len(rows)} questions of one class ({', '.join(present)}): nothing to tell apart")
    values = np.array(rows, np.float64)
    weights = _weights(kinds, groups)
    means = np.average(values, axis=0, weights=weights)
    scale = np.sqrt(np.average((values - means) ** 2, axis=0, weights=weights))
    scale[scale < 1e-9] = 1.0
    model = LogisticRegression(C=STRENGTH, max_iter=2000, tol=1e-5)
    model.fit((values - means) / scale, kinds, sample_weight=weights)
    order = [list(model.classes_).index(name) for name in present] if len(present) > 2 else None
    if order is None:  # of two classes scikit-learn keeps the second alone
        sign = 1 if list(model.classes_) == present else -1
        coefficients = np.vstack([-model.coef_[0] / 2, model.coef_[0] / 2]) * sign
        intercepts = np.array([-model.intercept_[0] / 2, model.intercept_[0] / 2]) * sign
    else:
        coefficients, intercepts = model.coef_[order], model.intercept_[order]
    return QuestionClassifier(
        tuple(present),
        FEATURES,
        tuple(map(float, means)),
        tuple(tuple(map(float, row)) for row in coefficients / scale),
        tuple(map(float, intercepts)),
        LEAST,
        {},
    )


def _weights(kinds: Sequence[str], groups: Sequence[tuple[str, str, bool]]) -> Numbers:
    sizes = Counter(groups)
    weights = np.array([sizes[group] ** -0.5 for group in groups])
    whole: dict[str, float] = defaultdict(float)
    for kind, weight in zip(kinds, weights, strict=True):
        whole[kind] += weight
    weights /= np.array([whole[kind] for kind in kinds])
    scaled: Numbers = weights * (len(weights) / weights.sum())
    return scaled


def judge(classifier: QuestionClassifier, found: Sequence[Case]) -> list[Judged]:
    """What `classifier` takes each question for."""
    if not found:
        return []
    values = [[case.features[name] for name in classifier.features] for case in found]
    judged = []
    for case, row in zip(found, classifier.probabilities(values), strict=True):
        scores = dict(zip(classifier.classes, map(float, row), strict=True))
        best = max(scores, key=lambda name: (scores[name], -CLASSES.index(name)))
        judged.append(Judged(case, scores, best if scores[best] >= classifier.least else DEFAULT))
    return judged


def held_out(found: Sequence[Case], classes: Sequence[str]) -> list[Judged]:
    """Each question judged by a classifier trained on the other sets, and on no database of its own.

    Of a class that one set alone has the others tell nothing: its questions there are judged by folds, each
    by a classifier that saw the class' other questions of the set.
    """
    judged: list[Judged] = []
    for name in dict.fromkeys(case.set for case in found):
        own = [case for case in found if case.set == name]
        alone = {kind for kind in classes if {case.set for case in found if case.kind == kind} == {name}}
        judged += _unseen(without(found, name), classes, [case for case in own if case.kind not in alone])
        some = [case for case in own if case.kind in alone]
        rest = [case for case in found if case.set != name]
        for fold in range(FOLDS if some else 0):
            seen = [case for at, case in enumerate(some) if at % FOLDS != fold]
            judged += _unseen([*rest, *seen], classes, some[fold::FOLDS])
    return judged


def _unseen(seen: Sequence[Case], classes: Sequence[str], found: Sequence[Case]) -> list[Judged]:
    """`found` judged by a classifier that has `seen` others; of one class alone nothing is told apart."""
    if not _two(seen, classes):
        return [Judged(case, {DEFAULT: 1.0}, DEFAULT) for case in found]
    return judge(fit(seen, classes), found)


def _two(found: Sequence[Case], classes: Sequence[str]) -> bool:
    return len({case.kind if case.kind in classes else DEFAULT for case in found if case.kind}) > 1


def without(found: Sequence[Case], name: str) -> list[Case]:
    """The cases of the other sets; none is shown the database of `name`."""
    return [
        replace(case, shown={other: one for other, one in case.shown.items() if other != name})
        for case in found
        if case.set != name
    ]


def auc(judged: Sequence[Judged], kind: str) -> float | None:
    """How well the probability of `kind` tells its questions from the others; None without both."""
    from sklearn.metrics import roc_auc_score

    known = [one for one in judged if one.case.kind is not None]
    truth = [one.case.kind == kind for one in known]
    if not any(truth) or all(truth):
        return None
    return float(roc_auc_score(truth, [one.scores.get(kind, 0.0) for one in known]))


def above_chance(judged: Sequence[Judged], kind: str) -> dict[str, float]:
    """For each set with `MANY` questions of `kind` the share of them taken for it, less the mean share of
    the other questions of each set that were (Youden 1950, "Index for rating diagnostic tests").
    """
    right: dict[str, list[bool]] = defaultdict(list)
    wrong: dict[str, list[bool]] = defaultdict(list)
    for one in judged:
        if one.case.kind is not None:
            (right if one.case.kind == kind else wrong)[one.case.set].append(one.taken == kind)
    false = float(np.mean([np.mean(some) for some in wrong.values()])) if wrong else 0.0
    return {name: float(np.mean(some)) - false for name, some in right.items() if len(some) >= MANY}


def train(found: Sequence[Case]) -> QuestionClassifier:
    """A classifier of the classes that can be told on sets held out, with the routes that earned them there.

    A class counts as the default one where its AUC is below `SIGNAL`, or on some set it is told no better
    than by chance (`above_chance`). See `candidates` for the routes.
    """
    counts = Counter(case.kind for case in found if case.kind)
    classes = [name for name in CLASSES if counts[name] >= FEW or name == DEFAULT]
    judged = held_out(found, classes)
    others = [name for name in classes if name != DEFAULT]
    signals = {name: auc(judged, name) for name in others}
    margins = {name: above_chance(judged, name) for name in others}
    lost = [
        name
        for name in others
        if (signals[name] or 0.0) < SIGNAL or min(margins[name].values(), default=1.0) <= 0
    ]
    if lost:
        classes = [name for name in classes if name not in lost]
        judged = held_out(found, classes)
    tried = allowed({name: candidates(judged, name) for name in classes if name != DEFAULT})
    routes = {name: tuple(one.candidate for one in some if not one.refused) for name, some in tried.items()}
    made = {
        "sets": dict(Counter(case.set for case in found)),
        "questions": {name: counts[name] for name in CLASSES if counts[name]},
        "AUC held out": signals,
        "above chance held out": margins,
        "not told": lost,
        "refused": [
            {"kind": name, "route": one.candidate.route, "gain": one.candidate.gain, "why": one.refused}
            for name, some in tried.items()
            for one in some
            if one.refused
        ],
        "date": datetime.now(UTC).date().isoformat(),
        "how": HOW.format(version=_version(), strength=STRENGTH),
    }
    classifier = fit(found, classes)
    return replace(classifier, routes={name: some for name, some in routes.items() if some}, made=made)


@dataclass(frozen=True, slots=True)
class Tried:
    """A route for a class: why it was `refused`, or "", its gain on the set where it gained least, and what
    it gained on each set, spread over all questions of the set.
    """

    candidate: ClassRoute
    refused: str
    least: float
    by_set: Mapping[str, float]


def candidates(judged: Sequence[Judged], kind: str) -> list[Tried]:
    """The routes measured on the questions taken for `kind`: that with the highest gain on the set where it
    gained least comes first, as a router is to be worse nowhere.

    Refused is what does not beat the default route on `FEW` questions by an interval above 0.
    """
    sizes = Counter(one.case.set for one in judged if DEFAULT_ROUTE in one.case.values)
    taken = [one.case for one in judged if one.taken == kind and DEFAULT_ROUTE in one.case.values]
    names = dict.fromkeys(name for case in taken for name in case.values if name != DEFAULT_ROUTE)
    tried = [_tried(name, taken, sizes) for name in names]
    return sorted(tried, key=lambda one: -one.least)


def _tried(route: str, taken: Sequence[Case], sizes: Mapping[str, int]) -> Tried:
    gains: dict[str, list[float]] = defaultdict(list)
    for case in taken:
        if route in case.values:
            gains[case.set].append(case.values[route] - case.values[DEFAULT_ROUTE])
    every = [gain for some in gains.values() for gain in some]
    low, high = difference_interval(every) or (0.0, 0.0)
    refused = ""
    if len(every) < FEW:
        refused = f"{len(every)} questions; at least {FEW} are needed"
    elif low <= 0:
        refused = f"its gain has the interval {low:.3f} to {high:.3f}"
    least = min((float(np.mean(some)) for some in gains.values() if len(some) >= FEW), default=low)
    found = ClassRoute(route, "value", float(np.mean(every)), low, high, len(every), tuple(gains))
    return Tried(found, refused, least, {name: sum(some) / sizes[name] for name, some in gains.items()})


def allowed(tried: Mapping[str, Sequence[Tried]]) -> dict[str, list[Tried]]:
    """`tried`, with those refused that would make the router as a whole lose more than `LOSS` a question on
    some set, beside the first routes of the other classes.
    """
    first: dict[str, Tried] = {}
    for _ in tried:  # what one class lost, another may have made up for
        for kind, some in tried.items():
            fitting = (one for one in some if not one.refused and _worst({**first, kind: one})[1] >= -LOSS)
            if kind not in first and (one := next(fitting, None)) is not None:
                first[kind] = one
    found: dict[str, list[Tried]] = {}
    for kind, some in tried.items():
        found[kind] = []
        for one in some:
            name, mean = _worst({**first, kind: one})
            why = f"the router would lose {-mean:.3f} a question on {name}" if mean < -LOSS else ""
            found[kind].append(replace(one, refused=one.refused or why))
    return found


def _worst(first: Mapping[str, Tried]) -> tuple[str, float]:
    """The set on which routes for several classes gain least, and how much."""
    whole: dict[str, float] = defaultdict(float)
    for one in first.values():
        for name, mean in one.by_set.items():
            whole[name] += mean
    return min(whole.items(), key=lambda item: item[1])


def chosen(classifier: QuestionClassifier, one: Judged) -> str:
    """The route that a question is given to, of those measured on it."""
    routes = [route.route for route in classifier.routes.get(one.taken, ())]
    return next((name for name in routes if name in one.case.values), DEFAULT_ROUTE)


def against(classifier: QuestionClassifier, found: Sequence[Case]) -> Against | None:
    """What a router is worth on the cases of one set; None without values."""
    judged = [one for one in judge(classifier, found) if DEFAULT_ROUTE in one.case.values]
    if len(judged) < 2:
        return None
    given = [chosen(classifier, one) for one in judged]
    values = {one.case.id: one.case.values for one in judged}
    router = {one.case.id: one.case.values[name] for one, name in zip(judged, given, strict=True)}
    found_standing = standing(values, router)
    assert found_standing is not None  # as there are two
    return Against(found[0].set, found_standing, dict(Counter(given)))


def report(found: Sequence[Case]) -> tuple[list[Judged], list[Against], dict[str, list[str]]]:
    """Every set held out once: what its questions were taken for, what the router gained there, and the
    routes that the other sets had chosen. For the gain the choice of classes and routes was held out too; the
    classes that questions are taken for are those of the whole.
    """
    judged = held_out(found, train(found).classes)
    rows: list[Against] = []
    routes: dict[str, list[str]] = {}
    for name in dict.fromkeys(case.set for case in found):
        if not _two(rest := without(found, name), CLASSES):
            routes[name] = []
            continue
        classifier = train(rest)
        own = [case for case in found if case.set == name]
        routes[name] = [f"{kind}: {one[0].route}" for kind, one in classifier.routes.items()]
        if (row := against(classifier, own)) is not None:
            rows.append(row)
    return judged, rows, routes


@dataclass(frozen=True, slots=True)
class Taken:
    """The questions of one kind in one set: the share taken for what they are, and counts of what for."""

    set: str
    kind: str
    right: Shown
    taken: Mapping[str, int]


def held_out_table(judged: Sequence[Judged]) -> list[Taken]:
    """A row for each set and kind, in the order of sets and classes."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in judged:
        if one.case.kind is not None:
            groups[one.case.set, one.case.kind].append(one.taken)
    sets = list(dict.fromkeys(name for name, _ in groups))
    rows = []
    for (name, kind), taken in sorted(
        groups.items(),
        key=lambda item: (sets.index(item[0][0]), CLASSES.index(item[0][1])),
    ):
        right = [float(one == kind) for one in taken]
        shown = Shown(float(np.mean(right)), mean_interval(right), len(right))
        rows.append(Taken(name, kind, shown, dict(Counter(taken).most_common())))
    return rows


def document(rows: Sequence[Against]) -> list[dict[str, Any]]:
    """`rows` as JSON values."""
    return [asdict(row) for row in rows]


def _version() -> str:
    from sklearn import __version__

    return str(__version__)
