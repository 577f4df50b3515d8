"""Steps that grade what a search found on a scale, and search again with that in mind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, get_args

from core.backends.prompting.citations import abstains, sentences
from core.backends.prompting.prompts_corrective import CHECK, REFORMULATE, SCALE
from core.backends.prompting.replies import booleans, first_line
from core.backends.prompting.token_probabilities import DIGITS, odds
from core.backends.prompting.untrusted import between, in_line, quoted
from core.domain.errors import ModelFailed
from core.domain.outputs import Decision, Grading, PassageGrade, Rewrite, Round, Selection
from core.domain.types import Hit, Passage, Ranking
from core.steps.base import StepBase
from core.steps.decisions import Decided
from core.steps.generate import SHOWN
from core.steps.step import step
from core.steps.transform import wording

Next = Literal["enough", "try again", "stop"]
Reason = Literal["good enough", "no gain", "same question", "rounds used up", "nothing found", "budget spent"]
TOLD = 3  # passages that a reformulation is told of
EXCERPT = 200  # characters of each


@dataclass(frozen=True, slots=True)
class Reflection:
    """One round: what was searched with, its grades, and what follows. `low` and `high` are the threshold
    on the scale of `grade`; `gain` is the mean less that of the round before.
    """

    question: str
    grades: tuple[PassageGrade, ...]
    mean: float | None
    gain: float | None
    low: float
    high: float
    decision: Next
    reason: Reason | None
    why: str
    rule: Round

    def recorded(self) -> Grading:
        """The round as readers take it."""
        return Grading(
            self.grades, self.low, self.high, self.decision, self.why, get_args(Next), "llm", self.rule
        )


@dataclass(frozen=True, slots=True)
class AnswerCheck(Decided):
    """Whether each sentence of an answer is supported, and whether it answers the question."""

    sentences: tuple[tuple[str, bool], ...]
    relevant: bool | None
    decision: Literal["passed", "failed", "not checked"]
    why: str


class Reflect(StepBase):
    """Rounds of searching and grading."""

    @step("EVALUATOR", "grade passage from 1 to 5")
    def grade_on_scale(self, text: str, passage: Passage) -> PassageGrade:
        """The expected digit over the first token's probabilities, or the digit written where the endpoint
        gives none. A reply without a digit is no grade.

        Source: Liu et al. 2023, "G-Eval", arXiv:2303.16634, section 2.
        """
        answer = self._ask(
            SCALE, max_tokens=2, top_logprobs=10, logprobs_optional=True, reuse_prefix=True,
            passages=between(1, passage.title, passage.text), question=text,
        )  # fmt: skip
        found = odds(answer, DIGITS)
        if found is None:
            return PassageGrade(passage.id, None, "not scored", f"no digit from 1 to 5: {answer.text[:40]!r}")
        value = found.mean()
        return PassageGrade(passage.id, (value - 1) / 4, "scored", "", value, found.by)

    @step("EVALUATOR", "grade the round and decide")
    def reflect(
        self,
        text: str,
        searched: str,
        hits: Ranking,
        earlier: tuple[float | None, ...],
        threshold: float,
        gain: float,
        rounds: int,
    ) -> Reflection:
        """Grade `hits`, found by `searched`, on how well they answer `text`, side by side; see `next_round`.

        `earlier` are the means of the rounds before. A grader's failure on a passage is noted on its grade;
        with no grade at all the step fails.
        """
        grades = self.each(lambda hit: self._graded(text, hit.passage), hits)
        values = [grade.value for grade in grades if grade.value is not None]
        if hits and not values:
            raise ModelFailed(f"none of {len(hits)} passages could be graded: {grades[0].why}")
        mean = fmean(values) if values else None
        before = earlier[-1] if earlier else None
        more = None if mean is None or before is None else mean - before
        number = len(earlier) + 1
        decision, reason = next_round(mean, before, number, threshold, gain, rounds)
        edge = (threshold - 1) / 4
        why = _why(mean, more, threshold, gain) + (
            f": {reason}" if reason else f": round {number} of {rounds}, ask in another way"
        )
        rule = Round(searched, mean, before, number, float(threshold), float(gain), int(rounds), reason)
        return Reflection(searched, grades, mean, more, edge, edge, decision, reason, why, rule)

    def _graded(self, text: str, passage: Passage) -> PassageGrade:
        try:
            return self.grade_on_scale(text, passage)
        except ModelFailed as error:
            return PassageGrade(passage.id, None, "error", str(error))

    @step("LLM", "ask in another way")
    def reformulate(
        self, text: str, found: Ranking, grades: tuple[PassageGrade, ...], tried: tuple[str, ...]
    ) -> str:
        """Another question to search with, written with sight of what was found, why it was poor, and what
        was searched for before.

        Source: Madaan et al. 2023, "Self-Refine", arXiv:2303.17651, section 2 (feedback in the prompt), put
        to a question instead of a text.
        """
        shown = found[:TOLD]
        values = {grade.id: grade.value for grade in grades}
        told = [
            f"passage {number}: " + ("not graded" if value is None else f"{value:.1f} of 5")
            for number, value in enumerate((values.get(hit.passage.id) for hit in shown), 1)
        ]
        reply = self._ask(
            REFORMULATE, max_tokens=60, unusable=_no_question,
            passages=quoted(shown, {hit.passage.id: hit.passage.text[:EXCERPT] for hit in shown}),
            question=text, grades=", ".join(told), tried="\n".join(f"- {in_line(one)}" for one in tried),
        )  # fmt: skip
        other = first_line(reply.text)
        self.span.output = Rewrite(text, (other,), "question")
        return other

    @step("CHAIN", "is it another question")
    def another(self, question: str, tried: tuple[str, ...]) -> bool:
        """Whether `question` was not searched with before; case, punctuation and space make no other."""
        known = next((n for n, one in enumerate(tried, 1) if wording(one) == wording(question)), None)
        new = known is None and bool(wording(question))
        told = "is new" if new else f"is that of round {known}" if known else "has no words"
        decision, reason = ("try again", None) if new else ("stop", "same question")
        why = f"the question {told}"
        self.span.output = Decision(decision, ("try again", "stop"), why, details={"reason": reason})
        return new

    @step("CHAIN", "keep the best round")
    def best_round(
        self, found: tuple[Ranking, ...], rounds: tuple[Reflection, ...], reason: Reason
    ) -> Ranking:
        """The ranking of the round with the highest mean (the first of equals): what was graded by grade,
        then the rest in its old order. Without any graded round the last search as it is.
        """
        means = [one.mean for one in rounds]
        known = [(mean, -at) for at, mean in enumerate(means) if mean is not None]
        told = f"stopped: {reason}; mean grades: {', '.join(f'{mean:.2f}' for mean, _ in known) or 'none'}"
        if not known:
            last = len(found) - 1 if found else None
            self.span.output = Selection("round", at=last, decision="as found", reason=reason, why=told)
            return found[-1] if found else ()
        best = -max(known)[1]
        self.span.output = Selection(
            "round", at=best, decision=f"round {best + 1} of {len(rounds)}", reason=reason, why=told
        )
        return by_value(found[best], rounds[best].grades)

    @step("EVALUATOR", "check the answer")
    def check_answer(self, text: str, answer: str, hits: Ranking) -> AnswerCheck:
        """Whether the first of `hits`, those an answer is written from, support each sentence of `answer`,
        and whether it answers `text`, in one call. The answer stays as it is. A reply that cannot be used is
        no verdict.

        Source: Es et al. 2023, "RAGAS", arXiv:2309.15217, section 3 (faithfulness, answer relevance), both
        asked for at once and of sentences instead of statements.
        """
        parts = sentences(answer)
        if not parts or abstains(answer):
            return AnswerCheck((), None, "not checked", "there is no answer to check")
        schema = {
            "type": "object",
            "properties": {
                "supported": {
                    "type": "array", "items": {"type": "boolean"},
                    "minItems": len(parts), "maxItems": len(parts),
                },
                "relevant": {"type": "boolean"},
            },
            "required": ["supported", "relevant"],
            "additionalProperties": False,
        }  # fmt: skip

        def unusable(reply: str) -> str | None:
            return (
                None if booleans(reply, len(parts)) else f"not {len(parts)} verdicts and a relevance as JSON"
            )

        try:
            reply = self._ask(
                CHECK, max_tokens=20 + 4 * len(parts), schema=schema, reuse_prefix=True, unusable=unusable,
                passages=quoted(hits[:SHOWN]), question=text,
                sentences="\n".join(f"{n}. {in_line(part)}" for n, part in enumerate(parts, 1)),
            )  # fmt: skip
        except ModelFailed as error:
            return AnswerCheck((), None, "not checked", str(error))
        found = booleans(reply.text, len(parts))
        if found is None:
            return AnswerCheck((), None, "not checked", f"{unusable(reply.text)}: {reply.text[:80]!r}")
        supported, relevant = found
        why = (
            f"{sum(supported)} of {len(parts)} sentences supported, "
            f"the question {'answered' if relevant else 'not answered'}"
        )
        passed = all(supported) and relevant
        pairs = tuple(zip(parts, supported, strict=True))
        return AnswerCheck(pairs, relevant, "passed" if passed else "failed", why)


def next_round(
    mean: float | None, before: float | None, number: int, threshold: float, gain: float, rounds: int
) -> tuple[Next, Reason | None]:
    """What follows from round `number` of at most `rounds`: its mean grade, and that of the round before."""
    if mean is None:
        return "stop", "nothing found"
    if mean >= threshold:
        return "enough", "good enough"
    if before is not None and mean - before < gain:
        return "stop", "no gain"
    return ("stop", "rounds used up") if number >= rounds else ("try again", None)


def by_value(hits: Ranking, grades: Sequence[PassageGrade]) -> Ranking:
    """`hits` with those graded first, best grade first, then what could not be graded, then the rest; scores
    become 1 / rank, because grades and the search's scores do not compare.
    """
    places = {grade.id: (0, -grade.value) if grade.value is not None else (1, 0.0) for grade in grades}
    ordered = sorted(hits, key=lambda hit: places.get(hit.passage.id, (2, 0.0)))
    return tuple(Hit(hit.passage, 1 / rank) for rank, hit in enumerate(ordered, 1))


def _why(mean: float | None, more: float | None, threshold: float, gain: float) -> str:
    """The numbers behind a round's decision."""
    if mean is None:
        return "nothing was found to grade"
    above = mean >= threshold
    told = f"mean grade {mean:.2f} of 5 is {'at least' if above else 'below'} {threshold:g}"
    if more is None or above:
        return told
    return told + f"; gain {more:+.2f} is {'below' if more < gain else 'at least'} {gain:g}"


def _no_question(reply: str) -> str | None:
    return None if wording(first_line(reply)) else "an empty reply"
