"""Retrieval evaluators, and acting on their grades: looking beyond the corpus, or saying what is missing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.backends.evaluators import FEATURES, LIGHTWEIGHT, Evaluator, Which, logistic
from core.backends.prompting.citations import Draft
from core.backends.web import HOW
from core.domain.errors import BadInput, ModelFailed, Unavailable, WebFailed
from core.domain.needs import Need
from core.domain.outputs import Grading, Pass, PassageGrade, WebGrades
from core.domain.parameters import carry
from core.domain.text import searchable
from core.domain.types import Ranking
from core.steps.decisions import Decided
from core.steps.grade import verdict
from core.steps.rerank import RerankSteps
from core.steps.step import step
from core.steps.transform import Transform

__all__ = ["BACKGROUND", "Evaluate", "Signals", "Which", "in_words", "thresholds"]

BACKGROUND = 15  # passages whose mean a hit is held against, itself included
Signals = tuple[tuple[float, ...], ...]  # for each passage the values of FEATURES


class Evaluate(RerankSteps):
    """Grading what was found, and deciding on it."""

    def evaluate(
        self, text: str, hits: Ranking, others: Ranking, evaluator: Which, low: float, high: float
    ) -> Grading:
        """Grade each hit with `evaluator` and choose CRAG's action by two thresholds; see `edges`.

        `others` are what the search found next, against which the lightweight one holds the hits. Raises
        Unavailable with the way to get what is missing, ModelFailed when nothing could be graded.
        """
        self._open_evaluator(evaluator, hits)
        if evaluator == "llm":
            return self.judge(text, hits, low, high)
        if evaluator == "cross-encoder":
            return self._evaluate_pairs(text, hits, low, high)
        return self._evaluate_signals(text, hits, _background(hits, others), low, high)

    def evaluate_web(
        self, text: str, hits: Ranking, others: Ranking, evaluator: Which, high: float
    ) -> WebGrades:
        """Grade web results as `evaluate` grades the corpus' passages: with the same evaluator and the same
        upper threshold. `others` are passages of the corpus, so that the lightweight one holds both against
        much the same.
        """
        self._open_evaluator(evaluator, hits)
        background = _background(hits, others) if evaluator == LIGHTWEIGHT else ()
        return self._grade_web(text, hits, background, evaluator, high)

    @step("EVALUATOR", "grade the web results", returns=WebGrades)
    def _grade_web(
        self, text: str, hits: Ranking, others: Ranking, evaluator: Which, high: float
    ) -> WebGrades:
        """Grade each web result. A grade that fails is noted on its result and does not fail the step: the
        passages found stand without web results.

        The lightweight evaluator counts the BM25 score of a page outside the index as 0, so it grades web
        results too low rather than too high.
        """
        self.span.output = WebGrades((), float(high), evaluator)  # should it not come to an end
        try:
            if evaluator == LIGHTWEIGHT:
                grades = self._signal_grades(text, hits, others)
            else:
                grades = (self._model_grades if evaluator == "llm" else self._pair_grades)(text, hits)
        except ModelFailed as error:
            grades = [PassageGrade(hit.passage.id, None, "error", str(error)) for hit in hits]
        self.span.output = graded = WebGrades(tuple(grades), float(high), evaluator)
        return graded

    def edges(self, evaluator: Which, low: float, high: float, margin: float) -> tuple[float, float]:
        """Return the thresholds to apply, each traced to the parameter that set it; see `thresholds`."""
        used = thresholds(self.context.evaluator(evaluator), low, high, margin)
        return carry(used[0], low), carry(used[1], high)

    def _open_evaluator(self, evaluator: Which, hits: Ranking) -> None:
        """Load the evaluator's models outside the route's clock, as they are loaded once for all
        questions.
        """
        if evaluator == "cross-encoder":
            with self.context.trace.aside(), suppress(Unavailable):  # the step says what is not there
                self.context.rerankers.cross_encoder()
        elif evaluator == LIGHTWEIGHT and hits:
            with self.context.trace.aside():
                self.context.rerankers.blend()
                with suppress(Unavailable):
                    self.context.prepared(Need.TOKENS)

    @step("EVALUATOR", "grade and decide", returns=Grading)
    def _evaluate_signals(
        self, text: str, hits: Ranking, others: Ranking, low: float, high: float
    ) -> Grading:
        """Grade by a logistic regression over `signals`, without a model call.

        Source: Yan et al. 2024, arXiv:2401.15884, section 4.3, whose lightweight evaluator is a trained T5.
        """
        return verdict(self._signal_grades(text, hits, others), low, high, LIGHTWEIGHT)

    def _signal_grades(self, text: str, hits: Ranking, others: Ranking) -> list[PassageGrade]:
        """Within a step: its span names the evaluator."""
        known = self.context.evaluator(LIGHTWEIGHT)
        inputs = self.span.attributes
        inputs["evaluator"] = f"lightweight, {known.source}"
        if known.embedder != (embedder := self.context.corpus.info.embedder):
            self.note(f"trained with vectors of {known.embedder}; this corpus has those of {embedder}")
        values = self.signals(text, hits, others)
        grades = known.grades(values) if hits else ()
        return [
            PassageGrade(hit.passage.id, float(grade), "scored", in_words(row))
            for hit, grade, row in zip(hits, grades, values, strict=True)
        ]

    @step("EVALUATOR", "measure the passages", returns=Signals)
    def signals(self, text: str, hits: Ranking, others: Ranking) -> Signals:
        """Compute the search signals of how well each hit fits `text`, in the order of FEATURES.

        "cosine": of the embeddings. "bm25": the score divided by the sum of the question's IDF, its upper
        bound, so it is comparable between corpora of any size. "words found": the share of that sum whose
        words occur in the passage. "maxsim": over token vectors, each question word weighted by its IDF.
        "above others": minus the mean over `hits` and `others`, as levels differ between questions and
        corpora; see Zhou & Croft 2007, "Query Performance Prediction in Web Search Environments" (weighted
        information gain). "log of words": log of 1 + the number of question terms.
        """
        if not hits:
            return ()
        corpus, pool = self.context.corpus, hits + others
        cosine = self._cosines(pool, self.embed(text))
        found = self._blended(text, pool, self.rows_of(pool), cosine)
        maxsim = found.raw["maxsim"]
        asked = corpus.terms(text)
        total = sum(weight for _, weight in asked) or 1.0
        texts = (
            {term for term, _ in corpus.terms(searchable(hit.passage.title, hit.passage.text))}
            for hit in pool
        )
        shares = [sum(weight for term, weight in asked if term in have) / total for have in texts]
        bm25, words = found.raw["bm25"] / total, np.full(len(pool), math.log1p(len(asked)))
        above = (cosine - cosine.mean(), maxsim - maxsim.mean())
        rows = np.column_stack([cosine, bm25, shares, maxsim, *above, words])[: len(hits)].tolist()
        values = tuple(tuple(round(float(value), 6) for value in row) for row in rows)
        named = [dict(zip(FEATURES, row, strict=True)) for row in values]
        self.span.output = Pass([{"id": hit.passage.id, **row} for hit, row in zip(hits, named, strict=True)])
        return values

    @step("EVALUATOR", "grade and decide", returns=Grading)
    def _evaluate_pairs(self, text: str, hits: Ranking, low: float, high: float) -> Grading:
        """Grade with the configured cross-encoder's score through the logistic function.

        Source: Nogueira & Cho 2019, arXiv:1901.04085, section 3: it is trained as that probability.
        """
        return verdict(self._pair_grades(text, hits), low, high, "cross-encoder")

    def _pair_grades(self, text: str, hits: Ranking) -> list[PassageGrade]:
        """Within a step: its span names the cross-encoder."""
        reranker = self.context.rerankers.cross_encoder()
        self.span.attributes["evaluator"] = reranker.name
        passages = [hit.passage for hit in hits]
        scores: Sequence[float] = []
        if hits:
            with self.context.at_most(self.context.llm_timeout_s) as timeout:
                scores = reranker.rerank(text, passages, timeout=timeout, cancel=self.context.cancel)
        return [
            PassageGrade(hit.passage.id, grade, "scored", f"score {score:.2f}")
            for hit, score, grade in zip(hits, scores, logistic(np.array(scores)).tolist(), strict=True)
        ]


def _background(hits: Ranking, others: Ranking) -> Ranking:
    """As many of `others` as the lightweight evaluator holds `hits` against."""
    return others[: max(0, BACKGROUND - len(hits))]


def thresholds(known: Evaluator, low: float, high: float, margin: float = 0.0) -> tuple[float, float]:
    """Return the lower and upper threshold. A threshold of 0 is replaced by the calibrated one, moved outward
    by `margin` and past the other threshold if necessary. Raises BadInput if the given lower one exceeds the
    upper one.
    """
    if low and high and low > high:
        raise BadInput(f"the lower threshold {low:g} is above the upper one {high:g}")
    wide_low, wide_high = max(0.0, known.low - margin), min(1.0, known.high + margin)
    if low:
        return low, high or max(wide_high, low)
    return min(wide_low, high or wide_high), high or wide_high


def in_words(values: Sequence[float]) -> str:
    """List the features of one passage with their values."""
    return ", ".join(f"{name} {value:.2f}" for name, value in zip(FEATURES, values, strict=True))


Decision = Literal[
    "use what was found",
    "keep what was found",
    "add the web",
    "replace it by the web",
    "go on without the web",
    "knowledge gap",
]
NO_WEB = f"no web search is set up; to have one, {HOW}"
MAX_QUOTED_CHARS = 300  # characters of a question that a text repeats


@dataclass(frozen=True, slots=True)
class Act(Decided):
    """The action that follows a verdict."""

    decision: Decision
    earned: int = 0  # number of web results graded high enough to precede the corpus' passages

    FIRES = (
        ("knowledge gap", "go on without the web"),
        ("replace it by the web", "keep what was found"),
        ("add the web", "keep what was found"),
    )


class Correct(Evaluate, Transform):
    """Corrective actions."""

    def beyond(self, text: str) -> tuple[Ranking, str]:
        """Search the web for keywords of `text`. Return the hits, and the reason if there are none.

        A failed web search is such a reason and does not end the route; its step shows the error.
        """
        if self.context.web is None:
            return (), NO_WEB
        try:
            found = self.web(self.web_keywords(text))
        except WebFailed as error:
            return (), f"the web search failed: {error}"
        return found, "" if found else "the web search found nothing"

    @step("CHAIN", "act on the grades", returns=Act)
    def act(self, verdict: Grading, lack: str = "", web: WebGrades | None = None) -> Act:
        """Choose CRAG's action; `lack` explains why there is no web result.

        Source: Yan et al. 2024, arXiv:2401.15884, section 4.3 and algorithm 1. Two actions are added.
        "Knowledge gap": in the paper a web search always finds something. "Keep what was found": the paper
        takes web results ungraded, instead of the passages or in addition to them. Here a web result must
        reach the grade required of a passage, as an audit of this decision showed that ungraded pages only
        made rankings worse.
        """
        return act(verdict, lack, () if web is None else web.grades)

    @step("GUARDRAIL", "say what is missing", returns=Draft)
    def knowledge_gap(self, text: str, verdict: Grading, lack: str) -> Draft:
        """Return the answer for a knowledge gap: the question searched, the best grade found, and why there
        is nothing else.
        """
        known = [grade.grade for grade in verdict.grades if grade.grade is not None]
        best = (
            f"The best of {len(known)} graded passages has {max(known):.2f}, and {verdict.low:.2f} is needed"
            if known
            else "There was no passage to grade"
        )
        asked = text if len(text) <= MAX_QUOTED_CHARS else f"{text[:MAX_QUOTED_CHARS]}…"
        said = f"Nothing was found that answers “{asked}”. {best}; {lack}."
        return Draft(said, abstained=True)


def act(verdict: Grading, lack: str, web: Sequence[PassageGrade] | None) -> Act:
    """Choose the action for a verdict. `lack` explains why there is no web result; `web` holds the grades of
    the web results. With `web` None, no search was made and a trusted page is assumed.
    """
    if verdict.decision == "correct":
        return Act("use what was found", verdict.why)
    sure = verdict.decision == "incorrect"
    if lack:
        return Act("knowledge gap" if sure else "go on without the web", f"{verdict.why}; {lack}")
    count, told = 1, ""
    if web is not None:
        count = earned(web, verdict)
        told = f"; {count} of {len(web)} web results reach {verdict.high:.3f} and more than every passage"
    found: Decision = (
        "keep what was found" if not count else "replace it by the web" if sure else "add the web"
    )
    return Act(found, verdict.why + told, count)


def earned(web: Iterable[PassageGrade], verdict: Grading) -> int:
    """Count the web results that may precede the corpus' passages: their grade reaches the upper threshold
    and exceeds that of every passage of the corpus.
    """
    best = max((one.grade for one in verdict.grades if one.grade is not None), default=-math.inf)
    return sum(one.grade is not None and one.grade >= verdict.high and one.grade > best for one in web)
