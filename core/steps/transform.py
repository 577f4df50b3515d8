"""Steps that turn the question into something else to search with, or split it into simpler ones."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from core.backends.prompting import prompts
from core.backends.prompting.replies import first_line, questions, reply_lines
from core.backends.prompting.untrusted import quoted
from core.domain.errors import ModelFailed, Unavailable
from core.domain.outputs import Rewrite, ShortAnswer
from core.domain.types import Query, Ranking
from core.steps.base import StepBase
from core.steps.decisions import Decided
from core.steps.step import step

ALIKE = 0.8  # share of common words from which two searches are one
WORDINGS = 20_000  # texts whose wording is remembered: names and titles come again and again


@lru_cache(WORDINGS)
def wording(text: str) -> str:
    """Return the words of `text` in lower case with single spaces, so that texts which differ only in case,
    punctuation and spacing are equal.
    """
    kept = (" " if unicodedata.category(char)[0] == "P" else char for char in text.casefold())
    return " ".join("".join(kept).split())


def shared(words: set[str], text: str) -> float:
    """Return the share of common words (Jaccard), 0 to 1; 0 for two texts without words."""
    other = set(wording(text).split())
    return len(words & other) / len(words | other) if words | other else 0.0


def _one_line(reply: str) -> str | None:
    return None if first_line(reply) else "an empty reply"


def _some_text(reply: str) -> str | None:
    return None if len(reply.split()) >= 5 else "a passage of fewer than five words"


def _lines(reply: str, original: str) -> tuple[str, ...]:
    """Return the distinct non-empty lines without bullets and numbers, except the question itself."""
    seen = {original.casefold().strip(): ""}
    for line in reply_lines(reply):
        seen.setdefault(line.casefold(), line)
    return tuple(line for line in seen.values() if line)


MAX_READ_PASSAGES = 3  # passages a short answer is looked for in
MAX_COPIED_WORDS = 24  # words of it, and tokens
UNKNOWN = "not stated"  # what the model is told to say where the passages do not answer
_REFERENCE = re.compile(r"(?<!\w)#(\d{1,2})(?!\w)")
_SPACE_BEFORE = re.compile(r"\s+([?!.,;:])")


@dataclass(frozen=True, slots=True)
class SplitDecision(Decided):
    """The decision whether to split a question."""

    decision: Literal["split", "keep"]
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


class Transform(StepBase):
    """Rewriting, variants, a more general question, hypothetical passages, keywords."""

    @step("LLM", "rewrite as a standalone question", returns=str)
    def standalone(self, query: Query) -> str:
        """Rewrite the last message as a standalone question; without a conversation it is returned unchanged
        and no model is called.

        Source: Ma et al. 2023, "Query Rewriting for Retrieval-Augmented LLMs", arXiv:2305.14283;
        conversational form as in Vakulenko et al. 2021, arXiv:2004.14652.
        """
        if not query.history:
            self.span.kind = "CHAIN"
            self.note("no earlier conversation; the question is used unchanged")
            return self._one(query.text, query.text)
        history = "\n".join(f"{turn.role}: {turn.text}" for turn in query.history[-6:])
        answer = self._ask(
            prompts.REWRITE, max_tokens=60, unusable=_one_line, history=history, question=query.text
        )
        return self._one(query.text, first_line(answer.text))

    def _one(self, before: str, after: str, role: Literal["question", "keywords"] = "question") -> str:
        """`after`, recorded as what the step wrote of `before`."""
        self.span.output = Rewrite(before, (after,), role)
        return after

    @step("LLM", "write query variants", returns=tuple[str, ...])
    def variants(self, text: str, n: int) -> tuple[str, ...]:
        """Return `n` rephrasings (fewer, with a note on the span, if the model repeats itself).

        Source: Rackauckas 2024, "RAG-Fusion", arXiv:2402.03367.
        """

        def too_few(reply: str) -> str | None:
            got = len(_lines(reply, text))
            return None if got >= n else f"{got} of {n} queries, one a line"

        answer = self._ask(
            prompts.VARIANTS, max_tokens=30 * n + 20, unusable=too_few, question=text, n=str(n)
        )
        found = _lines(answer.text, text)[:n]
        if len(found) < n:
            self.note(f"the model gave {len(found)} of {n} variants, even after a retry")
        self.span.output = Rewrite(text, found, "variants")
        return found

    @step("LLM", "write a more general question", returns=str)
    def step_back(self, text: str) -> str:
        """Return a question about the rule or principle that `text` depends on, or `text` itself, with a
        note, if the model repeats it.

        Source: Zheng et al. 2023, "Take a Step Back", arXiv:2310.06117, section 2.
        """
        reply = self._ask(prompts.STEP_BACK, max_tokens=60, unusable=_one_line, question=text)
        general = next(iter(reply_lines(reply.text)), "")
        if wording(general) in ("", wording(text)):
            said = "gave the question back" if general else "gave no question"
            self.note(f"the model {said}: nothing more general is searched")
            return self._one(text, text)
        return self._one(text, general)

    @step("LLM", "write hypothetical passages", returns=tuple[str, ...])
    def hypothesize(self, text: str, n: int, instruction: str = "") -> tuple[str, ...]:
        """`n` imagined passages that would answer the question; sampled with seeds 0..n-1 where n > 1, side
        by side if the model is not on this machine.

        Source: Gao et al. 2022, "Precise Zero-Shot Dense Retrieval ...", arXiv:2212.10496, section 3.2.
        """
        prompt = prompts.HYDE.with_instruction(instruction)
        heat = 0.0 if n == 1 else 0.7

        def sample(seed: int) -> str:
            return self._ask(
                prompt, max_tokens=120, temperature=heat, seed=seed, unusable=_some_text, question=text
            ).text.strip()

        written = tuple(map(sample, range(n))) if self.context.llm.local else self.each(sample, range(n))
        self.span.output = Rewrite(text, written, "passages")
        return written

    @step("LLM", "write web search keywords", returns=str)
    def web_keywords(self, text: str) -> str:
        """Rewrite the question as keywords for a web search, or return the question itself, with a note, if
        the model provides none.

        Source: Yan et al. 2024, arXiv:2401.15884, section 4.4.
        """
        try:
            reply = self._ask(prompts.WEB_QUERY, max_tokens=30, unusable=_one_line, question=text).text
        except (Unavailable, ModelFailed) as error:
            self.note(f"no keywords were written, so the question itself is searched: {error}")
            return self._one(text, text, "keywords")
        return self._one(text, first_line(reply) or text, "keywords")

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
            prompts.DECOMPOSE_STEPS if in_turn else prompts.DECOMPOSE,
            max_tokens=30 * n + 20,
            unusable=lambda reply: None if reply_lines(reply) else "no question, one a line",
            grammar=questions(2, n, numbered=in_turn),
            question=text,
            n=str(n),
        )
        written = reply_lines(reply.text)
        parts = written if in_turn else different(written, text)
        if len(parts) < 2 or all(wording(part) == wording(text) for part in parts):
            told = "no two questions that differ" if written else "no question"
            self.note(f"the model gave {told}: it is searched as it is")
            self.span.output = Rewrite(text, (text,), "parts")
            return (text,)
        if len(parts) > n:
            self.note(f"the model gave {len(parts)}; only the first {n} are searched")
        self.span.output = Rewrite(text, tuple(parts[:n]), "parts")
        return tuple(parts[:n])

    @step("LLM", "look for a short answer", returns=str, optional=True)
    def short_answer(self, question: str, hits: Ranking) -> str | None:
        """Copy a few words from `hits` that answer `question`. Return None, with a note, if the passages have
        no answer or do not contain the model's words.
        """
        return self._copied(
            prompts.SHORT_ANSWER, question, hits, MAX_COPIED_WORDS, max_tokens=MAX_COPIED_WORDS
        )

    def _copied(
        self, prompt: prompts.Prompt, question: str, hits: Ranking, most: int, **given: Any
    ) -> str | None:
        """Let the model copy at most `most` words of `hits`; None, with a note, if they do not state them or
        the model wrote other words.
        """

        def wrong(reply: str) -> str | None:
            said = wording(first_line(reply))
            if not said:
                return "an empty reply"
            if said.startswith(UNKNOWN):
                return None
            if len(said.split()) > most:
                return f"more than {most} words"
            return None if quoted_in(said, hits) else f"{said!r} is in none of the passages"

        self.span.output = ShortAnswer(question, "")
        given |= {"passages": quoted(hits), "question": question, "words": str(most)}
        reply = self._ask(prompt, unusable=wrong, **given).text
        said = first_line(reply)
        if fault := UNKNOWN if wording(said).startswith(UNKNOWN) else wrong(reply):
            self.note(f"left out: {fault}")
            return None
        answer = said.rstrip(".")
        self.span.output = ShortAnswer(question, answer, quoted_in(said, hits) or "")
        return answer

    @step("CHAIN", "fill in earlier answers", returns=str)
    def fill_in(self, text: str, answers: tuple[str | None, ...], question: str) -> str:
        """See `fill_in`; the span notes what was left out."""
        missing = [
            f"#{n}" for n in sorted(references(text, question)) if n <= len(answers) and not answers[n - 1]
        ]
        filled = fill_in(text, answers, question)
        if missing:
            nothing = "" if filled else "; nothing remains to search with"
            self.note(f"no answer to {', '.join(missing)}: left out{nothing}")
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
