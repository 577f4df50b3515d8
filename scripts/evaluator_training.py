"""Trains the lightweight retrieval evaluator on labelled questions, and measures it on others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.backends.evaluators import FEATURES, LIGHTWEIGHT, Evaluator
from core.domain.errors import BadInput
from core.evaluation.calibration import reliability
from core.evaluation.dataset import LabelledSet
from core.steps.evaluate import BACKGROUND
from scripts.calibrate import fit

if TYPE_CHECKING:
    from core.engine.engine import Engine

GRADED = 5  # passages of a question that are graded, as in the route
FOLDS = 5
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of question and passage, n of them: features (n, features), whether the passage is relevant, the
    question's number, and the passage's rank from 0, each (n,).
    """

    name: str
    embedder: str
    features: Numbers
    relevant: NDArray[np.bool_]
    question: NDArray[np.int64]
    rank: NDArray[np.int64]


def measure(
    engine: Engine,
    labelled: LabelledSet,
    corpus_name: str,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> Pairs:
    """The pairs of each question with the passages that hybrid search puts first; no model is asked.

    Questions without any relevant passage are kept: nothing that is found for them is.
    """
    corpus = engine.corpus(corpus_name)
    rows: list[tuple[float, ...]] = []
    facts: list[tuple[bool, int, int]] = []
    for number, question in enumerate(labelled.questions):
        progress(number, len(labelled.questions))
        do = engine.steps(corpus)
        text = question.query.text
        found = do.rrf((do.sparse(text), do.dense(text)))
        hits = tuple(h for h in found if not (labelled.drop_self and h.passage.id == question.id))[
            :BACKGROUND
        ]
        grades = labelled.qrels.get(question.id, {})
        rows += do.signals(text, hits, ())
        facts += [
            (grades.get(h.passage.id, 0) >= labelled.relevant_from, number, rank)
            for rank, h in enumerate(hits)
        ]
    if not rows:
        raise BadInput(f"{labelled.name}: no passage was found for its {len(labelled.questions)} questions")
    relevant, numbers, ranks = zip(*facts, strict=True)
    return Pairs(
        labelled.name,
        corpus.info.embedder,
        np.array(rows),
        np.array(relevant, bool),
        np.array(numbers),
        np.array(ranks),
    )


def train(sets: Sequence[Pairs]) -> Evaluator:
    """A logistic regression over the pairs of `sets`, with thresholds and what it is worth in `made`.

    Grades for the thresholds and the figures come from models that did not see the question: five folds, each
    question in one.
    """
    from sklearn import __version__
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold

    pairs = joined(sets)
    groups = len(np.unique(pairs.question))
    if groups < FOLDS or pairs.relevant.all() or not pairs.relevant.any():
        raise BadInput(
            f"{groups} questions with {int(pairs.relevant.sum())} relevant of {len(pairs.relevant)} passages;"
            f" training needs at least {FOLDS} questions, and passages of both kinds"
        )

    def regression(rows: NDArray[Any]) -> Evaluator:
        some, labels = pairs.features[rows], pairs.relevant[rows]
        mean, scale = some.mean(axis=0), np.maximum(some.std(axis=0), 1e-9)
        model = LogisticRegression(C=1.0, max_iter=1000).fit((some - mean) / scale, labels)
        coefficients = model.coef_[0] / scale
        intercept = float(model.intercept_[0] - coefficients @ mean)
        return Evaluator(
            LIGHTWEIGHT, 0.0, 1.0, FEATURES, tuple(map(float, coefficients)), intercept, pairs.embedder
        )

    unseen = np.zeros(len(pairs.relevant))
    for seen, held_out in GroupKFold(FOLDS).split(pairs.features, groups=pairs.question):
        if pairs.relevant[seen].any():
            unseen[held_out] = regression(seen).grades(pairs.features[held_out])
    best, found = by_question(pairs, unseen)
    chosen = fit(best, found)
    made = {
        "sets": [one.name for one in sets],
        "questions": groups,
        "passages": len(pairs.relevant),
        "relevant": int(pairs.relevant.sum()),
        "date": datetime.now(UTC).date().isoformat(),
        "how": f"logistic regression of scikit-learn {__version__}, L2, C 1, features standardised",
        "figures from": f"{FOLDS} folds by question",
        **figures(pairs, unseen, chosen.low, chosen.high),
    }
    whole = regression(np.arange(len(pairs.relevant)))
    return replace(whole, low=chosen.low, high=chosen.high, made=made)


def worth(evaluator: Evaluator, pairs: Pairs) -> dict[str, Any]:
    """What `evaluator` is worth on pairs it was not trained on."""
    return figures(pairs, evaluator.grades(pairs.features), evaluator.low, evaluator.high)


def figures(pairs: Pairs, grades: Numbers, low: float, high: float) -> dict[str, Any]:
    """AUC, Brier score and reliability of the grades of passages; the same of each question's best grade as a
    sign that a relevant passage is among the graded; and what the thresholds do.
    """
    graded = pairs.rank < GRADED
    best, found = by_question(pairs, grades)
    above = [label for grade, label in zip(best, found, strict=True) if grade >= high]
    below = [not label for grade, label in zip(best, found, strict=True) if grade < low]
    return {
        "passages graded": _quality(grades[graded].tolist(), pairs.relevant[graded].tolist()),
        "best of a question": _quality(best, found),
        "thresholds": {
            "low": low,
            "high": high,
            "trusted": len(above),
            "of these right": sum(above) / len(above) if above else None,
            "discarded": len(below),
            "of these rightly": sum(below) / len(below) if below else None,
            "between": len(best) - len(above) - len(below),
        },
    }


def by_question(pairs: Pairs, grades: Numbers) -> tuple[list[float], list[bool]]:
    """For each question the best of its first GRADED grades, and whether a relevant passage is among them."""
    graded = pairs.rank < GRADED
    masks = [graded & (pairs.question == number) for number in np.unique(pairs.question)]
    return [float(grades[mask].max()) for mask in masks], [bool(pairs.relevant[m].any()) for m in masks]


def joined(sets: Sequence[Pairs]) -> Pairs:
    """Several sets as one; BadInput where their vectors are of different models."""
    if not sets:
        raise BadInput("no labelled set to train on")
    embedders = {one.embedder for one in sets}
    if len(embedders) > 1:
        raise BadInput(f"sets with vectors of several models: {', '.join(sorted(embedders))}")
    starts = np.cumsum([0, *(int(one.question.max()) + 1 for one in sets[:-1])])
    return Pairs(
        "+".join(one.name for one in sets),
        sets[0].embedder,
        np.concatenate([one.features for one in sets]),
        np.concatenate([one.relevant for one in sets]),
        np.concatenate([one.question + start for one, start in zip(sets, starts, strict=True)]),
        np.concatenate([one.rank for one in sets]),
    )


def _quality(grades: Sequence[float], labels: Sequence[bool]) -> dict[str, Any]:
    from sklearn.metrics import roc_auc_score

    curve = reliability(grades, labels)
    both = 0 < sum(labels) < len(labels)
    return {
        "n": curve.n,
        "positive": sum(labels),
        "auc": float(roc_auc_score(labels, grades)) if both else None,
        "brier": curve.brier,
        "ece": curve.ece,
        "bins": [asdict(one) for one in curve.bins],
    }
