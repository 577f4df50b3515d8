"""Searching the source text by patterns instead of an index."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from core.backends import grep
from core.backends.grep import Pattern
from core.backends.prompting.prompts import WRITE_PATTERNS
from core.backends.prompting.replies import read_form, strict_schema
from core.backends.terms import Analyzer
from core.domain.errors import Unavailable
from core.domain.outputs import Pass, Rewrite, Search
from core.domain.types import Hit, Ranking
from core.steps.gate import exact_terms
from core.steps.retrieve import POOL, Retrieve
from core.steps.step import step
from core.steps.transform import wording

EXPLAINED = 10  # first hits of which the span keeps what matched
ADDED = 5  # words of a passage that a scripted query takes
LONGEST_PATTERN = 60  # characters of a pattern that a model writes


class WrittenPattern(BaseModel):
    """A pattern as a model writes it."""

    match: Literal["word", "beginning", "phrase"]
    text: str


class WrittenPatterns(BaseModel):
    """The reply of a model that writes patterns."""

    patterns: list[WrittenPattern]


class Grep(Retrieve):
    """Searching the text of the passages themselves."""

    @step("RETRIEVER", "grep the source text", returns=Ranking)
    def grep(self, text: str, k: int = POOL) -> Ranking:
        """Return the `k` passages whose text matches the question's words, identifiers and quoted phrases
        best; see `core.backends.grep.SourceText.rank`.

        Source: Sen et al. 2026, "Is grep all you need?", arXiv:2605.15184, compares such searches with
        retrieval; this ranking is our own.
        """
        return self._matching(text, self._patterns_of(text), k)

    @step("RETRIEVER", "grep the source text", returns=Ranking)
    def grep_for(self, wanted: tuple[Pattern, ...], k: int = POOL) -> Ranking:
        """Return the `k` passages that match the patterns `wanted` best, as `grep` does."""
        return self._matching(listed(wanted), wanted, k)

    @step("RETRIEVER", "count matches", returns=tuple[tuple[Pattern, int], ...])
    def count_matches(self, wanted: tuple[Pattern, ...]) -> tuple[tuple[Pattern, int], ...]:
        """Return each pattern with the number of passages in which it occurs."""
        source, allowed = self.context.corpus.source_text, self.allowed()
        counted = tuple((one, source.count(one, allowed)) for one in wanted)
        self.span.output = Pass({str(one): n for one, n in counted})
        return counted

    @step("LLM", "write patterns", returns=tuple[Pattern, ...])
    def write_patterns(
        self, question: str, most: int, tried: tuple[tuple[Pattern, int], ...] = ()
    ) -> tuple[Pattern, ...]:
        """Let the model write up to `most` patterns. They are literal texts, not regular expressions, so none
        can take long. The model sees the number of passages for each pattern in `tried`, but no passage.
        After two unusable replies, return the patterns in `tried` that occur, or else the question's own
        patterns, with a note.
        """

        def read(reply: str) -> tuple[Pattern, ...] | str:
            form = read_form(WrittenPatterns, reply)
            if isinstance(form, str):
                return form
            texts = [(grep.fold(one.text).strip(" *"), one.match) for one in form.patterns]
            made = [
                Pattern(text, "identifier" if match == "phrase" else match)
                for text, match in texts
                if text and len(text) <= LONGEST_PATTERN
            ]
            return tuple(dict.fromkeys(made))[:most] or "no pattern with a text"

        found = self._read(
            WRITE_PATTERNS,
            read,
            max_tokens=30 * most + 20,
            schema=strict_schema(WrittenPatterns),
            question=question,
            n=str(most),
            size=f"{self.context.corpus.size:,}",
            tried="\n".join(f"{one}: {n:,}" for one, n in tried) or "none",
        )
        if isinstance(found, str):
            self.note(f"also when asked again, the model gave {found}")
            found = tuple(one for one, n in tried if n) or self._patterns_of(question)
        self.span.output = Rewrite(question, (listed(found),), "keywords")
        return found

    @step("CHAIN", "write the next query", returns=str)
    def next_query(self, question: str, read: Ranking) -> str:
        """Return the rarest words of the passage read last that other passages have too, and the question's
        own that it lacks: what a second document may be about. Without a passage, the question.
        """
        text = question
        if read:
            source, allowed, passage = self.context.corpus.source_text, self.allowed(), read[-1].passage
            own = {one.text for one in self._patterns_of(question)}
            counted = [(source.count(one, allowed), one.text) for one in self._patterns_of(passage.text)]
            rare = sorted((n, word) for n, word in counted if n > 1 and word not in own)[:ADDED]
            inside = f" {wording(passage.text)} "
            left = [word for word in wording(question).split() if f" {word} " not in inside]
            text = " ".join((*(word for _, word in rare), *left)) or question
        self.span.output = Rewrite(question, (text,), "context")
        return text

    def _patterns_of(self, question: str) -> tuple[Pattern, ...]:
        try:
            analyzer = self.context.corpus.analyzer
        except Unavailable:  # without a BM25 index nothing says which words to stem, or which are stop words
            analyzer = Analyzer("none")
        return grep.patterns(question, analyzer, exact_texts(question))

    def _matching(self, text: str, wanted: tuple[Pattern, ...], k: int) -> Ranking:
        corpus, where = self.context.corpus, self.context.where
        found, counts = corpus.source_text.rank(wanted, k, corpus.allowed(where))
        passages = corpus.passages([one.row for one in found])
        first = list(zip(passages, found, strict=True))[:EXPLAINED]
        self.span.attributes["passages with a match"] = {str(one): n for one, n in counts.items()}
        lines = grep.matching_lines([passage.text for passage, _ in first], wanted)
        self.span.attributes["matching lines"] = {
            passage.id: list(numbers) for (passage, _), numbers in zip(first, lines, strict=True)
        }
        self.span.output = Search(
            (text,),
            "grep",
            terms=len(wanted),
            expansion=tuple((str(one), 1.0) for one in wanted),
            matched={passage.id: one.parts for passage, one in first},
            unfound="" if found else "no passage's text has any of its patterns",
            where=where,
        )
        return tuple(Hit(passage, one.score) for passage, one in zip(passages, found, strict=True))


def listed(wanted: tuple[Pattern, ...]) -> str:
    """Return patterns as one text to show."""
    return ", ".join(map(str, wanted))


def exact_texts(question: str) -> tuple[str, ...]:
    """Return the exact terms of a question as texts to find. A code or version after a noun ("error E42")
    also counts without the noun, which passages may leave out.
    """
    terms = exact_terms(question)
    found = [term.text for term in terms]
    found += [term.text.rsplit(" ", 1)[-1] for term in terms if term.kind in ("code", "version")]
    return tuple(dict.fromkeys(found))
