"""A graph of the corpus: entities and passages, tied by mention, relation and likeness."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np

from core.backends import array_files
from core.backends.base import LLMRequest, Matrix, Vector
from core.backends.languages import stop_words
from core.backends.pagerank import Graph
from core.backends.prompting.prompts import TRIPLES
from core.backends.prompting.replies import reply_lines
from core.backends.terms import Analyzer
from core.backends.vector import FaissIndex, write_graph
from core.corpus.chunk import sentences
from core.corpus.corpus import Corpus
from core.corpus.embeddings import KEY_BYTES, VECTORS, mapped
from core.corpus.enrichments.keys import Listed
from core.corpus.enrichments.recipe import Recipe, Tools
from core.corpus.manifest import GRAPH
from core.domain.settings import Settings

Kind = Literal["identifier", "name", "pair", "word"]
STRONG: tuple[Kind, ...] = ("identifier", "name")  # an entity wherever it stands, in one passage too

# asyncio.gather, max_size, camelCase, ISO-8601, B2: what people do not write by chance.
IDENTIFIER = re.compile(
    r"[^\W\d]\w*(?:\.[^\W\d]\w*)+|\w*[^\W_]_+\w+|\b[A-Z]?[a-z]+[A-Z]\w*|[^\W\d_]+-?\d[\w-]*\w|[^\W\d_]\d\b"
)
WORD = re.compile(r"\w+(?:['’-]\w+)*")
JOINING = frozenset(
    ("of", "the", "de", "del", "la", "le", "du", "des", "von", "van", "der", "den", "di", "da")
)
LONGEST = 6  # words of a name
SHORTEST = 4  # letters of a word that is an entity by being rare, where it is ASCII


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity as it stands in a text, and the `key` under which its other spellings are found."""

    key: str
    shown: str
    kind: Kind


def in_sentences(text: str, analyzer: Analyzer) -> Iterator[list[Entity]]:
    """Yield the entities of each sentence in order, repeats included.

    Identifiers are dotted, have an underscore, are in camel case, or mix letters with digits. A name is a run
    of up to LONGEST capitalised words, with "of", "the" and the like between them; a sentence's first word
    alone counts only with two capitals. A pair is two neighbouring words except stop words (noun phrases, and
    some others). A word is any other word except stop words. Pairs and words become entities if few passages
    have them.
    """
    stops = stop_words(analyzer.usual)
    for start, end in sentences(text, 0, len(text)):
        yield _entities(text[start:end], analyzer, stops)


def _entities(text: str, analyzer: Analyzer, stops: frozenset[str]) -> list[Entity]:
    found = [(m.start(), Entity(m[0].casefold(), m[0], "identifier")) for m in IDENTIFIER.finditer(text)]
    found += [(at, Entity(key(name, analyzer), name, "name")) for at, name in _names(text, stops)]
    before: tuple[int, str, str] | None = None
    for start, stop, word, terms in analyzer.places(text):
        if word in stops:
            continue
        if before and before[0] < start and text[before[0] : start] in (" ", "-"):
            found.append((start, Entity(f"{before[2]} {terms[0]}", f"{before[1]} {word}", "pair")))
        if (len(word) >= SHORTEST or not word.isascii()) and not word.isdecimal():
            found.append((start, Entity(terms[0], word, "word")))
        before = (stop, word, terms[0])
    return [entity for _, entity in sorted(found, key=lambda one: one[0])]


def _names(text: str, stops: frozenset[str]) -> Iterator[tuple[int, str]]:
    run: list[re.Match[str]] = []
    first = True

    def ended() -> Iterator[tuple[int, str]]:
        while run and run[-1][0] in JOINING:
            run.pop()
        while run and run[0][0].lower() in stops and (len(run[0][0]) == 1 or not run[0][0].isupper()):
            run.pop(0)  # "The", "In": a stop word at the beginning
        if run and not (opening and len(run) == 1 and not any(map(str.isupper, run[0][0][1:]))):
            yield run[0].start(), text[run[0].start() : run[-1].end()]
        run.clear()

    opening = False
    for match in WORD.finditer(text):
        capital = match[0][0].isupper()
        apart = bool(run) and text[run[-1].end() : match.start()] != " "
        if run and (apart or len(run) >= LONGEST or not (capital or match[0] in JOINING)):
            yield from ended()
        if capital or run:
            if not run:
                opening = first
            run.append(match)
        first = False
    yield from ended()


def key(name: str, analyzer: Analyzer) -> str:
    """Return the terms of a name, so that its plural is equal, or the name itself if a word has no term."""
    terms = analyzer.terms(name)
    return " ".join(terms if len(terms) == len(WORD.findall(name)) else name.casefold().split())


EdgeKind = Literal["mention", "relation", "alike"]
KINDS: tuple[EdgeKind, ...] = ("mention", "relation", "alike")
PHRASES, FACTS = "phrases.jsonl", "facts.jsonl"
EDGES, WEIGHTS, OF_KIND = "edges.npy", "weights.npy", "kinds.npy"

COMMON = 0.1  # share of the passages from which on an entity is too common to tell anything
RARE = 0.01  # share of the passages up to which a word by itself is an entity
MENTIONED = 5  # medians: a passage with more entities keeps its first ones, so that none is everybody's hub
FEW = 5  # passages that are neither, however small the corpus
ALIKE = 0.8  # cosine from which on two phrases are tied (HippoRAG's threshold of synonyms)
NEIGHBOURS = 5  # phrases that one is tied to for being alike
BLOCK = 1024  # phrases whose neighbours are searched at once
PER_PASSAGE, SHOWN, REPLY = 8, 2_000, 240  # triples and characters of a prompt, tokens of its reply
LENGTH = 200  # characters of a phrase that a model may give


@dataclass(slots=True)
class Drawn:
    """The graph data of the passages."""

    phrases: dict[str, str] = field(default_factory=dict)  # as shown, by key
    mentions: Counter[tuple[str, int]] = field(default_factory=Counter)  # counts of (key, row)
    relations: Counter[tuple[str, str]] = field(default_factory=Counter)  # counts of (key, key)
    facts: dict[str, tuple[str, str]] = field(default_factory=dict)  # by text, the keys they connect

    def relate(self, a: str, b: str) -> None:
        """Two phrases stand together once more."""
        if a != b:
            self.relations[min(a, b), max(a, b)] += 1


class RuleGraph(Recipe):
    """Entities by rule (see `entities`); those that follow each other in a sentence are related.

    Source: Gutiérrez et al. 2025, "From RAG to Memory: Non-Parametric Continual Learning for Large Language
    Models" (HippoRAG 2), arXiv:2502.14802; with rules instead of its open information extraction.
    """

    name = "graph"
    title = "graph of entities"
    cost = "no model call; each entity is embedded"

    def about_bytes(self, characters: int, passages: int, dim: int, _settings: Settings, /) -> int:
        """Estimate a vector per 80 characters (measured: 46 to 115 on four sets), and its edges."""
        return characters // 80 * (4 * dim + KEY_BYTES + 120) + 100 * passages

    def draw(self, corpus: Corpus, tools: Tools, /) -> Drawn:
        """Read every passage."""
        found: list[tuple[int, list[list[Entity]]]] = []
        having: Counter[str] = Counter()
        strong: set[str] = set()
        with tools.stages.stage("find entities"):
            for row, passage, _ in corpus.everything():
                tools.stages.tick(row, corpus.size)
                title = " ".join(passage.title.split())
                named = [Entity(key(passage.title, corpus.analyzer), title, "name")] if title else []
                lines = [named, *in_sentences(passage.text, corpus.analyzer)]
                found.append((row, lines))
                having.update({one.key for line in lines for one in line})
                strong.update(one.key for line in lines for one in line if one.kind in STRONG)
            tools.stages.tick(corpus.size, corpus.size)
        drawn, spelled = Drawn(), set[str]()
        common, rare = (max(FEW, int(share * corpus.size)) for share in (COMMON, RARE))
        pairs = {one.key for _, lines in found for line in lines for one in line if one.kind == "pair"}
        often = {one: common if one in strong or one in pairs else rare for one in having}
        known = {one for one, n in having.items() if n <= often[one] and (one in strong or n > 1)}
        said = ([entity.key for line in lines for entity in line] for _, lines in found)
        own = [[one for one in dict.fromkeys(keys) if one in known] for keys in said]
        most = max(FEW, MENTIONED * int(median(map(len, own)))) if own else 0
        for (row, lines), keys in zip(found, own, strict=True):
            counted = set(keys[:most])
            for line in lines:
                kept = [one for one in line if one.key in counted]
                for one in kept:
                    if one.kind in STRONG and one.key not in spelled:  # "Burbank" before "burbank"
                        drawn.phrases[one.key] = one.shown
                        spelled.add(one.key)
                    drawn.phrases.setdefault(one.key, one.shown)
                    drawn.mentions[one.key, row] += 1
                for a, b in pairwise(kept):
                    drawn.relate(a.key, b.key)
        return drawn

    def make(self, corpus: Corpus, folder: Path, tools: Tools) -> int:
        """Write phrases, edges and vectors; returns the number of phrases."""
        drawn = self.draw(corpus, tools)
        phrases = sorted(drawn.phrases)
        place = {one: at for at, one in enumerate(phrases)}
        facts = sorted(drawn.facts)
        with tools.stages.stage("embed"):
            texts = [drawn.phrases[one] for one in phrases]
            tools.vectors().write(Listed([*texts, *facts]), folder, tools.stages.tick)
        vectors = np.load(folder / VECTORS, allow_pickle=False)[: len(phrases)]
        if len(phrases) >= max(1, tools.settings.exact_below):
            with tools.stages.stage("index vectors"):
                write_graph(vectors, folder / GRAPH)
        with tools.stages.stage("tie what is alike"):
            alike = _alike(vectors, folder, tools)
        passages: Counter[str] = Counter(one for one, _ in drawn.mentions)
        _lines_of(folder / PHRASES, ((one, drawn.phrases[one], passages[one]) for one in phrases))
        _lines_of(folder / FACTS, ((fact, *(place[one] for one in drawn.facts[fact])) for fact in facts))
        edges = [(place[one], len(phrases) + row, 1.0, 0) for one, row in drawn.mentions]
        edges += [(place[a], place[b], float(count), 1) for (a, b), count in drawn.relations.items()]
        edges += [(a, b, cosine, 2) for (a, b), cosine in alike.items()]
        a, b, weights, kinds = zip(*sorted(edges), strict=True) if edges else ((), (), (), ())
        array_files.save(folder / EDGES, np.array([a, b], np.int32).T)
        array_files.save(folder / WEIGHTS, np.array(weights, np.float32))
        array_files.save(folder / OF_KIND, np.array(kinds, np.uint8))
        return len(phrases)

    def open(self, corpus: Corpus, folder: Path, _settings: Settings, /) -> GraphIndex:
        """Look entities up and walk."""
        return GraphIndex(corpus, folder)


class TripleGraph(RuleGraph):
    """Phrases and relations as a language model states them."""

    name, version = "graph_triples", 2
    title = "graph of triples"
    cost = "one language model call per passage"
    uses_llm = True

    def draw(self, corpus: Corpus, tools: Tools, /) -> Drawn:
        """Ask about every passage; one without a usable reply has no phrase, and is counted."""
        rows = [(row, passage) for row, passage, _ in corpus.everything()]
        values = [{"title": one.title, "passage": one.text[:SHOWN], "n": str(PER_PASSAGE)} for _, one in rows]
        requests = [LLMRequest(TRIPLES.name, TRIPLES.fill(one), REPLY) for one in values]
        drawn, without = Drawn(), 0
        with tools.stages.stage("write triples"):
            for (row, _), reply in zip(rows, tools.ask_all(requests), strict=True):
                triples = read_triples(reply or "")
                without += not triples
                for subject, relation, thing in triples:
                    ends = key(subject, corpus.analyzer), key(thing, corpus.analyzer)
                    for one, shown in zip(ends, (subject, thing), strict=True):
                        drawn.phrases.setdefault(one, shown)
                        drawn.mentions[one, row] += 1
                    drawn.relate(*ends)
                    drawn.facts.setdefault(f"{subject} {relation} {thing}", ends)
        if without:
            tools.notes.append(f"{without} of {len(rows)} passages have no triple")
        return drawn


def read_triples(reply: str) -> list[tuple[str, str, str]]:
    """Parse the distinct triples of a reply, one per line with its three parts between bars; other lines are
    ignored, so that a truncated reply loses only its last line.
    """
    found: dict[tuple[str, str, str], None] = {}
    for line in reply_lines(reply):
        parts = [" ".join(part.split())[:LENGTH] for part in line.strip("| ").split("|")]
        if len(parts) == 3 and parts[0] and parts[2]:
            found.setdefault((parts[0], parts[1], parts[2]))
    return list(found)[:PER_PASSAGE]


def _alike(vectors: Matrix, folder: Path, tools: Tools) -> dict[tuple[int, int], float]:
    found: dict[tuple[int, int], float] = {}
    if len(vectors) < 2:
        return found
    graph = folder / GRAPH
    index = FaissIndex(vectors, graph if graph.exists() else None)
    for start in range(0, len(vectors), BLOCK):
        tools.stages.tick(start, len(vectors))
        near = index.near_many(vectors[start : start + BLOCK], NEIGHBOURS + 1)
        for at, rows in enumerate(near, start):
            for other, cosine in rows:
                if other != at and cosine >= ALIKE:
                    found[min(at, other), max(at, other)] = round(float(cosine), 4)
    tools.stages.tick(len(vectors), len(vectors))
    return found


def _lines_of(file: Path, values: Iterator[Sequence[Any]]) -> None:
    file.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in values), encoding="utf-8")


def _read(file: Path) -> list[list[Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n")[:-1]]


class GraphIndex:
    """Nodes are the phrases, then the corpus' passages by row. Safe in threads."""

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        """Open what a recipe made in `folder` for `corpus`."""
        phrases = _read(folder / PHRASES)
        self.phrases: list[str] = [shown for _, shown, _ in phrases]
        self.passages: list[int] = [count for _, _, count in phrases]  # that mention each phrase
        self.facts: list[tuple[str, int, int]] = [(text, a, b) for text, a, b in _read(folder / FACTS)]
        self._places = {found: at for at, (found, *_) in enumerate(phrases)}
        self._analyzer = corpus.analyzer
        vectors = mapped(folder / VECTORS)
        graph, count = folder / GRAPH, len(phrases)
        self._near = FaissIndex(vectors[:count], graph if graph.exists() else None) if count else None
        self._stated = FaissIndex(vectors[count:]) if self.facts else None
        self._ends = np.load(folder / EDGES, allow_pickle=False)
        self._weights = np.load(folder / WEIGHTS, allow_pickle=False)
        self._kinds = np.load(folder / OF_KIND, allow_pickle=False)
        self.graph = Graph(count + corpus.size, self._ends, self._weights)

    @property
    def edges(self) -> int:
        """Count the connected pairs of nodes."""
        return int(self.graph.edges.nnz // 2)

    def asked(self, text: str) -> tuple[dict[int, Entity], tuple[str, ...]]:
        """Return the phrases that a question names, with their wording, and its identifiers and names that
        are not in the graph.
        """
        found: dict[int, Entity] = {}
        unknown: dict[str, str] = {}
        for line in in_sentences(text, self._analyzer):
            for one in line:
                if (at := self._places.get(one.key)) is not None:
                    found.setdefault(at, one)
                elif one.kind in STRONG:
                    unknown[one.key] = one.shown
        return found, tuple(unknown.values())

    def nearest(self, vector: Vector) -> tuple[int, float] | None:
        """Return the phrase nearest to `vector`, shape (dim,), and its cosine, or None without phrases."""
        found = self._near.search(vector, 1) if self._near is not None else []
        return found[0] if found else None

    def stated(self, vector: Vector, k: int) -> list[tuple[str, int, int, float]]:
        """Return the `k` facts nearest to `vector`: their text, the phrases they connect, and their
        cosine.
        """
        found = self._stated.search(vector, k) if self._stated is not None and k else []
        return [(*self.facts[at], cosine) for at, cosine in found]

    def between(self, nodes: Sequence[int]) -> list[tuple[int, int, float, EdgeKind]]:
        """Return the edges among some nodes, as places in `nodes`: summed weights, the kind of the first."""
        place = {node: at for at, node in enumerate(nodes)}
        inside = np.isin(self._ends, list(nodes)).all(axis=1)
        weights: defaultdict[tuple[int, int], float] = defaultdict(float)
        kinds: dict[tuple[int, int], EdgeKind] = {}
        for at in np.flatnonzero(inside).tolist():
            a, b = (place[int(end)] for end in self._ends[at])
            weights[a, b] += float(self._weights[at])
            kinds.setdefault((a, b), KINDS[int(self._kinds[at])])
        return [(a, b, round(weight, 4), kinds[a, b]) for (a, b), weight in weights.items()]
