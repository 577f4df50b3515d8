"""Builds, refreshes and opens indexes; each lives in a folder named by the fingerprint of its content."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from core.backends.array_files import unwritable
from core.backends.base import Embedder
from core.backends.embedder import identity, load_embedder
from core.corpus import build as builder
from core.corpus import catalogue, endings, manifest, served, table, variants
from core.corpus.build import Progress
from core.corpus.chunk import Chunking
from core.corpus.corpus import Corpus
from core.corpus.embeddings import KEYS, VECTORS, Checkpoint, Keys, Vectors
from core.corpus.enrichments import store as enrichments
from core.corpus.helpers import Helpers
from core.corpus.index_record import CURRENT, _home, current, current_fingerprint, names, recorded, replaced
from core.corpus.lock import alone
from core.corpus.manifest import CorpusInfo
from core.corpus.source import Source
from core.domain import people
from core.domain.errors import BadInput, IndexDamaged, Unavailable
from core.domain.program import COMMAND
from core.domain.settings import Settings

__all__ = ["Corpus", "CorpusInfo", "build", "current_fingerprint", "open_corpus"]

log = logging.getLogger(__name__)


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
) -> Corpus:
    """Build or refresh the index of `source` (a known corpus' name or a path) and open it.

    What has not changed is not done again: an index of the same content is opened as it is, a text embedded
    before is not embedded again, and a build that was stopped goes on where it was. `helpers` embed in place
    of this process. Raises BadInput, Unavailable, Cancelled.
    """
    wanted = catalogue.source(source, settings=settings, name=name, chunking=chunking, language=language)
    if wanted.kind == "table":
        wanted.stamp()  # says that it is not indexed
    home = _home(wanted.name, settings)
    try:
        home.mkdir(parents=True, exist_ok=True)
        with alone(home / ".lock", cancel or threading.Event()):
            stages = builder.Stages(progress, cancel or threading.Event())
            return _build(wanted, home, settings, stages, embedder, helpers)
    except (OSError, sqlite3.Error) as error:
        raise unwritable("the index", home, error) from error


def build_each(
    sources: Sequence[Source],
    *,
    settings: Settings,
    progress: Progress = lambda _stage, _done, _total: None,
    cancel: threading.Event | None = None,
    helpers: Helpers | None = None,
) -> Iterator[Corpus]:
    """Build or refresh one after the other: each stands once it is given, whatever becomes of the next.

    Texts that one chunking of a source embedded are not embedded again by another. Raises as `build` does.
    """
    for place, source in enumerate(sources, 1):
        where = f"{source.name} ({place} of {len(sources)}): " if len(sources) > 1 else f"{source.name}: "

        def told(stage: str, done: int, total: int, where: str = where) -> None:
            progress(where + stage, done, total)

        yield build(None, source, settings=settings, progress=told, cancel=cancel, helpers=helpers)


def open_corpus(
    name: str,
    *,
    settings: Settings,
    progress: Progress = lambda _stage, _done, _total: None,
    cancel: threading.Event | None = None,
) -> Corpus:
    """Open an indexed corpus; a damaged index is never used but rebuilt, with `Corpus.warnings` saying so.

    Raises BadInput for an unknown name, Unavailable when it is not built or its embedding model changed.
    """
    if table.is_table(name, settings):
        return table.TableCorpus(name, settings)
    found = current(name, settings)
    if found is None:
        catalogue.source(name, settings=settings, known_only=True)
        raise Unavailable(f"corpus {name} is not built: run {COMMAND} index {name}")
    while True:
        try:
            recorded(found)
            corpus = _opened(found.folder, settings)
        except IndexDamaged as error:
            if (now := replaced(found, settings)) is not None:
                found = now  # a build deleted it while it was read: never rebuilt the way it was before
                continue
            log.warning("%s; rejected and built again", error)
            corpus = build(None, found.source, settings=settings, progress=progress, cancel=cancel)
            corpus.warnings = (f"{error}; it was rejected and built again",)
        break
    if identity(corpus.info.embedder) != corpus.info.embedder_identity:
        raise Unavailable(
            f"the embedding model {corpus.info.embedder} has changed since corpus {name} was indexed:"
            f" run {COMMAND} index {name}"
        )
    return corpus


def remove(name: str, *, settings: Settings) -> None:
    """Delete the index of a corpus with its enrichments and its other chunkings, never its source; BadInput
    when there is none.
    """
    people.require("delete")
    home = _home(name, settings)
    if home.name not in names(settings):
        raise BadInput(
            f"corpus {name!r} has no index; indexed corpora: {', '.join(names(settings)) or 'none'}"
        )
    for variant in variants.made(home.name, settings):
        remove(variant, settings=settings)
    with alone(home / ".lock", threading.Event()):
        if (found := current(home.name, settings)) is not None and found.source.place:
            try:
                served.Place(home.name, found.source.place, settings).clear()
            except Unavailable as error:  # a server that is gone is no reason to keep its record
                log.warning("the tables of %s were not deleted: %s", name, error)
        (home / CURRENT).unlink()
        shutil.rmtree(home, ignore_errors=True)
    enrichments.remove(name, settings)
    people.record("index deleted", name)


def _build(
    source: Source,
    home: Path,
    settings: Settings,
    stages: builder.Stages,
    given: Embedder | None,
    helpers: Helpers | None,
) -> Corpus:
    before = current(source.name, settings)
    former = [before.folder] if before else []
    former = [one for one in (*former, *_siblings(source.name, settings)) if _usable(one, (KEYS, VECTORS))]
    place = served.Place(source.name, source.place, settings) if source.place else None
    called = given.name if given is not None else settings.embedder
    known_as = called if given is not None else identity(called)
    stamp, source_content = source.stamp(), source.content()
    checkpoint = Checkpoint(home, known_as)
    for leftover in home.glob(".new-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(dir=home, prefix=".new-"))
    try:
        content = builder.read(source, known_as, settings.exact_below, folder, stages)
        target = home / content.fingerprint
        usable = _usable(target, name=source.name)
        if usable is None or not _is_there(usable, source, place):
            load = cache(lambda: given or load_embedder(called, settings=settings))
            here = [one for one in former if not manifest.read(one)[0].place]
            others = [one for path in former if (one := _vectors(path, settings)) is not None]
            vectors = Vectors(called, known_as, load, here, checkpoint, helpers, others)
            builder.finish(source, content, vectors, folder, stages, place)
            if target.exists():
                target.rename(folder.with_suffix(".damaged"))
            folder.rename(target)
        else:
            manifest.remark(target, content.notes, content.skipped, folder / manifest.READING)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    corpus = _opened(target, settings)
    _point(home, {
        "fingerprint": content.fingerprint, "stamp": stamp, "content": source_content,
        "source": source.record(), "read": list(endings.READ),
    })  # fmt: skip
    checkpoint.clear()
    for other in home.iterdir():
        if other.is_dir() and other != target:
            shutil.rmtree(other, ignore_errors=True)
    if place is not None:
        place.clear(keep=content.fingerprint)
    if before is not None and before.source.place not in ("", source.place):
        try:
            served.Place(source.name, before.source.place, settings).clear()
        except Unavailable as error:
            log.warning("the earlier index of %s was not deleted: %s", source.name, error)
    return corpus


def _opened(folder: Path, settings: Settings) -> Corpus:
    """The index in `folder`, wherever its passages are. Raises IndexDamaged, Unavailable."""
    if manifest.read(folder)[0].place:
        return served.ServedCorpus(folder, settings)
    try:
        return Corpus(folder)
    except FileNotFoundError as error:  # deleted since its files were checked
        raise IndexDamaged(f"index file {error.filename} cannot be read: {error.strerror}") from error


def _is_there(folder: Path, source: Source, place: served.Place | None) -> bool:
    """Whether the index in `folder` is kept where it is wanted, and stands there as a whole."""
    info = manifest.read(folder)[0]
    return info.place == source.place and (place is None or place.known(info.fingerprint) is not None)


def _vectors(folder: Path, settings: Settings) -> tuple[Keys, served.Former] | None:
    """The keys and vectors of an earlier index in a database; None for one in files, or where it is gone."""
    info = manifest.read(folder)[0]
    if not info.place:
        return None
    try:
        found = served.Place(info.name, info.place, settings).vectors(info)
    except Unavailable as error:
        log.warning("the vectors of %s are not taken over: %s", info.name, error)
        return None
    return (np.load(folder / KEYS, allow_pickle=False), found) if found is not None else None


def _siblings(name: str, settings: Settings) -> list[Path]:
    """The indexes of the same source cut in other ways: many of their texts are the same."""
    base = variants.base_of(name)
    others = [other for other in (base, *variants.made(base, settings)) if other != name]
    return [found.folder for other in others if (found := current(other, settings)) is not None]


def _usable(folder: Path, only: Collection[str] = (), name: str | None = None) -> Path | None:
    """`folder` if it holds an undamaged index (of corpus `name`), or `only` these files are undamaged."""
    if not folder.is_dir():
        return None
    try:
        info = manifest.verify(folder, only)
        if name is not None and info.name != name:
            raise IndexDamaged(f"the index in {folder} is of corpus {info.name!r}")
    except IndexDamaged as error:
        log.warning("%s; it is not used", error)
        return None
    return folder


def _point(home: Path, record: dict[str, object]) -> None:
    """Put the index in force, in one step."""
    scratch = home / f".{CURRENT}"
    scratch.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    os.replace(scratch, home / CURRENT)
