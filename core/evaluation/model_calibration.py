"""Calibrates a model's closed questions: each is asked of labelled questions whose right reply is known."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from core.backends import calibrations
from core.backends.calibrations import DECISIONS, Decision, DecisionCalibration, HeldOut
from core.backends.prompting.citations import sentences
from core.domain.errors import BadInput, Cancelled, ModelFailed, ModelTimedOut
from core.domain.types import Hit, Ranking
from core.evaluation.answers import Given, correct, words
from core.evaluation.calibration import choose, reliability
from core.evaluation.dataset import LabelledSet, Question
from core.steps import Memo, Steps
from core.steps.generate import DEFAULT_SHOWN_PASSAGES
from core.steps.grade import PROMPTS
from core.steps.trace import Trace

if TYPE_CHECKING:
    from core.corpus.index import Corpus
    from core.engine.engine import Engine

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


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """The material of a case: a question, the hits of hybrid search, and its relevant passages."""

    do: Steps
    question: Question
    hits: Ranking
    relevant: Ranking
    labelled: frozenset[str]  # ids of all passages with a grade above 0, relevant or not

    def without(self) -> Ranking:
        """Return the first hits that nobody labelled, as a search that found nothing of use."""
        return tuple(hit for hit in self.hits if hit.passage.id not in self.labelled)[:DEFAULT_SHOWN_PASSAGES]


Score = tuple[float | None, bool]  # the model's, None without one; whether Yes is right


def _scored(decision: Decision, subject: Subject, withheld: bool) -> Score | None:
    """Ask the model one question; None if this one makes no case. `withheld`: what is labelled is left out,
    so that No is the right reply.
    """
    do, question = subject.do, subject.question
    text = question.query.text
    if decision == "look up":  # asked as it is: questions that need no documents are known by their kind
        return do.worth_searching(text, 0.5).probability, question.mode != NO_LOOK_UP
    if decision == "closed-book answer":
        if not question.answers or question.query.history:
            return None
        said = do.answer_unsearched(text)
        right = correct(Given(said.text, abstained=said.unknown), question.answers, question.answerable)
        return None if said.unknown or right is None else (said.mean, right)
    shown = subject.without() if withheld else subject.relevant[:DEFAULT_SHOWN_PASSAGES]
    if decision == "evidence":  # all relevant passages among those shown, or none; a part of them is neither
        shown = subject.without() if withheld else subject.hits[:DEFAULT_SHOWN_PASSAGES]
        wanted = {hit.passage.id for hit in subject.relevant}
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
    if not subject.relevant or not 1 <= size <= CLAIM_WORDS or words(claim) in (["yes"], ["no"]):
        return None
    return do.check_claim(text, claim, shown, 0.5).probability, not withheld


SEARCHES = frozenset({"evidence", "passage relevance", "claim support"})  # those that look at passages


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
            scored = _scored(decision, _subject(engine, labelled, corpus, question, decision), withheld)
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


def _subject(
    engine: Engine,
    labelled: LabelledSet,
    corpus: Corpus,
    question: Question,
    decision: Decision,
) -> Subject:
    """Return the question with what is known of it; nothing is searched for a decision that looks at no
    passage.
    """
    do = Steps(engine.context(corpus, None, Trace(), Memo(), threading.Event()))
    if decision not in SEARCHES:
        return Subject(do, question, (), (), frozenset())
    text = question.query.text
    hits = do.rrf((do.sparse(text), do.dense(text)))[:SEARCHED]
    grades = labelled.qrels.get(question.id, {})
    known = corpus.by_ids(list(grades))
    best = sorted(
        (id for id, grade in grades.items() if grade >= labelled.relevant_from),
        key=lambda id: (-grades[id], id),
    )
    relevant = tuple(Hit(known[id], 1.0 / rank) for rank, id in enumerate(best, 1) if id in known)
    return Subject(do, question, hits, relevant, frozenset(id for id, grade in grades.items() if grade > 0))


def calibrate(decision: Decision, model: str, cases: Sequence[Case]) -> DecisionCalibration:
    """Return what `decision` is worth with `model`, by `cases` of one or more sets. Raises BadInput for fewer
    than `LEAST` cases, or `LEAST_OF_A_KIND` of either kind.

    The threshold is that of the highest balanced accuracy over all cases. Each set is also judged by the
    threshold that the other sets alone would give: how well it carries over to documents it never saw.
    """
    scores, positive = [case.score for case in cases], [case.positive for case in cases]
    if len(cases) < LEAST or not LEAST_OF_A_KIND <= sum(positive) <= len(cases) - LEAST_OF_A_KIND:
        raise BadInput(
            f"{decision}: {len(cases)} cases, Yes is right for {sum(positive)} of them; a calibration needs"
            f" at least {LEAST}, and {LEAST_OF_A_KIND} of either kind: give more sets, or more --queries"
        )
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
