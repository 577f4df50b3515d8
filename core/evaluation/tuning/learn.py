"""Fits weights of lists on labels, and measures them on questions they were not fitted on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.analysis.metrics import by_question
from core.backends.fusion_weights import FEATURES, FittedWeights
from core.domain.errors import BadInput, Cancelled
from core.domain.fusion import linear, rrf
from core.domain.types import Ranking, Scored
from core.evaluation import comparison, statistics
from core.steps.fitted_fusion import features

if TYPE_CHECKING:
    from core.engine.engine import Engine
    from core.evaluation.dataset import LabelledSet

METRIC = "ndcg@10"
FOLDS, INNER, SEED = 5, 3, 13
STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0)  # C of LogisticRegression: the smaller, the nearer to no weights
# Five folds of at least eight questions: with fewer a fold's figure is that of one or two questions.
LEAST_QUESTIONS = 40
# Ten events for each coefficient (Peduzzi et al. 1996, J. Clin. Epidemiol. 49), and never less than this.
EACH_COEFFICIENT, LEAST_RELEVANT = 10, 100
EQUAL = "equal weights"  # the sum of the same lists' normalised scores, which needs no labels
ByName = Mapping[str, Mapping[str, float]]  # route -> question -> METRIC


@dataclass(frozen=True, slots=True)
class Regression:
    """A logistic regression over standardised features, by scikit-learn: what is fitted on some pairs.
    `weights` and `intercept` are those of the features in their own units.
    """

    mean: Numbers
    scale: Numbers
    coefficients: Numbers  # of the standardised features
    strength: float
    weights: Numbers
    intercept: float

    def scores(self, x: Numbers) -> Numbers:
        """Return the decision function without its intercept, which no order depends on; shape (n,)."""
        return x @ self.weights


def refusal(questions: int, relevant: int, lists: int) -> str | None:
    """Why weights of that many lists are not fitted on so many labelled questions and relevant passages, with
    what is needed; None if they are.
    """
    needed = max(LEAST_RELEVANT, EACH_COEFFICIENT * len(FEATURES) * lists)
    lacks = []
    if questions < LEAST_QUESTIONS:
        lacks.append(f"{questions} labelled questions, but at least {LEAST_QUESTIONS} are needed")
    if relevant < needed:
        lacks.append(
            f"{relevant} relevant passages that the lists found, but at least {needed} are needed for "
            f"{lists} {'list' if lists == 1 else 'lists'}"
        )
    if not lacks:
        return None
    return f"there are too few labels to fit weights on: {'; '.join(lacks)}. Label more questions" + (
        ", or fuse fewer lists" if lists > 2 and relevant < needed else ""
    )


def regression(found: Pairs, rows: Any, strength: float) -> Regression:
    """Fitted on the pairs `rows`: every question counts the same, and half of it is its relevant passages."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    x, relevant, of = found.x[rows], found.relevant[rows], found.of[rows]
    scaler = StandardScaler().fit(x)
    model = LogisticRegression(C=strength, solver="newton-cholesky", max_iter=500, tol=1e-8)
    model.fit(scaler.transform(x), relevant, sample_weight=_shares(relevant, of))
    weights = model.coef_[0] / scaler.scale_
    intercept = float(model.intercept_[0] - weights @ scaler.mean_)
    return Regression(scaler.mean_, scaler.scale_, model.coef_[0], strength, weights, intercept)


def chosen(found: Pairs, rows: Any) -> Regression:
    """Return the same with the strength of regularisation that has the lowest log loss over inner folds of
    the questions of `rows`; of equals the strongest.
    """
    losses = dict.fromkeys(STRENGTHS, 0.0)
    for seen, unseen in _folds(found.of[rows], INNER):
        for strength in STRENGTHS:
            # log loss of held-out rows, weighted as in fitting
            fitted, at = regression(found, rows[seen], strength), rows[unseen]
            margin = fitted.scores(found.x[at]) + fitted.intercept
            signed, shares = (
                np.where(found.relevant[at], margin, -margin),
                _shares(found.relevant[at], found.of[at]),
            )
            losses[strength] += float(shares @ np.logaddexp(0.0, -signed) / len(at))
    return regression(found, rows, min(losses, key=lambda one: (round(losses[one], 9), one)))


def out_of_fold(
    found: Pairs, fit: Callable[[Pairs, Any], Regression]
) -> tuple[Numbers, list[tuple[list[str], Regression]]]:
    """Return a score for each pair, by a regression that saw nothing of its question; and for each fold the
    questions held out with the regression that scored them.
    """
    scores = np.zeros(len(found.passages))
    folds = []
    for seen, unseen in _folds(found.of, FOLDS):
        fitted = fit(found, seen)
        scores[unseen] = fitted.scores(found.x[unseen])
        folds.append(([found.questions[at] for at in np.unique(found.of[unseen])], fitted))
    return scores, folds


def learned(
    collected: Collected,
    name: str,
    lists: Sequence[str],
    questions: Sequence[str],
    held_out: Sequence[str] = (),
    *,
    of: str = "",
    rivals: ByName | None = None,
    stage: Callable[[str], None] = lambda _said: None,
) -> FittedWeights:
    """Weights of `lists` fitted on `questions`, with what they are worth under `made`: on these questions out
    of fold, and on those `held_out`; compared with hand-set fusions, and with `rivals` measured elsewhere.

    BadInput where the labels are too few, see `refusal`. `of` says where questions and labels come from.
    """
    found = pairs(collected, questions, lists)
    there = counts(collected, found)
    if lacking := refusal(there.questions, there.relevant, len(lists)):
        raise BadInput(lacking)
    stage("cross-validating")
    scores, folds = out_of_fold(found, chosen)
    stage("fitting on all questions")
    whole = chosen(found, np.arange(len(found.passages)))
    values = _values(collected, found.rankings(scores), questions)
    made = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "how": (
            f"logistic regression of scikit-learn {version('scikit-learn')}, L2, features standardised; each "
            "question weighs the same, and half of it are its relevant passages; strength out of "
            f"{', '.join(map(str, STRENGTHS))} by the log loss of {INNER} inner folds; figures out of "
            f"{FOLDS} outer folds, by question"
        ),
        "embedder": collected.embedder,
        "of": of,
        "questions": list(questions),
        "counts": asdict(there),
        "strength": whole.strength,
        "means": whole.mean.tolist(),
        "scales": whole.scale.tolist(),
        "standardised": whole.coefficients.reshape(len(lists), -1).tolist(),
        "out of fold": {
            **_worth(collected, values, lists, rivals),
            "folds": [
                {"questions": len(ids), "strength": one.strength, METRIC: _mean([values[id] for id in ids])}
                for ids, one in folds
            ],
        },
    }
    if len(lists) > 1:
        stage("leaving out one list at a time")
        made["without"] = _without(collected, found, values, whole.strength)
    if held_out:
        unseen = pairs(collected, held_out, lists)
        theirs = _values(collected, unseen.rankings(whole.scores(unseen.x)), held_out)
        made["held out"] = _worth(collected, theirs, lists, rivals)
    return FittedWeights(
        name,
        collected.corpus,
        collected.fingerprint,
        tuple(lists),
        tuple(map(tuple, whole.weights.reshape(len(lists), -1).tolist())),
        whole.intercept,
        made,
    )


def by_hand(collected: Collected, question: str, lists: Sequence[str]) -> dict[str, Any]:
    """Return the rankings that need no labels: BM25, its fusion with dense by rank, by the functions of the
    routes of these names, and the sum of all `lists` by normalised scores.
    """
    found = collected.lists[question]
    basic = tuple(found[one] for one in BASIC)
    return {
        "bm25": found["bm25"],
        "hybrid_rrf": rrf(basic),
        EQUAL: linear([found[one] for one in lists]),
    }


def _without(
    collected: Collected, found: Pairs, values: Mapping[str, float], strength: float
) -> dict[str, Any]:
    """Compute the loss without each list: fitted again without it, out of fold, minus with all."""
    left = {}
    for name in found.lists:
        others = [one for one in found.lists if one != name]
        fewer = pairs(collected, found.questions, others)
        scores, _ = out_of_fold(fewer, lambda some, rows: regression(some, rows, strength))
        left[name] = _values(collected, fewer.rankings(scores), found.questions)
    compared = comparison.family({name: [v[id] - values[id] for id in values] for name, v in left.items()})
    return {name: {**_summary(left[name]), **_short(compared[name])} for name in left}


def _worth(
    collected: Collected, values: Mapping[str, float], lists: Sequence[str], rivals: ByName | None
) -> dict[str, Any]:
    """Return the figures of the fitted weights, and against what is made by hand of the same lists and what
    was measured.
    """
    rankings: dict[str, dict[str, Any]] = {}
    for question in values:
        for name, ranking in by_hand(collected, question, lists).items():
            rankings.setdefault(name, {})[question] = collected.scored(question, ranking)
    hand = {name: _values(collected, some, tuple(values)) for name, some in rankings.items()}
    others = {name: by for name, by in (rivals or {}).items() if name not in hand}
    return {**_summary(values), "against": _against(values, hand), "measured": _against(values, others)}


def _against(values: Mapping[str, float], others: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Return the fitted weights minus each of `others`, over the questions of both; one Holm family."""
    shared = {name: [id for id in values if id in by] for name, by in others.items()}
    compared = comparison.family(
        {name: [values[id] - others[name][id] for id in ids] for name, ids in shared.items()}
    )
    return {
        name: {**_short(compared[name]), METRIC: _mean([others[name][id] for id in shared[name]])}
        for name in compared
    }


def _short(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("delta", "ci95", "p", "p_holm", "verdict", "n", "detectable")}


def _summary(values: Mapping[str, float]) -> dict[str, Any]:
    ends = statistics.mean_interval(list(values.values()))
    return {METRIC: _mean([*values.values()]), "ci95": list(ends) if ends else None, "n": len(values)}


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _values(collected: Collected, rankings: Mapping[str, Any], questions: Sequence[str]) -> dict[str, float]:
    """METRIC of each question; one for which nothing was found has 0."""
    labelled = collected.labelled
    qrels = {id: labelled.judged(id) for id in questions}
    asked = {id: labelled.of_passages(id, rankings.get(id, ())) for id in questions}
    found = by_question(qrels, asked, relevant_from=labelled.relevant_from, metrics=[METRIC])
    return {id: found[id][METRIC] for id in questions}


def _folds(of: Any, count: int) -> list[tuple[Any, Any]]:
    """Rows to fit on and rows held out, by question, the same at every call."""
    from sklearn.model_selection import GroupKFold

    return list(GroupKFold(count, shuffle=True, random_state=SEED).split(of, groups=of))


def _shares(relevant: Any, of: Any) -> Numbers:
    """Return a weight for each row. The rows of a question sum to 1, half of it on its relevant passages; all
    are multiplied by the mean number of rows per question. A question without a relevant passage found has
    weight 0, as it orders nothing.
    """
    size = int(of.max()) + 1
    good, all_ = np.bincount(of[relevant], minlength=size), np.bincount(of, minlength=size)
    bad = all_ - good
    usable = (good > 0) & (bad > 0)
    per = np.where(relevant, 0.5 / np.maximum(good, 1)[of], 0.5 / np.maximum(bad, 1)[of]) * usable[of]
    found: Numbers = per * len(of) / max(per.sum(), 1e-12)
    return found


BASIC = ("bm25", "dense")  # always searched: the fusions that are compared with fuse these
Numbers = NDArray[np.float64]
Progress = Callable[[int, int], None]  # (questions done, of how many)


@dataclass(frozen=True, slots=True)
class Collected:
    """The lists found for each labelled question of a set, by question and list, whole and as searched."""

    labelled: LabelledSet
    corpus: str
    fingerprint: str
    embedder: str
    lists: Mapping[str, Mapping[str, Ranking]]

    def dropped(self, question: str) -> str | None:
        """Return the passage that is excluded from a question's results: its own, if the set has that
        rule.
        """
        own = self.labelled.drop_self and question not in self.labelled.qrels.get(question, {})
        return question if own else None

    def scored(self, question: str, ranking: Ranking) -> Scored:
        """Return a ranking as it counts for a question."""
        drop = self.dropped(question)
        return tuple((hit.passage.id, hit.score) for hit in ranking if hit.passage.id != drop)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """n pairs of question and passage: `x` their features (n, lists x features), `relevant` (n,), `of` the
    question's place in `questions` (n,), and the passage of each.
    """

    questions: tuple[str, ...]
    lists: tuple[str, ...]
    x: Numbers
    relevant: NDArray[np.bool_]
    of: NDArray[np.int64]
    passages: tuple[str, ...]

    def rankings(self, scores: Numbers) -> dict[str, Scored]:
        """Return the passages of each question by `scores`, best first, ties by id."""
        found: dict[str, list[tuple[str, float]]] = {}
        for passage, of, score in zip(self.passages, self.of.tolist(), scores.tolist(), strict=True):
            found.setdefault(self.questions[of], []).append((passage, score))
        return {
            question: tuple(sorted(some, key=lambda one: (-one[1], one[0])))
            for question, some in found.items()
        }


@dataclass(frozen=True, slots=True)
class Counts:
    """The labels at hand: `questions` with a relevant passage; `relevant` pairs of question and passage that
    some list found, of `labelled` in all; `passages` found, of which `unjudged` have no label and count as
    not relevant.
    """

    questions: int
    relevant: int
    labelled: int
    passages: int
    unjudged: int


def collect(
    engine: Engine,
    labelled: LabelledSet,
    corpus_name: str,
    lists: Sequence[str],
    progress: Progress = lambda _done, _of: None,
    ended: Callable[[], bool] = lambda: False,
) -> Collected:
    """Search for every labelled question as the route would; no model is asked.

    Raises Unavailable where something that `lists` need is not made, Cancelled when `ended` turns true.
    """
    corpus = engine.corpus(corpus_name)
    names = tuple(dict.fromkeys((*BASIC, *lists)))
    asked = [question for question in labelled.questions if labelled.labelled(question.id)]
    found: dict[str, dict[str, Ranking]] = {}
    for number, question in enumerate(asked):
        progress(number, len(asked))
        if ended():
            raise Cancelled("stopped by the user")
        do = engine.steps(corpus)
        found[question.id] = dict(zip(names, do.found_by(names, question.query.text), strict=True))
    progress(len(asked), len(asked))
    return Collected(labelled, corpus_name, corpus.fingerprint, corpus.info.embedder, found)


def pairs(collected: Collected, questions: Sequence[str], lists: Sequence[str]) -> Pairs:
    """Return the pairs of `questions` with every passage that some of `lists` found.

    A passage is relevant if it is graded as such. One graded lower, or not judged at all, is not: labels that
    are missing teach that a passage is wrong, which is the more often true the deeper the labels were pooled.
    """
    labelled = collected.labelled
    rows: list[list[float]] = []
    facts: list[tuple[bool, int, str]] = []
    absent = (0.0,) * len(FEATURES)
    for number, question in enumerate(questions):
        known = [features(collected.lists[question][name]) for name in lists]
        grades, drop = labelled.qrels.get(question, {}), collected.dropped(question)
        for id in dict.fromkeys(id for one in known for id in one):
            if id != drop:
                rows.append([value for one in known for value in one.get(id, absent)])
                facts.append((grades.get(id, 0) >= labelled.relevant_from, number, id))
    relevant: list[Any]
    of: list[Any]
    ids: list[Any]
    relevant, of, ids = map(list, zip(*facts, strict=True)) if facts else ([], [], [])
    x = np.array(rows, np.float64).reshape(len(rows), len(lists) * len(FEATURES))
    return Pairs(
        tuple(questions), tuple(lists), x, np.array(relevant, bool), np.array(of, np.int64), tuple(ids)
    )


def counts(collected: Collected, found: Pairs) -> Counts:
    """Count the labels to fit on."""
    labelled = collected.labelled
    grades = [labelled.qrels.get(question, {}) for question in found.questions]
    judged = sum(passage in grades[of] for passage, of in zip(found.passages, found.of, strict=True))
    return Counts(
        len(found.questions),
        int(found.relevant.sum()),
        sum(grade >= labelled.relevant_from for one in grades for grade in one.values()),
        len(found.passages),
        len(found.passages) - judged,
    )
