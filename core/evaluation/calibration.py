"""Choosing thresholds on labelled cases, and whether grades are calibrated: of the cases graded 0.7, seven in
ten should be right. A model's closed questions are calibrated on questions whose right reply is known.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from core.backends import calibrations
from core.backends.calibrations import DECISIONS, Decision, DecisionCalibration, HeldOut
from core.backends.prompting.citations import sentences
from core.domain.errors import BadInput, Cancelled, ModelFailed, ModelTimedOut
from core.domain.types import Hit
from core.evaluation.answers import Given, correct, words
from core.evaluation.dataset import LabelledSet, Question
from core.steps import Steps
from core.steps.generate import DEFAULT_SHOWN_PASSAGES
from core.steps.grade import PROMPTS

if TYPE_CHECKING:
    from core.corpus.index import Corpus
    from core.engine.engine import Engine


Acts = Literal["from", "below"]  # whether a step acts from its threshold on, or below it
Objective = Literal["f1", "balanced accuracy", "precision", "recall"]
Measure = Objective | Literal["kappa"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
WANTED: tuple[Objective, ...] = ("precision", "recall")  # those that need a wanted value
DIGITS = 12
Counts = NDArray[np.float64]  # last axis: true positives, false positives, false negatives, true negatives


def choose(
    scores: Sequence[float],
    positive: Sequence[bool],
    acts: Acts = "from",
    objective: Measure = "f1",
    wanted: float | None = None,
) -> float:
    """Return the threshold of the highest value of `objective` on these cases; of equal ones the lowest.

    For "precision" (or "recall") the one of the highest recall (precision) of those with at least `wanted`.
    It lies midway between neighbouring scores, rounded as far as no decision changes. BadInput where a kind
    of case is missing, or no threshold reaches what is wanted.
    """
    if not any(positive) or all(positive):
        raise BadInput(f"{sum(positive)} of {len(positive)} cases are positive; a threshold needs both kinds")
    if (objective in WANTED) != (wanted is not None) or not 0 < (wanted or 1) <= 1:
        raise BadInput(f"wanted={wanted!r} for {objective}; give above 0 to 1 for precision and recall alone")
    edges, counts = tables(scores, positive, acts)
    value = rate(counts, objective)
    if objective in WANTED:
        reached = value >= (wanted or 0) - 1e-12
        if not reached.any():
            at = int(np.nanargmax(value))
            best = f"{value[at]:.2f}, at {edges[at]:.3g}"
            raise BadInput(f"no threshold reaches {objective} {wanted:g} here; the best is {best}")
        other = rate(counts, "recall" if objective == "precision" else "precision")
        rank = np.where(reached, np.nan_to_num(other), -1.0)
    else:
        rank = np.nan_to_num(value)
    return float(edges[int(np.flatnonzero(rank >= rank.max() - 1e-12)[0])])


def tables(
    scores: Sequence[float], positive: Sequence[bool], acts: Acts
) -> tuple[NDArray[np.float64], Counts]:
    """All thresholds that decide differently, ascending, shape (t,), and their counts, shape (t, 4)."""
    from sklearn.metrics import confusion_matrix_at_thresholds

    tn, fp, fn, tp, known = confusion_matrix_at_thresholds(list(positive), list(scores))
    from_here = np.column_stack([tp, fp, fn, tn])[::-1].astype(np.float64)
    values = known[::-1]
    edges = [tidy(None, float(values[0])), *(tidy(float(a), float(b)) for a, b in pairwise(values))]
    edges.append(tidy(float(values[-1]), float(values[-1]) + 0.01))  # above every score
    kinds = from_here[0, :2]
    from_here = np.vstack([from_here, [0.0, 0.0, *kinds]])
    return np.array(edges), turned(from_here) if acts == "below" else from_here


def turned(counts: Counts) -> Counts:
    """Turn the counts for a step that acts below its threshold, where acting is right on what is not
    positive.
    """
    tp, fp, fn, tn = np.moveaxis(counts, -1, 0)
    return np.stack([tn, fn, fp, tp], axis=-1)


def tidy(below: float | None, score: float) -> float:
    """Return the shortest decimal near the middle of (below, score]; without `below` one at or under
    `score`.
    """
    middle = score if below is None else (below + score) / 2
    for digits in range(2, DIGITS):
        short = math.floor(score * 10**digits) / 10**digits if below is None else round(middle, digits)
        if short <= score and (below is None or short > below):
            return short
    return middle if below is None or below < middle else score


def rate(counts: Counts, objective: Measure) -> NDArray[np.float64]:
    """Return an objective, or Cohen's kappa, from counts, shape (..., 4) to (...); NaN if undefined."""
    tp, fp, fn, tn = np.moveaxis(np.asarray(counts, np.float64), -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        if objective == "precision":
            return np.asarray(tp / (tp + fp))
        if objective == "recall":
            return np.asarray(tp / (tp + fn))
        if objective == "f1":
            return np.asarray(2 * tp / (2 * tp + fp + fn))
        if objective == "kappa":
            apart = (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn)
            return np.asarray(2 * (tp * tn - fp * fn) / apart)
        return np.asarray((tp / (tp + fn) + tn / (tn + fp)) / 2)


@dataclass(frozen=True, slots=True)
class Bin:
    """The cases whose grade lies in [low, high) (the last bin has 1 too): their mean grade, and the share of
    them that is positive.
    """

    low: float
    high: float
    n: int
    mean: float
    share: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """The bins that hold cases, in order.

    `ece` is the expected calibration error: the mean distance of grade and share over the bins, weighted by
    their cases (Guo et al. 2017, "On Calibration of Modern Neural Networks", arXiv:1706.04599, section 2).
    `brier` is the mean squared distance of grade and label (Brier 1950). Both are 0 at best.
    """

    bins: tuple[Bin, ...]
    ece: float
    brier: float
    n: int


def read_reliability(stored: Any) -> Reliability | None:
    """Return a reliability that was stored as a mapping of its fields, or None for anything else."""
    try:
        return TypeAdapter(Reliability).validate_python(stored)
    except ValueError:
        return None


def reliability(grades: Sequence[float], positive: Sequence[bool], bins: int = 10) -> Reliability:
    """Return the calibration of grades from 0 to 1 against labels, in `bins` bins of equal width."""
    from sklearn.calibration import calibration_curve

    if len(grades) != len(positive) or not grades:
        raise BadInput(f"{len(grades)} grades and {len(positive)} labels; give as many of both, at least one")
    if not all(0 <= grade <= 1 for grade in grades):
        wrong = next(grade for grade in grades if not 0 <= grade <= 1)
        raise BadInput(f"a grade of {wrong!r}; grades are from 0 to 1")
    values, labels = np.array(grades, np.float64), np.array(positive, np.float64)
    share, mean = calibration_curve(labels, values, n_bins=bins, pos_label=1.0)
    edges = np.linspace(0, 1, bins + 1)
    counts = np.bincount(np.searchsorted(edges[1:-1], values), minlength=bins)  # as scikit-learn sorts them
    kept = np.flatnonzero(counts)
    found = tuple(
        Bin(float(edges[at]), float(edges[at + 1]), int(counts[at]), float(m), float(s))
        for at, m, s in zip(kept, mean, share, strict=True)
    )
    ece = sum(one.n * abs(one.mean - one.share) for one in found) / len(values)
    return Reliability(found, ece, float(((values - labels) ** 2).mean()), len(values))


SEARCHED = 20  # hits of hybrid search that passages are taken from
LEAST = 20  # cases: below that a threshold is chance
LEAST_OF_A_KIND = 5  # true ones, and others
MOST_FAILURES = 3
DRAWS = 2000  # of the bootstrap
CLAIM_WORDS = 40  # a longer gold answer is no single claim
NO_LOOK_UP = "no_retrieval"  # the kind of question that needs no documents
Progress = Callable[[int, int], None]  # (cases asked, of how many at most)


@dataclass(frozen=True, slots=True)
class Case:
    """A question of the set `of` put to the model: its score from 0 to 1, and whether Yes is right."""

    of: str
    question: str
    score: float
    positive: bool


Score = tuple[float | None, bool]  # the model's, None without one; whether Yes is right


def _scored(
    decision: Decision, do: Steps, corpus: Corpus, labelled: LabelledSet, question: Question, withheld: bool
) -> Score | None:
    """Ask the model one question; None if this one makes no case. `withheld`: what is labelled is left out,
    as by a search that found nothing of use, so that No is the right reply.
    """
    text = question.query.text
    if decision == "look up":  # asked as it is: questions that need no documents are known by their kind
        return do.worth_searching(text, 0.5).probability, question.mode != NO_LOOK_UP
    if decision == "closed-book answer":
        if not question.answers or question.query.history:
            return None
        said = do.answer_unsearched(text)
        right = correct(Given(said.text, abstained=said.unknown), question.answers, question.answerable)
        return None if said.unknown or right is None else (said.mean, right)
    hits = do.rrf((do.sparse(text), do.dense(text)))[:SEARCHED]
    grades = labelled.qrels.get(question.id, {})
    known = corpus.by_ids(list(grades))
    best = sorted(labelled.relevant(question.id), key=lambda id: (-grades[id], id))
    relevant = tuple(Hit(known[id], 1.0 / rank) for rank, id in enumerate(best, 1) if id in known)
    others = tuple(hit for hit in hits if grades.get(hit.passage.id, 0) <= 0)
    shown = (others if withheld else relevant)[:DEFAULT_SHOWN_PASSAGES]
    if decision == "evidence":  # all relevant passages among those shown, or none; a part of them is neither
        shown = (others if withheld else hits)[:DEFAULT_SHOWN_PASSAGES]
        wanted = {hit.passage.id for hit in relevant}
        found = wanted & {hit.passage.id for hit in shown}
        if not shown or (found and found != wanted):
            return None
        return do.evidence(text, shown, None, 0.5).score, bool(found)
    if not shown:
        return None
    if decision == "passage relevance":  # above 1, so that nothing is written
        return do.judged_segment(text, shown[0].passage, 1.01).relevance, not withheld
    claim = next(iter(sentences(question.answers[0])), "") if question.answers else ""
    size = len(words(claim))
    if not relevant or not 1 <= size <= CLAIM_WORDS or words(claim) in (["yes"], ["no"]):
        return None
    return do.check_claim(text, claim, shown, 0.5).probability, not withheld


def gather(
    engine: Engine,
    labelled: LabelledSet,
    corpus: Corpus,
    decision: Decision,
    count: int,
    seed: int,
    progress: Progress = lambda _done, _of: None,
    ended: Callable[[], bool] = lambda: False,
    warn: Callable[[str], None] = lambda _warning: None,
) -> tuple[Case, ...]:
    """Up to `count` cases of one set, drawn with `seed`: every second is made one whose right reply is No, by
    leaving out what is labelled. Questions that make no case are passed over, and so are up to
    `MOST_FAILURES` on which the model fails. Raises Cancelled once `ended`.

    Equal calls of the model come from its cache, so the same command goes on where it was stopped.
    """
    found: list[Case] = []
    withheld, failed = False, 0
    for question in _order(labelled, decision, seed):
        if ended():
            raise Cancelled("stopped by the user")
        if len(found) >= count:
            break
        progress(len(found), count)
        try:
            do = engine.steps(corpus)
            scored = _scored(decision, do, corpus, labelled, question, withheld)
        except (ModelFailed, ModelTimedOut) as error:
            warn(f"{decision}, {labelled.name}, question {question.id}: passed over, as {error}")
            failed += 1
            if failed > MOST_FAILURES:
                raise
            continue
        if scored is None or scored[0] is None:
            continue
        found.append(Case(labelled.name, question.id, min(1.0, max(0.0, scored[0])), scored[1]))
        withheld = not withheld
    progress(len(found), len(found))
    return tuple(found)


def _order(labelled: LabelledSet, decision: Decision, seed: int) -> list[Question]:
    """Return the questions as drawn; of those that need no documents, which are few, every second one."""
    drawn = sorted(labelled.questions, key=lambda question: question.id)
    random.Random(seed).shuffle(drawn)
    if decision != "look up":
        return drawn
    plain, other = ([q for q in drawn if (q.mode == NO_LOOK_UP) is kind] for kind in (True, False))
    return [question for pair in zip_longest(plain, other) for question in pair if question is not None]


def calibrate(decision: Decision, model: str, cases: Sequence[Case]) -> DecisionCalibration:
    """Return what `decision` is worth with `model`, by `cases` of one or more sets. Raises BadInput for fewer
    than `LEAST` cases, or `LEAST_OF_A_KIND` of either kind.

    The threshold is that of the highest balanced accuracy over all cases. Each set is also judged by the
    threshold that the other sets alone would give: how well it carries over to documents it never saw.
    """
    scores, positive = [case.score for case in cases], [case.positive for case in cases]
    if len(cases) < LEAST or not LEAST_OF_A_KIND <= sum(positive) <= len(cases) - LEAST_OF_A_KIND:
        few = f"{len(cases)} cases, Yes is right for {sum(positive)} of them"
        least = f"at least {LEAST}, and {LEAST_OF_A_KIND} of either kind"
        raise BadInput(f"{decision}: {few}; a calibration needs {least}: give more sets or more --queries")
    names = list(dict.fromkeys(case.of for case in cases))
    from sklearn.metrics import roc_auc_score

    return DecisionCalibration(
        decision,
        model,
        PROMPTS[decision],
        choose(scores, positive, objective="balanced accuracy"),
        float(roc_auc_score(positive, scores)),
        _interval(scores, positive),
        len(cases),
        sum(positive),
        tuple(_held_out(name, cases) for name in names),
        {name: tuple(sorted({case.question for case in cases if case.of == name})) for name in names},
        asdict(reliability(scores, positive)),
        datetime.now(UTC).date().isoformat(),
    )


def _held_out(name: str, cases: Sequence[Case]) -> HeldOut:
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    own, others = ([c for c in cases if (c.of == name) is inside] for inside in (True, False))
    scores, positive = [case.score for case in own], [case.positive for case in own]
    cut = None
    if len({case.positive for case in others}) == 2:
        cut = choose([c.score for c in others], [c.positive for c in others], objective="balanced accuracy")
    if len(set(positive)) < 2:
        return HeldOut(name, len(own), sum(positive), None, cut, None)
    balanced = None if cut is None else float(balanced_accuracy_score(positive, [x >= cut for x in scores]))
    return HeldOut(name, len(own), sum(positive), float(roc_auc_score(positive, scores)), cut, balanced)


def _interval(scores: Sequence[float], positive: Sequence[bool]) -> tuple[float, float]:
    """Return the 95% percentile bootstrap interval of the AUC, each kind of case drawn again on its own."""
    rng = np.random.default_rng(0)
    yes, no = (
        np.array([s for s, label in zip(scores, positive, strict=True) if label is kind])
        for kind in (True, False)
    )
    # The AUC is the share of pairs of a true and a false case that are in the right order, ties half.
    order = (yes[:, None] > no[None, :]) + 0.5 * (yes[:, None] == no[None, :])
    rows = rng.integers(len(yes), size=(DRAWS, len(yes)))
    columns = rng.integers(len(no), size=(DRAWS, len(no)))
    drawn = [order[np.ix_(row, column)].mean() for row, column in zip(rows, columns, strict=True)]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(low), float(high)


def chosen(names: str | None) -> tuple[Decision, ...]:
    """Return the decisions named "a,b"; all without a name. Raises BadInput listing those there are."""
    if not names:
        return DECISIONS
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if unknown := [name for name in wanted if name not in DECISIONS]:
        raise BadInput(f"unknown decision {unknown[0]!r}; known: {', '.join(DECISIONS)}")
    return tuple(name for name in DECISIONS if name in wanted)


def of_dev(labelled: LabelledSet) -> LabelledSet:
    """Return the questions of split dev, or else those outside split test, which is kept for the final
    measurement.

    Raises BadInput if all questions are of split test.
    """
    dev = tuple(question for question in labelled.questions if question.split == "dev")
    rest = dev or tuple(question for question in labelled.questions if question.split != "test")
    if not rest:
        every = f"all {len(labelled.questions)} questions of {labelled.name}"
        raise BadInput(f"{every} are of split test, kept for the final measurement; ask for split test")
    return replace(labelled, questions=rest)


def calibrated_on(engine: Engine, decisions: Collection[Decision], name: str) -> frozenset[str]:
    """Return the questions of the set `name` on which a threshold of `decisions` was chosen for the model in
    use.
    """
    model, home = calibrations.subject(engine.llm()), engine.settings.home
    found = (calibrations.read(decision, model, home) for decision in decisions)
    return frozenset(id for one in found if one is not None for id in one.questions.get(name, ()))
