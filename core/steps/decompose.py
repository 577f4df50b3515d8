"""Steps that split a question into simpler ones and answer these in turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from core.backends.prompting.prompts import DECOMPOSE, DECOMPOSE_STEPS, SHORT_ANSWER
from core.backends.prompting.replies import first_line, questions, reply_lines
from core.backends.prompting.untrusted import quoted
from core.domain.outputs import Rewrite, ShortAnswer
from core.domain.types import Ranking
from core.steps.decisions import Decided
from core.steps.step import step
from core.steps.transform import ALIKE, Transform, shared, wording

MAX_READ_PASSAGES = 3  # passages a short answer is looked for in
UNKNOWN = "not stated"  # what the model is told to say where the passages do not answer
_REFERENCE = re.compile(r"(?<!\w)#(\d{1,2})(?!\w)")
_SPACE_BEFORE = re.compile(r"\s+([?!.,;:])")


@dataclass(frozen=True, slots=True)
class SplitDecision(Decided):
    """The decision whether to split a question."""

    decision: Literal["split", "keep"]
    why: str
    terms: float  # number of different words without stop words
    threshold: float

    SCORE = "terms"
    FIRES = (("split", "keep"),)


def references(text: str, question: str) -> set[int]:
    """Return the numbers of the sub-questions that `text` refers to ("#1"), except those in the user's own
    question, such as a priority #1.
    """
    return set(map(int, _REFERENCE.findall(text))) - set(map(int, _REFERENCE.findall(question)))


def different(parts: Sequence[str], question: str) -> tuple[str, ...]:
    """Those of `parts` that share less than `ALIKE` of their words with the question and with each before."""
    kept: list[str] = []
    for part in parts:
        words = set(wording(part).split())
        if words and all(shared(words, other) < ALIKE for other in (question, *kept)):
            kept.append(part)
    return tuple(kept)


def fill_in(text: str, answers: Sequence[str | None], question: str) -> str:
    """Replace each reference to an earlier sub-question by its answer, or remove it if there is no answer.
    References to later sub-questions stay.
    """
    referred = references(text, question)

    def answer(match: re.Match[str]) -> str:
        number = int(match[1])
        if number not in referred or not 1 <= number <= len(answers):
            return match[0]
        return answers[number - 1] or ""

    filled = _SPACE_BEFORE.sub(r"\1", " ".join(_REFERENCE.sub(answer, text).split()))
    return filled if wording(filled) else ""


def quoted_in(answer: str, hits: Ranking) -> str | None:
    """Return the id of the first passage whose title or text contains the words of `answer` in sequence, or
    None.
    """
    words = f" {wording(answer)} "
    for hit in hits:
        if any(words in f" {wording(part)} " for part in (hit.passage.title, hit.passage.text)):
            return hit.passage.id
    return None


class Decompose(Transform):
    """Sub-questions, side by side or one after another."""

    @step("CHAIN", "split or keep", returns=SplitDecision)
    def worth_splitting(self, text: str, threshold: float) -> SplitDecision:
        """Split a question of at least `threshold` different terms: a question about two things, or about a
        thing known only through another, needs words for both. A small model cannot distinguish the two
        cases.
        """
        terms = len(set(self.context.corpus.analyzer.questions.terms(text)))
        enough = terms >= threshold
        why = f"{terms} different terms are {'at least' if enough else 'fewer than'} {threshold:g}"
        return SplitDecision("split" if enough else "keep", why, float(terms), threshold)

    @step("LLM", "split into simpler questions", returns=tuple[str, ...])
    def decompose(self, text: str, n: int, in_turn: bool = False) -> tuple[str, ...]:
        """Two to `n` sub-questions; the question alone, and a note, if the model has no two that differ.

        `in_turn`: a sub-question may point at the answer of an earlier one by its number ("#1"), so all stay
        as the model numbered them. Otherwise each stands for itself, and the question is none of them.
        Source: Zhou et al. 2022, "Least-to-Most Prompting ...", arXiv:2205.10625, section 2; the notation is
        that of Wolfson et al. 2020, "Break It Down", arXiv:2001.11770.
        """
        reply = self._ask(
            DECOMPOSE_STEPS if in_turn else DECOMPOSE,
            max_tokens=30 * n + 20,
            unusable=_no_line,
            grammar=questions(2, n, numbered=in_turn),
            question=text,
            n=str(n),
        )
        written = reply_lines(reply.text)
        parts = written if in_turn else different(written, text)
        if len(parts) < 2 or all(wording(part) == wording(text) for part in parts):
            told = "no two questions that differ" if written else "no question"
            self.span.attributes["note"] = f"the model gave {told}: it is searched as it is"
            self.span.output = Rewrite(text, (text,), "parts")
            return (text,)
        if len(parts) > n:
            self.span.attributes["note"] = f"the model gave {len(parts)}; only the first {n} are searched"
        self.span.output = Rewrite(text, tuple(parts[:n]), "parts")
        return tuple(parts[:n])

    @step("LLM", "look for a short answer", returns=str, optional=True)
    def short_answer(self, question: str, hits: Ranking) -> str | None:
        """Copy a few words from `hits` that answer `question`. Return None, with a note, if the passages have
        no answer or do not contain the model's words.
        """

        def wrong(reply: str) -> str | None:
            said = wording(first_line(reply))
            if not said:
                return "an empty reply"
            known = said.startswith(UNKNOWN) or quoted_in(said, hits)
            return None if known else "words that are in none of the passages"

        self.span.output = ShortAnswer(question, "")
        reply = self._ask(
            SHORT_ANSWER, max_tokens=24, unusable=wrong, passages=quoted(hits), question=question
        )
        said = first_line(reply.text)
        if wording(said).startswith(UNKNOWN):
            self.span.attributes["note"] = "the passages do not contain it, so it is left out"
            return None
        source = quoted_in(said, hits) if wording(said) else None
        if source is None:
            self.span.attributes["note"] = f"{said!r} is in none of the passages, so it is left out"
            return None
        answer = said.rstrip(".")
        self.span.output = ShortAnswer(question, answer, source)
        return answer

    @step("CHAIN", "fill in earlier answers", returns=str)
    def fill_in(self, text: str, answers: tuple[str | None, ...], question: str) -> str:
        """See `fill_in`; the span notes what was left out."""
        missing = [
            f"#{n}" for n in sorted(references(text, question)) if n <= len(answers) and not answers[n - 1]
        ]
        filled = fill_in(text, answers, question)
        if missing:
            self.span.attributes["note"] = f"no answer to {', '.join(missing)}: left out" + (
                "" if filled else "; nothing remains to search with"
            )
        self.span.output = Rewrite(text, (filled,), "context")
        return filled

    def in_turn(
        self, parts: tuple[str, ...], question: str, search: Callable[[str], Ranking]
    ) -> dict[str, Ranking]:
        """Search for each of `parts` in order, with references replaced by the answers so far. Return the
        rankings by searched text. A part is answered only if a later part refers to it.
        """
        found: dict[str, Ranking] = {}
        answers: list[str | None] = []
        for number, part in enumerate(parts, 1):
            earlier = references(part, question) & set(range(1, number))
            text = self.fill_in(part, tuple(answers), question) if earlier else part
            if text:
                found[text] = search(text)
            hits = found.get(text, ())[:MAX_READ_PASSAGES]
            wanted = any(number in references(later, question) for later in parts[number:])
            answers.append(self.short_answer(text, hits) if wanted and hits else None)
        return found


def _no_line(reply: str) -> str | None:
    return None if reply_lines(reply) else "no question, one a line"
