"""Steps that answer without searching and estimate the model's confidence."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from core.backends.base import LLMRequest, TokenLogprob
from core.backends.llm.text import looks_refused
from core.backends.prompting.citations import abstains
from core.backends.prompting.prompts import CLOSED_ANSWER, CONFIDENCE
from core.domain.outputs import Written
from core.domain.types import Answer
from core.steps.base import StepBase
from core.steps.decisions import Decided
from core.steps.step import step

WRITTEN = 40  # tokens of the answer at most
How = Literal["mean", "minimum", "verbalised"]
METHOD_WORDS: dict[How, str] = {
    "mean": "mean token probability",
    "minimum": "least token probability",
    "verbalised": "stated confidence",
}
_NUMBER = re.compile(r"(?<![\d.,-])(\d{1,3}(?:\.\d+)?)(?![\d])")
_UNKNOWN = re.compile(
    r"\W*(?:unknown\b(?! to\b)|(?:I )?(?:do not|don['’]t|cannot|can['’]t) (?:know|say|tell)\b"
    r"|I(?:['’]m| am) not sure)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Unaided:
    """The model's answer without retrieval, with its token probabilities."""

    text: str
    mean: float | None  # geometric mean of the token probabilities; None if the endpoint reports none
    minimum: float | None  # smallest token probability; None likewise
    unknown: bool  # True if the model did not answer

    def recorded(self) -> Written:
        """Return the output stored on the span."""
        return Written(self.text, unaided=True)

    def over(self) -> Answer:
        """Return the route's answer with this text and no hits."""
        return Answer((), self.text, source=self)


@dataclass(frozen=True, slots=True)
class Confidence(Decided):
    """The decision whether to search."""

    decision: Literal["answer without retrieval", "retrieve"]
    confidence: float | None  # None if unavailable, which means no trust, or if there is no answer
    by: Literal["mean", "minimum", "verbalised", "no answer"]
    threshold: float

    SCORE = "confidence"
    FIRES = (("answer without retrieval", "retrieve"),)


def token_confidence(tokens: Sequence[TokenLogprob]) -> tuple[float, float] | None:
    """Return the geometric mean and minimum of the probabilities of the tokens with a letter or digit, or
    None if no such token exists.
    """
    told = [min(0.0, token.logprob) for token in tokens if any(char.isalnum() for char in token.token)]
    if not told:
        return None
    return math.exp(sum(told) / len(told)), math.exp(min(told))


def stated(reply: str) -> float | None:
    """Parse the confidence stated in a reply, 0 to 100, into 0 to 1; return None for no number or several."""
    numbers = {float(number) for number in _NUMBER.findall(reply.split("/100")[0])}
    return numbers.pop() / 100 if len(numbers) == 1 and max(numbers) <= 100 else None


def no_answer(text: str) -> bool:
    """Return True if a text is a refusal or says that the model does not know."""
    return not text.strip() or looks_refused(text) or abstains(text) or bool(_UNKNOWN.match(text))


class AskConfidence(StepBase):
    """The model's own knowledge, and how sure it is."""

    @step("LLM", "answer without searching", returns=Unaided)
    def answer_unsearched(self, text: str) -> Unaided:
        """One short answer; a refusal is not asked again, as it says what is to be known here."""
        request = LLMRequest(
            CLOSED_ANSWER.name, CLOSED_ANSWER.fill({"question": text}), WRITTEN, top_logprobs=1
        )
        reply = self._complete(request)
        sure = token_confidence(reply.logprobs)
        said = " ".join(reply.text.split())
        mean, minimum = sure or (None, None)
        return Unaided(said, mean, minimum, no_answer(said))

    @step("LLM", "ask how sure it is", returns=float, optional=True)
    def stated_confidence(self, text: str, answer: str) -> float | None:
        """Ask the model for the probability that `answer` is right, 0 to 1; return None, with a note, if it
        states none.

        Source: Tian et al. 2023, "Just Ask for Calibration", arXiv:2305.14975, section 3 (Verb. 2S top-1).
        """

        def wrong(reply: str) -> str | None:
            return None if stated(reply) is not None else "it is not one number from 0 to 100"

        reply = self._ask(CONFIDENCE, max_tokens=8, unusable=wrong, question=text, answer=answer)
        sure = stated(reply.text)
        if sure is None:
            self.note(f"no number from 0 to 100: {reply.text[:60]!r}")
        return sure

    @step("EVALUATOR", "decide by confidence", returns=Confidence)
    def decide_by_confidence(self, text: str, unaided: Unaided, how: How, threshold: float) -> Confidence:
        """Answer without searching if the confidence is at least `threshold`.

        If the endpoint reports no token probabilities, the model is asked for its confidence, and the span
        notes it. Source: Jiang et al. 2023, "Active Retrieval Augmented Generation", arXiv:2305.06983,
        section 3.2, which retrieves at each improbable token ("minimum"); here the decision is made once for
        the whole answer.
        """
        if unaided.unknown:
            why = f"the model has no answer, whatever the threshold: {unaided.text[:80]!r}"
            return Confidence("retrieve", why, None, "no answer", threshold)
        sure = {"mean": unaided.mean, "minimum": unaided.minimum, "verbalised": None}[how]
        by: How = how
        if sure is None:
            if how != "verbalised":
                self.note("the endpoint gave no token probabilities, so the model stated its confidence")
            by, sure = "verbalised", self.stated_confidence(text, unaided.text)
        if sure is None:
            why = "the model stated no confidence, so it is not trusted"
            return Confidence("retrieve", why, None, by, threshold)
        if sure >= threshold:
            why = f"{METHOD_WORDS[by]} {sure:.2f} is at least {threshold:g}: nothing was searched"
            return Confidence("answer without retrieval", why, sure, by, threshold)
        why = f"{METHOD_WORDS[by]} {sure:.2f} is below {threshold:g}"
        return Confidence("retrieve", why, sure, by, threshold)
