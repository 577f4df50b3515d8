"""Steps that split a question into simpler ones and answer these in turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from core.backends.prompting.prompts import DECOMPOSE, DECOMPOSE_STEPS, SHORT_ANSWER
from core.backends.prompting.replies import first_line, reply_lines
from core.backends.prompting.untrusted import quoted
from core.domain.outputs import Rewrite, ShortAnswer
from core.domain.types import Ranking
from core.steps.step import step
from core.steps.transform import Transform, wording

READ = 3  # passages a short answer is looked for in
UNKNOWN = "not stated"  # what the model is told to say where the passages do not answer
_REFERENCE = re.compile(r"(?<!\w)#(\d{1,2})(?!\w)")
_SPACE_BEFORE = re.compile(r"\s+([?!.,;:])")


def references(text: str, question: str) -> set[int]:
    """The numbers of the sub-questions that `text` refers to ("#1"); what stands in the user's own question,
    such as a priority #1, is none.
    """
    return set(map(int, _REFERENCE.findall(text))) - set(map(int, _REFERENCE.findall(question)))


def fill_in(text: str, answers: Sequence[str | None], question: str) -> str:
    """`text` with each reference to an earlier sub-question replaced by its answer, or left out where it has
    none. References to later ones stay: there is nothing to put there.
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
    """The id of the first passage whose title or text has the words of `answer` one after another; None if
    none has.
    """
    words = f" {wording(answer)} "
    for hit in hits:
        if any(words in f" {wording(part)} " for part in (hit.passage.title, hit.passage.text)):
            return hit.passage.id
    return None


class Decompose(Transform):
    """Sub-questions, side by side or one after another."""

    @step("LLM", "split into simpler questions")
    def decompose(self, text: str, n: int, in_turn: bool = False) -> tuple[str, ...]:
        """At most `n` sub-questions; the question alone, and a note, if the model has nothing simpler.

        `in_turn`: a sub-question may point at the answer of an earlier one by its number ("#1"), so all stay
        as the model numbered them. Otherwise each stands for itself, and the question is none of them.
        Source: Zhou et al. 2022, "Least-to-Most Prompting ...", arXiv:2205.10625, section 2; the notation is
        that of Wolfson et al. 2020, "Break It Down", arXiv:2001.11770.
        """
        prompt = DECOMPOSE_STEPS if in_turn else DECOMPOSE
        reply = self._ask(prompt, max_tokens=30 * n + 20, unusable=_no_line, question=text, n=str(n))
        written = reply_lines(reply.text)
        if all(wording(line) == wording(text) for line in written):
            self.span.attributes["note"] = (
                "the model gave the question back" if written else "the model gave no question"
            ) + ": it is searched as it is"
            self.span.output = Rewrite(text, (text,), "parts")
            return (text,)
        if not in_turn:
            distinct: dict[str, str] = {}
            for line in written:
                distinct.setdefault(wording(line), line)
            distinct.pop(wording(text), None)
            written = tuple(distinct.values())
        if len(written) > n:
            self.span.attributes["note"] = f"the model gave {len(written)}; only the first {n} are searched"
        self.span.output = Rewrite(text, tuple(written[:n]), "parts")
        return written[:n]

    @step("LLM", "look for a short answer")
    def short_answer(self, question: str, hits: Ranking) -> str | None:
        """A few words copied from `hits` that answer `question`. None, and a note, where the passages do not
        say it, or the model's words are in none of them.
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

    @step("CHAIN", "fill in earlier answers")
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
        """What `search` finds for each of `parts`, by the text searched: references filled in with the
        answers so far. An answer is looked for only where a later part refers to it.
        """
        found: dict[str, Ranking] = {}
        answers: list[str | None] = []
        for number, part in enumerate(parts, 1):
            earlier = references(part, question) & set(range(1, number))
            text = self.fill_in(part, tuple(answers), question) if earlier else part
            if text:
                found[text] = search(text)
            hits = found.get(text, ())[:READ]
            wanted = any(number in references(later, question) for later in parts[number:])
            answers.append(self.short_answer(text, hits) if wanted and hits else None)
        return found


def _no_line(reply: str) -> str | None:
    return None if reply_lines(reply) else "no question, one a line"
