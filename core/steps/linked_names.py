"""Names mentioned in passages, and the passages about them. Pure, except for queries to a corpus.

A question of several hops shares few words with its last passage, but the passage before mentions the last
one's subject by name. So the name is searched among the titles of the corpus. Source: Godbole et al. 2019,
"Multi-step Entity-centric Information Retrieval for Multi-Hop Question Answering", arXiv:1909.07598; the
covered share of the question replaces its trained reader of chains.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from core.backends.prompting.citations import sentences
from core.corpus.corpus import Corpus
from core.domain.filters import Filter
from core.domain.text import searchable
from core.domain.types import Passage
from core.steps.transform import wording

READ_CHARACTERS = 8_000  # of a passage: names far behind are rarely what it is about
PROBED = 24  # names looked for in one round, those of the sentences that share most with the question
ABOUT = 8  # hits of a name whose titles are compared with it
MATCH = 0.5  # how far a title must be the name
BEARERS = 3  # documents that a name may be the title of: what more are called is a heading ("Runbook")
WORDS, CHARACTERS = 8, 80  # of a name at most
# From which score a name is looked up. Chosen on 50 questions of HotpotQA (half of hotpotqa-100, seed 1),
# where it keeps every gain with the fewest searches. The other half and mtRAG were seen meanwhile, see
# bench/notebook/2026-11.md.
LOOK_UP_FROM = 0.4
_JOINING = frozenset(
    ("of", "the", "and", "de", "du", "del", "la", "von", "van", "for", "in", "at", "on", "to")
)
_TOKEN = re.compile(r"[^\W_](?:[\w'’&/.\-–]*\w)?")
_QUOTED = re.compile(r"[\"“]([^\"“”]{2,60})[\"”]")
_IN_BRACKETS = re.compile(r"\s*\([^()]*\)\s*$")


@dataclass(frozen=True, slots=True)
class LinkedName:
    """A mentioned name and the passage about it. Shares are of the question's terms, weighted by IDF."""

    name: str
    said_by: str  # id of the passage that mentions it; "" for the question
    about: str  # id of the passage about it
    covered: float  # share in the sentence with the name, or in that passage's title
    gained: float  # share in the passage about the name but not in the one that mentions it
    match: float  # how closely the title matches the name, 0 to 1
    # 0 to 1: the share that the sentence and the passage about the name cover together, times `match`
    score: float
    query: str  # the name and the question's words that `said_by` lacks


def names(sentence: str) -> tuple[str, ...]:
    """Return the distinct names in `sentence`, in order: runs of capitalised words, the parts of a run joined
    by "of", "the" or the like, and quoted text.
    """
    found: list[str] = []
    for run in _runs(sentence):
        found.append(" ".join(run))
        found += [" ".join(part) for part in _parts(run)]
    found += [" ".join(text.split()) for text in _QUOTED.findall(sentence)]
    return tuple(
        name
        for name in dict.fromkeys(found)
        if len(name) <= CHARACTERS and len(name.split()) <= WORDS and any(char.isalpha() for char in name)
    )


def _runs(sentence: str) -> Iterator[list[str]]:
    """Capitalised words with a space between, and the joining words within; never at an end."""
    run: list[str] = []
    joining: list[str] = []
    end = -1
    for token in _TOKEN.finditer(sentence):
        word, apart = token[0], sentence[end : token.start()] != " "
        if run and apart:
            yield run
            run, joining = [], []
        end = token.end()
        if _capital(word):
            run, joining = [*run, *joining, word], []
        elif run and word in _JOINING and len(joining) < 2:
            joining.append(word)
        elif run:
            yield run
            run, joining = [], []
    if run:
        yield run


def _capital(word: str) -> bool:
    return word[0].isdigit() or unicodedata.category(word[0]) in ("Lu", "Lt")


def _parts(run: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for word in (*run, "of"):
        if word not in _JOINING:
            part.append(word)
        elif part:
            if len(part) < len(run):
                yield part
            part = []


def _named_by(title: str) -> tuple[str, ...]:
    """Return the subjects a title names: the title itself, both sides of its first colon ("Carrier profile:
    Parcelon"), and a leading identifier of letters and digits ("DD-014 Idempotency keys").
    """
    front, _, back = title.partition(": ")
    first = title.split(maxsplit=1)[0].rstrip(":") if title.strip() else ""
    coded = any(char.isdigit() for char in first) and any(char.isalpha() for char in first)
    return (title, *((front, back) if back else ()), *((first,) if coded else ()))


# The share covered, the passage (None: the question), the name.
_Mention = tuple[float, Passage | None, str]


class Linker:
    """Finds the names that passages mention and a corpus has a passage about, for one question."""

    def __init__(self, question: str, corpus: Corpus, where: Sequence[Filter] = ()) -> None:
        """Of `corpus` only passages that meet `where` are looked at."""
        self._question, self._corpus, self._where = question, corpus, where
        self._weights = dict(corpus.terms(question))
        self._all = sum(self._weights.values())
        self._about: dict[str, list[tuple[float, Passage]]] = {}
        self._known: dict[str, dict[str, float]] = {}  # the terms of names and titles

    def share(self, terms: Iterable[str]) -> float:
        """Return the share of the question that these terms cover, by IDF; 0 for a question without terms."""
        wanted = set(terms)
        held = sum(weight for term, weight in self._weights.items() if term in wanted)
        return held / self._all if self._all else 0.0

    def missing(self, text: str) -> tuple[str, ...]:
        """Return the question's distinct words whose term is not in `text`, stop words excluded."""
        held = set(self._corpus.analyzer.terms(text))
        words = self._corpus.analyzer.questions.words(self._question)
        return tuple(dict.fromkeys(word for word, term in words if term not in held))

    def about(self, name: str) -> list[tuple[float, Passage]]:
        """Return the passages whose title is `name`, or nearly (see `matching`), the nearest first, then by
        BM25. Return [] if more than `BEARERS` documents have that title.
        """
        if name not in self._about:
            hits = self._corpus.search_sparse(name, ABOUT, where=self._where)
            matched = [(self.matching(name, hit.passage), hit.passage) for hit in hits]
            called = {passage.doc_id for match, passage in matched if match == 1.0}
            near = [one for one in matched if one[0] >= MATCH and len(called) <= BEARERS]
            self._about[name] = sorted(near, key=lambda one: -one[0])
        return self._about[name]

    def matching(self, name: str, passage: Passage) -> float:
        """Return how closely `passage` is about `name`, 0 to 1. It is 1 if the title has the same words, or
        has them on one side of a colon or as a leading identifier; else the IDF of the common terms divided
        by that of all terms. Brackets at a title's end are ignored. A passage without a title scores 0.
        """
        if not passage.title:
            return 0.0
        title = _IN_BRACKETS.sub("", passage.title)
        if wording(name) in (wording(part) for part in _named_by(title)):
            return 1.0
        own, other = self._weighted(name), self._weighted(title)
        both = sum(weight for term, weight in own.items() if term in other)
        either = sum((own | other).values())
        return both / either if either else 0.0

    def _weighted(self, text: str) -> dict[str, float]:
        """Return the terms of `text` with their weights, cached: names and titles are compared repeatedly."""
        if text not in self._known:
            self._known[text] = dict(self._corpus.terms(text))
        return self._known[text]

    def linked(self, read: Sequence[Passage], found: Sequence[Passage]) -> tuple[LinkedName, ...]:
        """Return the names in the question and in `read` that have a passage about them outside the documents
        of `found`; the likeliest first, each passage once. A passage with every word of the question is
        skipped, as it misses nothing.
        """
        known = {passage.doc_id for passage in found}
        best: dict[str, LinkedName] = {}
        for covered, passage, name in self._mentioned(read):
            for match, about in self.about(name):
                if about.doc_id in known:
                    continue
                link = self._link(name, passage, about, covered, match)
                if about.id not in best or link.score > best[about.id].score:
                    best[about.id] = link
        return tuple(sorted(best.values(), key=lambda one: (-one.score, one.about)))

    def _mentioned(self, read: Sequence[Passage]) -> list[_Mention]:
        """Return the best mention of each name, for the first `PROBED` names by covered share."""
        analyzer = self._corpus.analyzer
        found: dict[tuple[str, str], _Mention] = {
            ("", name): (0.0, None, name) for name in names(self._question)
        }
        for passage in read:
            if not self.missing(searchable(passage.title, passage.text)):
                continue
            title = analyzer.terms(passage.title)
            for sentence in sentences(passage.text[:READ_CHARACTERS]):
                covered = self.share((*title, *analyzer.terms(sentence)))
                for name in names(sentence):
                    key = (passage.id, name)
                    if analyzer.terms(name) and (key not in found or covered > found[key][0]):
                        found[key] = (covered, passage, name)
        ranked = sorted(found.values(), key=lambda one: -one[0])
        probed = list(dict.fromkeys(name for _, _, name in ranked))[:PROBED]
        return [one for one in ranked if one[2] in probed]

    def _link(
        self, name: str, passage: Passage | None, about: Passage, covered: float, match: float
    ) -> LinkedName:
        text = searchable(passage.title, passage.text) if passage else name
        held = set(self._corpus.analyzer.terms(text))
        gained = self.share(set(self._corpus.analyzer.terms(searchable(about.title, about.text))) - held)
        words = (word for word in self.missing(text) if word not in wording(name).split())
        score = min(1.0, covered + gained) * match
        shares = round(covered, 4), round(gained, 4), round(match, 4), round(score, 4)
        return LinkedName(name, passage.id if passage else "", about.id, *shares, " ".join((name, *words)))
