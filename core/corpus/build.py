"""Makes one index in a new folder, stage by stage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from core.backends import array_files, languages, sparse
from core.backends.sparse import BM25Index
from core.backends.terms import Analyzer, analyzer
from core.corpus import columns, embeddings, known_items, manifest, passages
from core.corpus.embeddings import KEYS, VECTORS, Vectors, keys, mapped
from core.corpus.passages import PassageStore
from core.corpus.served import Place
from core.corpus.source import Source
from core.corpus.stages import Progress as Progress
from core.corpus.stages import Stages as Stages
from core.corpus.types import Cut, DenseWeight, LoadReport, Skipped, count_unread
from core.domain.errors import BadInput

READ, CUT = "read documents", "cut into passages"
SAMPLE = 200  # passages used as questions to measure the recall of an approximate index


@dataclass(frozen=True, slots=True)
class Content:
    """The result of the first stage: enough to decide whether the index already exists."""

    documents: int
    passages: int
    fingerprint: str
    approximate: bool
    notes: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    analyzer: Analyzer
    languages: languages.Languages
    decides: tuple[Any, ...]  # besides the embedder

    @property
    def language(self) -> str:
        """The language as an analyzer is named."""
        return self.analyzer.language

    def fingerprint_by(self, identity: str) -> str:
        """Return the fingerprint of an index of this content by an embedder."""
        *first, approximate = self.decides
        facts = json.dumps([*first, identity, approximate])
        return hashlib.sha256(facts.encode()).hexdigest()[:16]


def read(source: Source, identity: str, exact_below: int, folder: Path, stages: Stages) -> Content:
    """Read and cut the documents into `folder`, and give the fingerprint of the index to be."""
    report, reading, number = LoadReport(), 0.0, 0

    def look() -> None:
        stages.tick(number, 0)

    def counted() -> Iterator[Cut]:
        nonlocal reading, number
        for cut in source.documents(report, look, lambda file: records.write(file.line())):
            number += 1
            look()
            reading += cut.read_ms
            yield cut

    with stages.stage(READ), (folder / manifest.READING).open("w", encoding="utf-8") as records:
        documents, count, digest = passages.write(counted(), source.chunking, folder / manifest.PASSAGES)
    # Text columns that no file has are a mistake in their names.
    chosen = source.reading.text_columns if source.reading.text_columns != columns.NONE else ()
    if chosen and not set(chosen) & {name.strip().lower() for name in report.columns}:
        known = ", ".join(report.columns) or "none, as there are no files of rows"
        raise BadInput(f"no file has a column {' or '.join(map(repr, chosen))}; there are: {known}")
    if not documents:
        why = "; ".join(report.notes()) or "it contains no documents"
        raise BadInput(f"{source.path or 'the installed packages'}: nothing readable is left: {why}")
    # They take turns, document by document: what is not reading is cutting and storing.
    stages.ms = {READ: reading, CUT: max(0.0, stages.ms[READ] - reading)}
    approximate = count >= max(1, exact_below)
    language, notes = source.language, report.notes()
    file = folder / manifest.PASSAGES
    with stages.stage("find languages"), closing(passages.PassageStore(file)) as store:
        found = languages.of_corpus(store.texts())
    if language == languages.AUTO:
        language = found.name
        if language != languages.FALLBACK:
            notes = (*notes, found.describe())
    # The built-in corpora stay as they are: recorded answers come from their rankings.
    how = analyzer(language, identifiers=source.kind == "indexed")
    facts = manifest.FORMAT, digest, asdict(source.chunking), how.record(), [sparse.K1, sparse.B]
    decides = (*facts, approximate)
    content = Content(documents, count, "", approximate, notes, report.skipped, how, found, decides)
    return replace(content, fingerprint=content.fingerprint_by(identity))


def finish(
    source: Source,
    content: Content,
    vectors: Vectors,
    folder: Path,
    stages: Stages,
    place: Place | None = None,
) -> None:
    """Build the rest of the index in `folder`, after `read`; with `place` passages and vectors are stored
    there. Existing parts are not built again.
    """
    known = place.known(content.fingerprint) if place is not None else None
    recall, elsewhere = 1.0, 0
    with closing(passages.PassageStore(folder / manifest.PASSAGES)) as store:
        with stages.stage("index words"):
            sparse.write_index(
                store.texts(),
                folder / manifest.BM25,
                content.analyzer,
                lambda row: stages.tick(row, content.passages),
            )
        if known is not None:
            dim, reused = int(known["dim"]), content.passages
            recall, elsewhere = float(known["recall"]), int(known["bytes"])
            dense_weight = TypeAdapter(DenseWeight).validate_python(known["dense_weight"])
            array_files.save(folder / KEYS, keys(store, vectors.identity))
        else:
            with stages.stage("embed"):
                dim, reused = vectors.write(store, folder, stages.tick)
            dense_weight = _dense_weight(
                store, content.fingerprint, folder / manifest.BM25, folder, vectors, stages
            )
        with stages.stage("count unread text"):
            unread = count_unread(store.texts(), vectors.name, stages.tick)
        if place is not None and known is None:
            about = content.fingerprint, store, mapped(folder / VECTORS)
            recall, elsewhere = place.put(*about, content.language, content.approximate, dense_weight, stages)
    if place is not None:
        for file in (manifest.PASSAGES, VECTORS):
            (folder / file).unlink(missing_ok=True)
    elif content.approximate:
        recall = _graph(folder, stages)
    with stages.stage("check"):
        info = manifest.CorpusInfo(
            name=source.name,
            fingerprint=content.fingerprint,
            documents=content.documents,
            passages=content.passages,
            chunking=source.chunking,
            language=content.language,
            vector_index="hnsw" if content.approximate else "flat",
            notes=content.notes,
            skipped=content.skipped,
            place=place.place if place is not None else "",
            dense_weight=dense_weight,
            unread=unread,
            languages=content.languages.passages,
            unclear=content.languages.unclear,
            foreign=content.languages.foreign,
            **_facts(vectors, dim, reused, recall, folder, stages),
        )
        info = replace(info, bytes=info.bytes + elsewhere)
        manifest.seal(folder, asdict(info))


def add_vectors(
    base: manifest.CorpusInfo,
    fingerprint: str,
    store: PassageStore,
    words: Path,
    vectors: Vectors,
    folder: Path,
    stages: Stages,
) -> None:
    """Write another embedder's vectors of the passages of the index `base`, whose BM25 index is in `words`,
    into `folder`.
    """
    stages.ms.clear()
    with stages.stage(f"embed by {vectors.name}"):
        dim, reused = vectors.write(store, folder, stages.tick)
    dense_weight = _dense_weight(store, fingerprint, words, folder, vectors, stages)
    recall = _graph(folder, stages) if base.vector_index == "hnsw" else 1.0
    info = replace(
        base,
        fingerprint=fingerprint,
        notes=(),
        skipped=(),
        of=base.fingerprint,
        dense_weight=dense_weight,
        unread=None,
        **{"tokens": 0, "cost": None, **_facts(vectors, dim, reused, recall, folder, stages)},
    )
    manifest.seal(folder, asdict(info))


def _facts(
    vectors: Vectors, dim: int, reused: int, recall: float, folder: Path, stages: Stages
) -> dict[str, Any]:
    """Return what an index records of its vectors."""
    by = {"embedder": vectors.name, "embedder_identity": vectors.identity, **vectors.paid()}
    made = {"built_at": manifest.now(), "build_ms": stages.taken(), "bytes": size_of(folder)}
    return {**by, **made, "dim": dim, "reused": reused, "recall": recall}


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _dense_weight(
    store: PassageStore, fingerprint: str, words: Path, folder: Path, vectors: Vectors, stages: Stages
) -> DenseWeight:
    """Measure the weight of the vectors in `folder` next to the BM25 index in `words`, unless it is
    shipped.
    """
    with stages.stage("weigh dense search"):
        if (shipped := embeddings.shipped_weight(vectors.identity, fingerprint)) is not None:
            return shipped
        made = mapped(folder / VECTORS)
        return known_items.weigh(store, BM25Index(words, len(made)), made, vectors, folder, stages)


def _graph(folder: Path, stages: Stages) -> float:
    """Build the HNSW graph and measure it against the exact search on some of the passages."""
    from core.backends.vector import FaissIndex, write_graph

    with stages.stage("index vectors"):
        vectors = mapped(folder / VECTORS)
        write_graph(vectors, folder / manifest.GRAPH)
        sample = np.random.default_rng(0).choice(len(vectors), min(SAMPLE, len(vectors)), replace=False)
        return FaissIndex(vectors, folder / manifest.GRAPH).recall(sample)
