"""Searching the source text by patterns instead of an index."""

from __future__ import annotations

from core.backends import grep
from core.backends.terms import Analyzer
from core.domain.errors import Unavailable
from core.domain.outputs import Search
from core.domain.types import Hit, Ranking
from core.steps.gate import exact_terms
from core.steps.retrieve import POOL, Retrieve
from core.steps.step import step

EXPLAINED = 10  # first hits of which the span keeps what matched


class Grep(Retrieve):
    """Searching the text of the passages themselves."""

    @step("RETRIEVER", "grep the source text", returns=Ranking)
    def grep(self, text: str, k: int = POOL) -> Ranking:
        """Return the `k` passages whose text matches the question's words, identifiers and quoted phrases
        best; see `core.backends.grep.SourceText.rank`.

        Source: Sen et al. 2026, "Is grep all you need?", arXiv:2605.15184, compares such searches with
        retrieval; this ranking is our own.
        """
        corpus, where = self.context.corpus, self.context.where
        try:
            analyzer = corpus.analyzer
        except Unavailable:  # without a BM25 index nothing says which words to stem, or which are stop words
            analyzer = Analyzer("none")
        wanted = grep.patterns(text, analyzer, exact_texts(text))
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
            unfound="" if found else "no passage's text has any of its words",
            where=where,
        )
        return tuple(Hit(passage, one.score) for passage, one in zip(passages, found, strict=True))


def exact_texts(question: str) -> tuple[str, ...]:
    """Return the exact terms of a question as texts to find. A code or version after a noun ("error E42")
    also counts without the noun, which passages may leave out.
    """
    terms = exact_terms(question)
    found = [term.text for term in terms]
    found += [term.text.rsplit(" ", 1)[-1] for term in terms if term.kind in ("code", "version")]
    return tuple(dict.fromkeys(found))
