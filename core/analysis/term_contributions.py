"""The contribution of each term to a passage's BM25 score, and the places of a text's words in a passage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

from core.analysis.run_view import top
from core.analysis.searches import asked
from core.backends.terms import WORD, Analyzer, same_length_lower
from core.domain.outputs import MatchedPassage, Rerank, Search
from core.domain.text import searchable
from core.domain.types import Passage, RouteResult, Run, Span


class TermStatistics(Protocol):
    """The corpus methods this module uses."""

    @property
    def analyzer(self) -> Analyzer: ...

    def terms(self, text: str) -> list[tuple[str, float]]: ...

    def explain(self, text: str, passage_id: str) -> dict[str, float]: ...


@dataclass(frozen=True, slots=True)
class Contribution:
    """One term of a text: `asked` times in it as `words`, `found` times in the passage with its title.

    It adds `part` = asked * idf * tf to the score; `tf` is below 1 and grows with `found`, less in long
    passages.
    """

    term: str
    words: tuple[str, ...]
    asked: int
    found: int
    idf: float
    tf: float

    @property
    def part(self) -> float:
        """Return the term's contribution to the score."""
        return self.asked * self.idf * self.tf


def contributions(corpus: TermStatistics, text: str, passage: Passage) -> list[Contribution]:
    """Return the terms of `text`, largest part first, those the passage lacks last; their parts add up to its
    score.

    Raises BadInput where the corpus does not have the passage.
    Source: Robertson & Zaragoza 2009, section 3.4; Lucene's variant (Kamphuis et al. 2020).
    """
    by_term: dict[str, list[str]] = {}
    of: dict[str, tuple[str, ...]] = {}
    for _, _, word, terms in corpus.analyzer.questions.places(text):
        shown = " / ".join(terms)  # several where it is not clear which language cuts the word
        of[shown] = terms
        by_term.setdefault(shown, []).append(word)
    inside = Counter(corpus.analyzer.terms(searchable(passage.title, passage.text)))
    idfs, parts, made = dict(corpus.terms(text)), corpus.explain(text, passage.id), []
    for term, words in by_term.items():
        idf = max(idfs[one] for one in of[term])
        once = sum(parts[word] for word in set(words)) / len(words)
        tf = once / idf if idf else 0.0
        found = sum(inside[one] for one in of[term])
        made.append(Contribution(term, tuple(dict.fromkeys(words)), len(words), found, idf, tf))
    return sorted(made, key=lambda one: -one.part)


class Marker:
    """Finds the words of texts whose terms are searched for: "asked" those of the question, "written" those
    only of `others`, which were searched with as well.
    """

    def __init__(self, question: str, others: Collection[str], analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.kinds = {term: "written" for text in others for term in analyzer.questions.terms(text)}
        self.kinds |= dict.fromkeys(analyzer.questions.terms(question), "asked")
        self._seen: dict[str, str] = {}  # by word in lower case

    def pieces(self, text: str) -> Iterator[tuple[str, str]]:
        """`text` cut so that each word that matches is a piece of its own, with its kind; the rest has "".

        The pieces together are the text.
        """
        at = 0
        for start, stop, kind in self._marks(text):
            if start > at:
                yield text[at:start], ""
            yield text[start:stop], kind
            at = stop
        if at < len(text):
            yield text[at:], ""

    def _marks(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield (start, end, kind) of each matching word, in order and without overlaps."""
        if self.analyzer.plain(text):
            for match in WORD.finditer(same_length_lower(text)):
                if kind := self._kind(match[0]):
                    yield match.start(), match.end(), kind
            return
        open_: tuple[int, int, str] | None = None  # n-grams overlap: those of a kind become one mark
        for start, stop, _, terms in self.analyzer.places(text):
            kind = next((self.kinds[term] for term in terms if term in self.kinds), "")
            if not kind:
                continue
            if open_ is not None and start < open_[1]:
                open_ = (open_[0], max(stop, open_[1]), "asked" if "asked" in (kind, open_[2]) else kind)
                continue
            if open_ is not None:
                yield open_
            open_ = (start, stop, kind)
        if open_ is not None:
            yield open_

    def _kind(self, word: str) -> str:
        if word not in self._seen:
            term = next((term for _, term in self.analyzer.words(word)), "")
            self._seen[word] = self.kinds.get(term, "")
        return self._seen[word]


def searched_texts(run: Run) -> set[str]:
    """Return the texts that some step of the run searched with, by words or by meaning, each by itself."""
    return {one.text for result in run.results for one in asked(result).values() if one.text is not None}


def searched_by_terms(run: Run) -> dict[str, dict[str, float]]:
    """Return the texts whose terms were searched, the question's first, with the stored scores by passage.

    A search with an `engine` argument is one by terms.
    """
    found: dict[str, dict[str, float]] = {}
    for result in run.results:
        for span in result.spans:
            if isinstance(span.output, Search) and "engine" in span.args:
                for text in span.output.texts:
                    found.setdefault(text, {}).update(span.hits or ())
    first = {run.query.text: found[run.query.text]} if run.query.text in found else {}
    return {**first, **found}


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """The matches of one passage with the tokens of a question."""

    query: tuple[str, ...]
    passage: MatchedPassage

    @property
    def drawable(self) -> bool:
        """Return whether the matrix is complete, with a column for each named token."""
        rows, columns = self.passage.cosines, len(self.passage.passage)
        return 0 < len(rows) <= len(self.query) and all(0 < len(row) == columns for row in rows)


@dataclass(frozen=True, slots=True)
class TokenStep:
    """A step that matched token by token, with the passages it came to first."""

    span: Span
    model: str
    hits: tuple[TokenMatch, ...]


def token_matches(result: RouteResult) -> list[TokenStep]:
    """Return the steps of a route that recorded token matches."""
    found = []
    for span in top(result):
        output = span.output
        if isinstance(output, Search | Rerank) and output.tokens and output.tokens.hits:
            model = output.model if isinstance(output, Search) else output.reranker
            query = output.tokens.query
            found.append(TokenStep(span, model, tuple(TokenMatch(query, hit) for hit in output.tokens.hits)))
    return found


def expansions(result: RouteResult) -> list[tuple[Span, Search]]:
    """Return the steps of a route that searched with terms of a model's choice."""
    return [
        (span, span.output)
        for span in top(result)
        if isinstance(span.output, Search) and span.output.expansion
    ]
