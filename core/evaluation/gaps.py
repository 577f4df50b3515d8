"""Questions that no route answers: gaps, which the corpus does not answer, and misses, which it does.

Without labels, "answers" is a test on two signs of evidence for a question: the highest cosine of a passage,
and the highest share of the question's information (IDF) that a passage contains. The test is calibrated on
questions whose evidence is known, once with it and once with its documents left out. A question is a gap if
its evidence is weaker than that of nine in ten questions that the corpus answers (conformal prediction: Vovk,
Gammerman and Shafer 2005, "Algorithmic learning in a random world").
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Literal

import numpy as np

from core.backends.prompting import citations
from core.corpus.corpus import Corpus
from core.domain.errors import BadInput, Cancelled
from core.domain.types import Passage
from core.engine.engine import Engine
from core.evaluation import runner
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.outcome import Outcomes
from core.evaluation.statistics import Table, auc
from core.steps import Steps

ANSWERED_BY = 5  # passages of a ranking that people look at
ALARMS = 0.1  # share of answerable questions that may be called gaps
LEAST = 20  # questions to calibrate on; fewer say nothing
MOST = 200  # of them
WORDS = (6, 30)  # of a sentence that stands for a question
ALIKE = 0.5  # cosine of two questions of one cluster
TELLS = 0.7  # AUC from which the test is worth reading
Kind = Literal["answered", "miss", "gap"]
Progress = Callable[[str, int, int], None]  # (what is done, how many, of how many)


@dataclass(frozen=True, slots=True)
class EvidenceTest:
    """The calibrated test whether passages answer a question."""

    # the questions it was calibrated on
    source: Literal["labelled questions", "sentences of the corpus"]
    questions: int
    # of questions with their documents against the same without, cross-validated
    auc: float
    # below this score a question is a gap
    threshold: float
    # share of questions without their documents that are called gaps
    caught: float
    # share of the gaps found that are gaps, if every second question is one
    precision: float
    # of the logistic model: weights of cosine, coverage and their largest sum, then the constant
    weights: tuple[float, float, float, float]

    def score(self, signs: Table) -> float:
        """Return the log-odds that passages with these signs, shape (n, 2), answer the question."""
        return float(_features(signs) @ np.array(self.weights[:3]) + self.weights[3])


@dataclass(frozen=True, slots=True)
class QuestionState:
    """The result for one question."""

    id: str
    text: str
    kind: Kind
    # how it was decided
    by: Literal["labels", "test"]
    # score of the best evidence anywhere
    score: float
    # the best passage, and its rank for each route, None if a route does not return it
    passage: str
    title: str
    ranks: Mapping[str, int | None]


def find(
    engine: Engine,
    corpus: Corpus,
    labelled: LabelledSet,
    routes: Sequence[str],
    calibration: LabelledSet | None = None,
    *,
    progress: Progress = lambda _what, _done, _of: None,
    cancel: threading.Event | None = None,
) -> dict[str, Any]:
    """Return the questions of `labelled` by kind, their clusters, and the test, as JSON values.

    `calibration`: labelled questions over the corpus, if it has some. Raises BadInput for a corpus too small
    to calibrate on, and Cancelled.
    """
    cancel = cancel or threading.Event()
    evidence = EvidenceSigns(engine, corpus, cancel)
    test = calibrate(evidence, calibration, progress)
    plan = runner.Plan(corpus.name, tuple(routes))
    outcomes, whole = runner.run(
        engine,
        labelled,
        plan,
        ended=cancel.is_set,
        progress=lambda done, of: progress("ask questions", done, of),
    )
    if not whole:
        raise Cancelled("stopped by the user")
    states = [_state(evidence, test, labelled, one, outcomes) for one in labelled.questions]
    said = []
    if test.auc < TELLS:
        said.append(f"the test hardly tells gaps from misses here (AUC {test.auc:.2f}): read gaps as hints")
    if failed := {route for by in outcomes.values() for route, one in by.items() if one.status != "ok"}:
        said.append(f"{', '.join(sorted(failed))} failed on some questions, and counts there as no answer")
    return {
        "corpus": corpus.name,
        "routes": list(routes),
        "depth": ANSWERED_BY,
        "test": asdict(test),
        "questions": len(states),
        "answered": sum(one.kind == "answered" for one in states),
        "misses": [asdict(one) for one in states if one.kind == "miss"],
        "gaps": sorted(
            (asdict(one) for one in states if one.kind == "gap"), key=lambda one: float(one["score"])
        ),
        "clusters": clusters(evidence, states),
        "warnings": said,
    }


class EvidenceSigns:
    """Signs that passages of a corpus answer a question."""

    def __init__(self, engine: Engine, corpus: Corpus, cancel: threading.Event) -> None:
        self.corpus = corpus
        self._engine, self._cancel = engine, cancel

    def steps(self) -> Steps:
        """Return steps over the corpus. Raises Cancelled after a stop."""
        if self._cancel.is_set():
            raise Cancelled("stopped by the user")
        return self._engine.steps(self.corpus, self._cancel)

    def wide(self, text: str) -> list[Passage]:
        """Return what BM25 and dense search find at their full depth."""
        do = self.steps()
        found = {hit.passage.id: hit.passage for hits in (do.sparse(text), do.dense(text)) for hit in hits}
        return list(found.values())

    def signs(self, text: str, passages: Sequence[Passage], replaced: str | None = None) -> Table:
        """Return the cosine and the covered share of the question for each passage, shape (n, 2).

        `replaced`: the text of the first passage instead of its own.
        """
        if not passages:
            return np.zeros((0, 2))
        do = self.steps()
        vectors = np.array(self.corpus.vectors([self.corpus.row(one.id) for one in passages]))
        texts = [f"{one.title} {one.text}" for one in passages]
        if replaced is not None:
            texts[0] = f"{passages[0].title} {replaced}"
            vectors[0] = do.embed(texts[0])
        weights = dict(self.corpus.terms(text))
        total = sum(weights.values()) or 1.0
        analyzer = self.corpus.analyzer.questions
        covered = [sum(weights.get(term, 0.0) for term in set(analyzer.terms(one))) / total for one in texts]
        return np.column_stack([vectors @ do.embed(text), covered])


def calibrate(evidence: EvidenceSigns, labelled: LabelledSet | None, progress: Progress) -> EvidenceTest:
    """Calibrate on labelled questions, or below `LEAST` of them on sentences taken out of passages."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict

    usable = [one for one in labelled.questions if labelled.labelled(one.id)] if labelled is not None else []
    if labelled is not None and len(usable) >= LEAST:
        source: Literal["labelled questions", "sentences of the corpus"] = "labelled questions"
        drawn = random.Random(0).sample(usable, min(MOST, len(usable)))
        items: list[tuple[str, list[str], Passage | None]] = [
            (one.query.text, labelled.relevant(one.id), None) for one in drawn
        ]
    else:
        source = "sentences of the corpus"
        items = [(text, [own.id], own) for text, own in known_items(evidence.corpus)]
    pairs = []
    for done, (text, relevant, own) in enumerate(items):
        progress("calibrate", done, len(items))
        found = evidence.wide(text)
        documents = {one.doc_id for one in evidence.corpus.by_ids(relevant).values()}
        others = [one for one in found if one.doc_id not in documents]
        # A sentence is taken out of its passage.
        here = (found,) if own is None else ([own, *others], own.text.replace(text, " "))
        pairs.append((evidence.signs(text, *here), evidence.signs(text, others)))
    if len(pairs) < LEAST:
        name = evidence.corpus.name
        raise BadInput(f"{name}: {len(pairs)} questions or sentences to calibrate on; {LEAST} are needed")
    rows = np.array([_features(signs) for pair in pairs for signs in pair])
    there = np.tile([1, 0], len(pairs))
    model = LogisticRegression(C=10, max_iter=1000)
    groups = np.repeat(np.arange(len(pairs)), 2)
    scores = cross_val_predict(
        model, rows, there, groups=groups, cv=GroupKFold(5), method="decision_function"
    )
    fitted = model.fit(rows, there)
    low = np.sort(scores[there == 1])
    threshold = float(low[max(0, int(ALARMS * (len(low) + 1)) - 1)])
    caught = float(np.mean(scores[there == 0] < threshold))
    wrong = float(np.mean(low < threshold))
    return EvidenceTest(
        source,
        len(pairs),
        auc(scores.tolist(), (there == 1).tolist()) or 0.5,
        threshold,
        caught,
        caught / (caught + wrong) if caught else 0.0,
        (*map(float, fitted.coef_[0]), float(fitted.intercept_[0])),  # type: ignore[arg-type]
    )


def known_items(corpus: Corpus, most: int = MOST) -> list[tuple[str, Passage]]:
    """Draw up to `most` sentences to ask, each with its passage, from passages that have more than it."""
    rows = random.Random(0).sample(range(corpus.size), min(corpus.size, 2 * most))
    found = []
    for passage in corpus.passages(rows):
        parts = citations.sentences(passage.text)
        usable = [part for part in parts if WORDS[0] <= len(part.split()) <= WORDS[1]]
        if len(parts) > 1 and usable:
            found.append((random.Random(passage.id).choice(usable), passage))
    return found[:most]


def clusters(evidence: EvidenceSigns, states: Sequence[QuestionState]) -> list[dict[str, Any]]:
    """Return gaps and misses by topic, the largest cluster first, with the "terms" that at least half of its
    questions share, and the document to write, or the route to ship.
    """
    from sklearn.cluster import AgglomerativeClustering

    found = []
    for kind in ("gap", "miss"):
        some = [one for one in states if one.kind == kind]
        labels = [0] * len(some)
        if len(some) > 1:
            do = evidence.steps()
            vectors = np.array([do.embed(one.text) for one in some])
            grouped = AgglomerativeClustering(
                n_clusters=None, metric="cosine", linkage="average", distance_threshold=1 - ALIKE
            )
            labels = grouped.fit_predict(vectors).tolist()
        for label in sorted(set(labels)):
            within = [one for one, own in zip(some, labels, strict=True) if own == label]
            weights: dict[str, float] = {}
            counts: Counter[str] = Counter()
            for one in within:
                own_terms = dict(evidence.corpus.terms(one.text))
                weights |= own_terms
                counts.update(own_terms.keys())
            shared = [term for term, count in counts.items() if 2 * count >= len(within)]
            terms = sorted(shared, key=lambda term: -counts[term] * weights[term])[:3]
            advice = _advice(kind, terms, within)
            ids = [one.id for one in within]
            found.append({"kind": kind, "questions": ids, "terms": terms, "advice": advice})
    return sorted(found, key=lambda one: -len(one["questions"]))


def _features(signs: Table) -> Table:
    """Return the highest cosine, coverage and sum of both, shape (3,); zeros without passages."""
    if not len(signs):
        return np.zeros(3)
    return np.array([signs[:, 0].max(), signs[:, 1].max(), signs.sum(axis=1).max()])


def _state(
    evidence: EvidenceSigns, test: EvidenceTest, labelled: LabelledSet, question: Question, outcomes: Outcomes
) -> QuestionState:
    """Decide one question, by its labels if it has some."""
    text = question.query.text
    passages = evidence.wide(text)
    ended = {route: one for route, one in outcomes[question.id].items() if one.status == "ok"}
    rankings = {route: [id for id, _ in one.hits] for route, one in ended.items()}
    shown = {id for ids in rankings.values() for id in ids[:ANSWERED_BY]}
    signs = evidence.signs(text, passages)
    score = test.score(signs)
    at = int(np.argmax(signs.sum(axis=1))) if len(passages) else -1
    by: Literal["labels", "test"] = "test"
    if labelled.labelled(question.id):
        by = "labels"
        relevant = labelled.relevant(question.id)
        kind: Kind = "answered" if shown & set(relevant) else "miss"
        best = evidence.corpus.by_ids(relevant[:1]).get(relevant[0])
    else:
        best = passages[at] if passages else None
        seen = [one.id in shown for one in passages]
        if question.answerable is False:
            by, kind = "labels", "gap"
        elif score < test.threshold:
            kind = "gap"
        else:
            kind = "answered" if any(seen) and test.score(signs[seen]) >= test.threshold else "miss"
    id, title = (best.id, best.title) if best is not None else ("", "")
    ranks = {route: ids.index(id) + 1 if id in ids else None for route, ids in rankings.items()}
    return QuestionState(question.id, text, kind, by, score, id, title, ranks)


def _advice(kind: str, terms: Sequence[str], states: Sequence[QuestionState]) -> str:
    """Name the document to write, or the route to ship."""
    if kind == "gap":
        nearest = Counter(one.title or one.passage for one in states if one.passage).most_common(1)
        near = f"; nearest today: {nearest[0][0]}" if nearest else ""
        return f"write a document about {', '.join(terms) or states[0].text}{near}"
    routes = {route for one in states for route in one.ranks}
    ranks = {route: [rank for one in states if (rank := one.ranks.get(route))] for route in routes}
    placed = [(-len(row), fmean(row), route) for route, row in ranks.items() if row]
    if not placed:
        return "no route returns the passage that answers"
    count, mean, best = min(placed)
    how = f"{-count} of {len(states)}, at rank {mean:.1f} on average"
    return f"{best} comes nearest: it returns the passage for {how}"
