"""Builds, refreshes and opens indexes; each lives in a folder named by the fingerprint of its content."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from core.backends.array_files import unwritable
from core.backends.base import Embedder
from core.backends.embedder import embedder_identity, load_embedder
from core.backends.pgvector import PgVectorIndex
from core.corpus import build as builder
from core.corpus import catalogue, endings, manifest, served, states
from core.corpus.build import Progress
from core.corpus.catalogue import CURRENT, current, current_fingerprint, home_of, names, opened
from core.corpus.chunk import Chunking
from core.corpus.corpus import Corpus, Further
from core.corpus.embeddings import KEYS, VECTORS, Begin, Checkpoint, Keys, Vectors, gate
from core.corpus.enrichments import store as enrichments
from core.corpus.helpers import Helpers
from core.corpus.known_items import KEPT
from core.corpus.manifest import CorpusInfo
from core.corpus.passages import PassageStore
from core.corpus.source import Source, base_of
from core.corpus.stages import alone
from core.domain import people, system
from core.domain.errors import BadInput, IndexDamaged, Unavailable
from core.domain.settings import Settings

__all__ = ["Corpus", "CorpusInfo", "build", "current_fingerprint", "open_corpus"]

log = logging.getLogger(__name__)
NOISE = "noise"  # the folder in the home folder with corpora that have unrelated passages around them


@dataclass(frozen=True, slots=True)
class _IndexBuild:
    """The settings, tools and earlier indexes that a build uses."""

    home: Path  # of the corpus' indexes
    settings: Settings
    stages: builder.Stages
    helpers: Helpers | None
    begin: Begin
    former: list[Path] = field(default_factory=list)  # indexes with sound vectors

    def vectors(self, name: str, identity: str, given: Embedder | None = None, **more: Any) -> Vectors:
        """Return the source of vectors by an embedder."""
        load = cache(lambda: given or load_embedder(name, settings=self.settings))
        point = Checkpoint(self.home, identity)
        return Vectors(name, identity, load, self.former, point, self.helpers, begin=self.begin, **more)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Make a new folder, which is deleted unless it was renamed."""
        folder = Path(tempfile.mkdtemp(dir=self.home, prefix=".new-"))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def build(
    name: str | None,
    source: Source | str | Path,
    *,
    settings: Settings,
    progress: Progress = lambda _stage, _done, _total: None,
    cancel: threading.Event | None = None,
    chunking: Chunking | None = None,
    language: str | None = None,
    embedder: Embedder | None = None,
    helpers: Helpers | None = None,
    begin: Begin | None = None,
    former: Sequence[Path] = (),
) -> Corpus:
    """Build or refresh the index of `source` (a known corpus' name or a path) and open it.

    Unchanged parts are reused: an index of the same content is opened, no text is embedded twice, and a
    stopped build resumes. `helpers` embed instead of this process. `begin` receives the estimated cost of a
    service before it is called; by default it rejects costs above the limits of the settings. `former` are
    the folders of sound indexes of other corpora with the same texts. Raises BadInput (NotConfirmed),
    Unavailable, Cancelled.
    """
    wanted = catalogue.source(source, settings=settings, name=name, chunking=chunking, language=language)
    if wanted.kind == "table":
        wanted.stamp()  # says that it is not indexed
    home, stages = home_of(wanted.name, settings), builder.Stages(progress, cancel or threading.Event())
    work = _IndexBuild(home, settings, stages, helpers, begin or gate(settings, confirmed=False), [*former])
    try:
        home.mkdir(parents=True, exist_ok=True)
        with alone(home / ".lock", stages.cancel):
            return _build(wanted, work, embedder)
    except (OSError, sqlite3.Error) as error:
        raise unwritable("the index", home, error) from error


def build_each(
    sources: Sequence[Source],
    *,
    progress: Progress = lambda _stage, _done, _total: None,
    **how: Any,
) -> Iterator[Corpus]:
    """Build or refresh one after the other: each stands once it is given, whatever becomes of the next.

    Texts that one chunking of a source embedded are not embedded again by another. `how` are arguments of
    `build`, which raises the errors.
    """
    for place, source in enumerate(sources, 1):
        where = f"{source.name} ({place} of {len(sources)}): " if len(sources) > 1 else f"{source.name}: "

        def told(stage: str, done: int, total: int, where: str = where) -> None:
            progress(where + stage, done, total)

        yield build(None, source, progress=told, **how)


def open_corpus(name: str, *, settings: Settings) -> Corpus:
    """Open an indexed corpus; a damaged index is never used but rebuilt, with `Corpus.warnings` saying so.

    Raises BadInput for an unknown name, Unavailable if it is not built or its embedding model changed.
    """
    kept = catalogue.held(name, settings)
    try:
        return kept.open()
    except IndexDamaged as error:
        log.warning("%s; rejected and built again", error)
        build(None, kept.source, settings=settings).close()
        corpus = kept.open()
        corpus.warnings = (f"{error}; it was rejected and built again",)
        return corpus


def by_embedder(corpus: Corpus, embedder: str, *, settings: Settings) -> Corpus:
    """Return the corpus with the vectors of `embedder`, "" for its own. Raises Unavailable with the command
    that builds them if it has none: another embedder's are never used instead.
    """
    if corpus.info.of:
        return by_embedder(corpus.base, embedder, settings=settings)
    if not embedder and corpus.chosen:
        return corpus
    name = embedder or settings.embedder
    wanted = embedder_identity(name, settings)
    if wanted == corpus.info.embedder_identity:
        return corpus
    found = folder_of(corpus.name, wanted, settings)
    try:
        info = manifest.read(found)[0] if (found / manifest.NAME).is_file() else None
        if info is not None and (info.of, info.embedder_identity) == (corpus.fingerprint, wanted):
            return Further(corpus, found)
    except IndexDamaged as error:
        log.warning("%s; it is not used", error)
    raise Unavailable(catalogue.missing_vectors(name, corpus.info, settings))


def folder_of(corpus: str, identity: str, settings: Settings) -> Path:
    """Return the folder of the vectors of a further embedder, which may not exist yet."""
    return (
        home_of(corpus, settings) / f"{catalogue.FURTHER}{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    )


def remove(name: str, *, settings: Settings) -> None:
    """Delete the index of a corpus with its enrichments, its other chunkings and the indexes of NOISE that
    have its text, never its source. Raises BadInput if it does not exist.
    """
    people.require("delete")
    home = home_of(name, settings)
    if home.name not in names(settings):
        raise BadInput(
            f"corpus {name!r} has no index; indexed corpora: {', '.join(names(settings)) or 'none'}"
        )
    for variant in catalogue.indexed_variants(home.name, settings):
        remove(variant, settings=settings)
    inside = settings.model_copy(update={"home": settings.home / NOISE})
    for noisy in names(inside):
        made = current(noisy, inside)
        if made is None or home.name in made.source.title.split(", "):
            remove(noisy, settings=inside)
    with alone(home / ".lock", threading.Event()):
        if (found := current(home.name, settings)) is not None and found.source.place:
            _clear(home.name, found.source.place, settings)
        (home / CURRENT).unlink()
        shutil.rmtree(home, ignore_errors=True)
    enrichments.remove(name, settings)
    people.record("index deleted", name)


def _build(source: Source, work: _IndexBuild, given: Embedder | None) -> Corpus:
    home, settings, before = work.home, work.settings, current(source.name, work.settings)
    if given is not None and given.name != settings.embedder:
        source = replace(source, embedders=(given.name,))
    if len(source.embedders) > 1 and source.place:
        raise BadInput(
            f"corpus {source.name} is in PostgreSQL, where it has the vectors of one embedder; for several"
            " keep the index in files (--in files)"
        )
    own = [one for one in home.iterdir() if one.is_dir() and not one.name.startswith(".")]
    base = base_of(source.name)  # the source's other chunkings share many texts
    others = [one for one in (base, *catalogue.indexed_variants(base, settings)) if one != source.name]
    own += [found.folder for one in others if (found := current(one, settings)) is not None]
    former = [one for one in own if _usable(one, (KEYS, VECTORS, KEPT))]
    work.former.extend(former)
    place = served.Place(source.name, source.place, settings) if source.place else None
    called = given.name if given is not None else source.embedder(settings)
    known_as = called if given is not None else embedder_identity(called, settings)
    stamp, source_content = source.stamp(), source.content()
    for leftover in home.glob(".new-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with work.scratch() as folder:
        content = builder.read(source, known_as, settings.exact_below, folder, work.stages)
        target = home / content.fingerprint
        there = _usable(target, name=source.name)
        if (
            there is not None
            and there.place == source.place
            and (place is None or place.known(there.fingerprint) is not None)
        ):
            manifest.remark(target, content.notes, content.skipped, folder / manifest.READING)
        else:
            elsewhere = [one for path in former if (one := _served_vectors(path, settings)) is not None]
            vectors = work.vectors(called, known_as, given, elsewhere=elsewhere)
            builder.finish(source, content, vectors, folder, work.stages, place)
            if target.exists():
                target.rename(folder.with_suffix(".damaged"))
            folder.rename(target)
    corpus = opened(target, settings)
    facts = {"fingerprint": content.fingerprint, "stamp": stamp, "content": source_content}
    record = {**facts, "source": source.record(), "read": list(endings.READ)}
    scratch = home / f".{CURRENT}"
    scratch.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    system.replace(scratch, home / CURRENT)  # from here on it is the active one
    Checkpoint(home, known_as).clear()
    states.keep(home, corpus)
    corpus.chosen = bool(source.embedders)
    kept = {target, *(_add(corpus, name, content, work) for name in source.embedders[1:])}
    for other in home.iterdir():
        if other.is_dir() and other not in kept:
            shutil.rmtree(other, ignore_errors=True)
    if place is not None:
        place.clear(keep=content.fingerprint)
    if before is not None and before.source.place not in ("", source.place):
        _clear(source.name, before.source.place, settings)
    return corpus


def _add(corpus: Corpus, name: str, content: builder.Content, work: _IndexBuild) -> Path:
    """Make the vectors of a further embedder, unless they are there; the folder that holds them."""
    identity = embedder_identity(name, work.settings)
    target, own = folder_of(corpus.name, identity, work.settings), work.home / corpus.fingerprint
    there = _usable(target, name=corpus.name)
    if there is not None and there.of == corpus.fingerprint:
        return target
    work.former.append(own)
    vectors = work.vectors(name, identity)
    with work.scratch() as folder, closing(PassageStore(own / manifest.PASSAGES)) as store:
        fingerprint, words = content.fingerprint_by(identity), own / manifest.BM25
        builder.add_vectors(corpus.info, fingerprint, store, words, vectors, folder, work.stages)
        shutil.rmtree(target, ignore_errors=True)
        folder.rename(target)
    vectors.checkpoint.clear()
    return target


def _served_vectors(folder: Path, settings: Settings) -> tuple[Keys, PgVectorIndex] | None:
    """Return the keys and vectors of an earlier index in a database; None for an index in files or a deleted
    one.
    """
    info = manifest.read(folder)[0]
    if not info.place:
        return None
    try:
        found = served.Place(info.name, info.place, settings).vectors(info)
    except Unavailable as error:
        log.warning("the vectors of %s are not taken over: %s", info.name, error)
        return None
    return (np.load(folder / KEYS, allow_pickle=False), found) if found is not None else None


def _clear(name: str, place: str, settings: Settings) -> None:
    """Delete the tables of a corpus in a database; a server that is gone is no reason to keep its record."""
    try:
        served.Place(name, place, settings).clear()
    except Unavailable as error:
        log.warning("the tables of %s were not deleted: %s", name, error)


def _usable(folder: Path, only: Collection[str] = (), name: str | None = None) -> CorpusInfo | None:
    """Return the record of the index in `folder`, or None if it is missing, damaged or not of corpus `name`.
    With `only`, damage to other files does not count.
    """
    if not folder.is_dir():
        return None
    try:
        info = manifest.verify(folder, only)
        if name is not None and info.name != name:
            raise IndexDamaged(f"the index in {folder} is of corpus {info.name!r}")
    except IndexDamaged as error:
        log.warning("%s; it is not used", error)
        return None
    return info
