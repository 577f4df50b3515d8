"""Steps that judge what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model

from core.backends.calibrations import SIGNAL, DecisionCalibration, subject
from core.backends.calibrations import Decision as Name
from core.backends.prompting import prompts
from core.backends.prompting.prompts import CLAIM, CLOSED_ANSWER, EVIDENCE, GRADE, JUDGE, LOOK_UP, RELEVANT
from core.backends.prompting.replies import Form, read_form, strict_schema
from core.backends.prompting.untrusted import between, in_line, quoted
from core.domain.errors import BadInput, ModelFailed
from core.domain.outputs import Grading, PassageGrade, Rerank, Reranked, WebGrades
from core.domain.program import COMMAND
from core.domain.relevance import NuggetSupport
from core.domain.types import Hit, Passage, Ranking
from core.steps.base import StepBase, YesOrNo
from core.steps.decisions import Decided
from core.steps.step import step

PROMPTS: Mapping[Name, str] = {  # a calibration holds for the prompt it was made with
    "evidence": EVIDENCE.name,
    "passage relevance": RELEVANT.name,
    "claim support": CLAIM.name,
    "look up": LOOK_UP.name,
    "closed-book answer": CLOSED_ANSWER.name,
}
CHECKED = "check the calibration"  # the step's name
State = Literal["calibrated", "no signal", "not calibrated"]


@dataclass(frozen=True, slots=True)
class DecisionWorth(Decided):
    """The reliability of a decision with the current model, and its threshold: the one given, else the
    calibrated one, else the fallback.
    """

    decision: State
    about: Name  # the decision
    model: str
    auc: float | None  # area under the ROC curve in the calibration; None without one
    cut: float  # the threshold to apply


def worth(about: Name, model: str, found: DecisionCalibration | None) -> tuple[State, str]:
    """Return whether the decision `about` is calibrated for `model`, and a sentence that explains it."""
    if found is None:
        why = f"“{about}” was not calibrated for {model}: its threshold is a default"
        return "not calibrated", f"{why}; run {COMMAND} calibrate"
    if found.prompt != PROMPTS[about]:
        why = f"“{about}” was calibrated for prompt {found.prompt}, not {PROMPTS[about]}"
        return "not calibrated", why
    if not found.signal:
        why = f"“{about}” carries no signal: {found.in_words()} is below {SIGNAL:g}; expect no gain from it"
        return "no signal", why
    return "calibrated", f"“{about}”: {found.in_words()}"


Action = Literal["correct", "ambiguous", "incorrect"]


Fact = Annotated[str, Field(min_length=1, max_length=300)]


class ProposedNuggets(BaseModel):
    """The reply to NUGGETS: an answer without a vital fact is incomplete, others are good to have."""

    model_config = ConfigDict(extra="forbid")
    vital: list[Fact] = Field(max_length=8)
    okay: list[Fact] = Field(max_length=8)


class Judge(StepBase):
    """Grading passages and deciding on the grades."""

    @step("EVALUATOR", "grade passage", returns=PassageGrade)
    def grade(self, text: str, passage: Passage) -> PassageGrade:
        """Grade a passage by the probability of Yes against No at the first token, or by the word alone.

        Source: Nogueira et al. 2020, arXiv:2003.06713, section 3 (the word "true" against "false").
        """
        shown = between(1, passage.title, passage.text)
        return _scored(passage, self._yes(GRADE, passage=shown, question=text))

    @step("EVALUATOR", "judge relevance by guidelines", returns=PassageGrade)
    def relevance(self, text: str, passage: Passage, policy: str, relevant_from: int) -> PassageGrade:
        """Grade like `grade`, but ask whether the passage is relevant by the annotators' guidelines,
        `policy`.
        """
        shown = between(1, passage.title, passage.text)
        least = str(relevant_from)
        found = self._yes(JUDGE, policy=policy, relevant_from=least, passage=shown, question=text)
        return _scored(passage, found)

    @step("EVALUATOR", "propose nuggets", returns=ProposedNuggets)
    def propose_nuggets(self, text: str, hits: Ranking, answer: str) -> ProposedNuggets:
        """Propose the facts that a good answer to `text` states, from passages and a reference answer ("" for
        none). Raises ModelFailed if the reply has another form twice.

        Source: Pradeep et al. 2025, "The Great Nugget Recall", arXiv:2504.15068 (nugget creation).
        """
        given = {"passages": quoted(hits), "question": text, "answer": in_line(answer) or "none"}
        return self._filled(prompts.NUGGETS, ProposedNuggets, max_tokens=600, **given)

    @step("EVALUATOR", "assign nuggets", returns=tuple[NuggetSupport, ...])
    def assign_nuggets(self, text: str, answer: str, nuggets: tuple[str, ...]) -> tuple[NuggetSupport, ...]:
        """Judge how far an answer contains each nugget. Raises ModelFailed if the reply has another form
        twice.

        Source: Pradeep et al. 2025, arXiv:2504.15068 (nugget assignment).
        """
        names: dict[str, Any] = {f"fact_{n}": (NuggetSupport, ...) for n in range(1, len(nuggets) + 1)}
        form: type[BaseModel] = create_model("Assigned", __config__=ConfigDict(extra="forbid"), **names)
        facts = "\n".join(f"{n}. {in_line(one)}" for n, one in enumerate(nuggets, 1))
        given = {"passages": between(1, "", answer), "question": text, "nuggets": facts}
        limits = {"max_tokens": 20 + 16 * len(nuggets), "reuse_prefix": True}
        found = self._filled(prompts.ASSIGN_NUGGETS, form, **limits, **given)
        return tuple(getattr(found, name) for name in names)

    def _filled(self, prompt: prompts.Prompt, form: type[Form], **given: Any) -> Form:
        """Return the form as the model filled it. Raises ModelFailed if it did not twice."""
        found = self._read(prompt, partial(read_form, form), schema=strict_schema(form), **given)
        if isinstance(found, str):
            raise ModelFailed(f"the model's reply cannot be used: {found}")
        return found

    @step("EVALUATOR", "grade and decide", returns=Grading)
    def judge(self, text: str, hits: Ranking, low: float, high: float) -> Grading:
        """Grade each hit and choose CRAG's action.

        Source: Yan et al. 2024, "Corrective Retrieval Augmented Generation", arXiv:2401.15884, section 4.3. A
        grader's failure on a passage is noted on its grade; with no grade at all the step fails.
        """
        grades = self._model_grades(text, hits)
        if hits and all(grade.grade is None for grade in grades):
            raise ModelFailed(f"none of {len(hits)} passages could be graded: {grades[0].why}")
        return verdict(grades, low, high, "llm")

    def _model_grades(self, text: str, hits: Ranking) -> list[PassageGrade]:
        """See `grade`; the grader's failure on a passage is noted on its grade."""
        grades = []
        for hit in hits:
            try:
                grades.append(self.grade(text, hit.passage))
            except ModelFailed as error:
                grades.append(PassageGrade(hit.passage.id, None, "error", str(error)))
        return grades

    @step("RERANKER", "order by grade", returns=Ranking)
    def by_grade(self, hits: Ranking, verdict: Grading | WebGrades) -> Ranking:
        """Sort the hits by grade, best first; ungraded hits come last."""
        grades = {grade.id: grade for grade in verdict.grades}
        found = [(at, hit, grades[hit.passage.id]) for at, hit in enumerate(hits, 1)]
        best = sorted(found, key=lambda one: 1.0 if one[2].grade is None else -one[2].grade)
        moved = tuple(
            Reranked(hit.passage.id, at, hit.score, grade.grade, {}, grade.state, grade.why)
            for at, hit, grade in best
        )
        self.span.output = Rerank(verdict.evaluator, moved)
        return tuple(Hit(hit.passage, -1.0 if grade.grade is None else grade.grade) for _, hit, grade in best)

    @step("CHAIN", CHECKED, returns=DecisionWorth)
    def calibrated(self, about: Name, given: float, fallback: float) -> DecisionWorth:
        """Return the threshold of the decision `about`. If `given` is 0, the threshold calibrated for the
        current model applies; without a calibration, `fallback` does.
        """
        model = subject(self.context.llm)
        found = self.context.calibration(about)
        state, why = worth(about, model, found)
        known = found if state != "not calibrated" else None
        cut = given or (known.threshold if known is not None else fallback)
        return DecisionWorth(state, why, about, model, None if known is None else known.auc, cut)


def decide(grades: Sequence[PassageGrade], low: float, high: float) -> Action:
    """Return "correct" if any grade is at least `high`, "incorrect" if none reaches `low` or none exists,
    else "ambiguous". Raises BadInput if `low` exceeds `high`.
    """
    if low > high:
        raise BadInput(f"the lower threshold {low:g} is above the upper one {high:g}")
    known = [grade.grade for grade in grades if grade.grade is not None]
    if any(grade >= high for grade in known):
        return "correct"
    return "ambiguous" if any(grade >= low for grade in known) else "incorrect"


def verdict(grades: Sequence[PassageGrade], low: float, high: float, evaluator: str) -> Grading:
    """Apply `decide` and explain it with the best grade and the threshold."""
    decision = decide(grades, low, high)
    known = [grade.grade for grade in grades if grade.grade is not None]
    why = f"the best grade, {max(known):.3f}," if known else "there was nothing to grade, and no grade"
    why += f" is {decision}: from {high:.3f} what was found is trusted, below {low:.3f} it is not"
    if ungraded := len(grades) - len(known):
        why += f"; {ungraded} of {len(grades)} passages have no grade and count for neither"
    return Grading(tuple(grades), float(low), float(high), decision, why, get_args(Action), evaluator)


def _scored(passage: Passage, found: YesOrNo) -> PassageGrade:
    if found.by is None:
        return PassageGrade(passage.id, None, "not scored", found.why)
    return PassageGrade(passage.id, found.share, "scored", by=found.by)
