"""Corpora with unrelated passages around their own, to measure what more text costs each way of searching."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from core.backends.base import Embedder
from core.backends.embedder import NoVectors
from core.backends.hosted_embedder import HostedEmbedder, about_tokens
from core.corpus import catalogue, index
from core.corpus.chunk import sentences
from core.corpus.corpus import Corpus
from core.corpus.embeddings import Begin, Estimate
from core.corpus.index import NOISE
from core.corpus.source import Kind, Source, slug
from core.corpus.types import Cut, Document
from core.domain.errors import BadInput
from core.domain.settings import Settings

SEED = 39
SENTENCES, WORDS = 2, 4  # in a generated passage; in a sentence, at least
PROBE = 32  # texts embedded to estimate the time


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisySource(Source):
    """The passages of `base` as they are, and `added` others, each a document of its own: those of `others`,
    then generated ones.
    """

    base: Corpus
    others: Sequence[Corpus]
    added: int

    def documents(self, *_: Any) -> Iterator[Cut]:
        """Yield the documents of `base` with the borders of their passages, then the others."""
        for document, pieces in self.base.whole():
            yield Cut(document, [(piece.start, piece.end) for piece in pieces])
        own = (one for other in self.others for _, one, _ in other.everything())
        texts = chain(((one.title, one.text) for one in own), (("", text) for text in generated(self.others)))
        for number, (title, text) in enumerate(islice(texts, self.added)):
            yield Cut(Document(f"{NOISE}/{number:07}", title, text), [(0, len(text))])


def generated(others: Sequence[Corpus]) -> Iterator[str]:
    """Yield passages without end, each of SENTENCES sentences drawn from all passages of `others`. Raises
    BadInput if these have no sentence.
    """
    texts = (passage.text for other in others for _, passage, _ in other.everything())
    spans = ((text, *span) for text in texts for span in sentences(text, 0, len(text)))
    pool = [text[start:end] for text, start, end in spans if len(text[start:end].split()) >= WORDS]
    if not pool:
        raise BadInput("unrelated passages cannot be generated: the corpora given have no sentences")
    draw = random.Random(SEED)
    while True:
        yield " ".join(draw.choices(pool, k=SENTENCES))


def lacking(base: Corpus, others: Sequence[Corpus], times: int) -> int:
    """Return how many of the passages that make `times` as many as `base` has are not in `others`."""
    return max(0, times * base.size - sum(other.size for other in others))


def build(
    base: Corpus,
    others: Sequence[Corpus],
    times: int,
    *,
    settings: Settings,
    embedder: Embedder,
    begin: Begin,
    **how: Any,
) -> tuple[Settings, Corpus]:
    """Build `base` with `times` as many unrelated passages, and return the settings that it is opened with.

    The vectors of `base` and `others` are not made again, and none if the embedder is NoVectors. `begin` gets
    the cost of embedding what is generated before it begins. An index that exists is reused. `how` are
    arguments of `index.build`, which raises the errors.
    """
    if base.folder is None or base.name in (names := [other.name for other in others]):
        raise BadInput(f"{base.name}: unrelated passages are added to an index, from other corpora")
    inside = settings.model_copy(update={"home": settings.home / NOISE})
    kind: Kind = "indexed" if base.analyzer.identifiers else "built-in"
    info = base.info
    words = isinstance(embedder, NoVectors)
    if words:  # a graph of vectors that are all equal would take hours
        inside = inside.model_copy(update={"exact_below": sys.maxsize})
    level = f"x{times}-words" if words else f"x{times}"
    name = slug("-".join((base.name[:40], level, *names)).replace("@", "-"))
    more: Any = {"base": base, "others": others, "added": times * base.size, "embedders": (embedder.name,)}
    about = ", ".join((base.name, *names))  # `index.remove` reads it
    source = NoisySource(name, kind, None, info.chunking, info.language, about, **more)
    count = lacking(base, others, times)
    known = words or catalogue.current(name, inside) is not None
    if count and not known and not isinstance(embedder, HostedEmbedder):
        texts, began = list(islice(generated(others), PROBE)), time.perf_counter()
        embedder.embed(texts)
        seconds = count / PROBE * (time.perf_counter() - began)
        tokens = count * sum(map(about_tokens, texts)) // PROBE
        begin(Estimate(info.embedder, count, tokens, 0.0, seconds, False))
    made = (catalogue.current(one, inside) for one in catalogue.names(inside))
    former = [one.folder for one in (base, *others, *made) if one is not None and one.folder is not None]
    return inside, index.build(None, source, settings=inside, former=former, begin=begin, **how)
