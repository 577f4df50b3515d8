"""Every corpus there is: built-in ones, those the user indexed, tables in place, each with its state."""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.backends.embedder import embedder_identity
from core.backends.languages import AUTO
from core.backends.terms import analyzer
from core.corpus import manifest, served, table
from core.corpus.chunk import WHOLE, Chunking
from core.corpus.corpus import Corpus, no_full_text
from core.corpus.manifest import CorpusInfo
from core.corpus.served import dsn_of, passages_of
from core.corpus.source import Known as Known
from core.corpus.source import (
    Source,
    State,
    base_of,
    check_varies,
    fits,
    from_path,
    from_record,
    is_slug,
    key_of,
    slug,
    variant_of,
    variant_order,
    variants_named,
)
from core.corpus.types import Reading
from core.domain.errors import BadInput, IndexDamaged, Unavailable
from core.domain.needs import Need
from core.domain.once import Recent
from core.domain.postgres import Dsn
from core.domain.program import COMMAND
from core.domain.settings import PROJECT, Settings
from core.domain.text import tokens

CURRENT = "current.json"
FURTHER = "vectors-"  # folders of an index with the vectors of other embedders
DATA = PROJECT / "data"
log = logging.getLogger(__name__)
SHIPPED = ("support", "web")  # their documents come with the program
_SHOP = "An online shop's help and payment documents"
_WEB = "Stored web pages, searched in place of the live web"
_BUILT_IN = (
    Source("support", "built-in", DATA / "support" / "documents", Chunking(), title=_SHOP),
    Source("pydocs", "built-in", None, WHOLE, title="Docstrings of the installed Python packages"),
    Source("web", "snapshot", DATA / "web" / "documents", Chunking(), title=_WEB),
)
BUILT_IN: Mapping[str, Source] = {source.name: source for source in _BUILT_IN}
LOOK_AGAIN_S = 5.0  # a source is looked at for changes no more often
_changed: Recent[tuple[Source, Path], tuple[float, bool]] = Recent(256)  # by index: when looked at, and found


@dataclass(frozen=True, slots=True)
class Current:
    """The active index of a name."""

    folder: Path
    source: Source  # where it came from
    stamp: str  # the source's state, over the files of the endings in `read`
    read: tuple[str, ...]
    content: str  # a hash of the bytes of the source; empty if it was not made


@dataclass(frozen=True, slots=True)
class Indexed:
    """A corpus that is, or can be, indexed by this program."""

    name: str
    settings: Settings

    @property
    def source(self) -> Source:
        """Return its source. Raises BadInput for a name that is not known."""
        return source(self.name, settings=self.settings, known_only=True)

    def describe(self) -> Known:
        """Describe the corpus by the record of its index, which is not read itself."""
        name, settings = self.name, self.settings
        why = unreadable(name, settings) if name in names(settings) else None
        try:
            origin = self.source
        except BadInput:
            if why is None:
                raise
            way = f"{COMMAND} index PATH --name {name}, or delete it on the page Corpus"
            reason = f"{why}. Index its source again: {way}"
            return Known(name, name, "indexed", "damaged", reason, "no longer known", True)
        where = str(origin.path) if origin.path else "installed packages"
        chunking_of = base if (base := base_of(origin.name)) != origin.name else None
        about = (origin.name, origin.title or where, origin.kind)
        again = f"run: {COMMAND} index {origin.name}"
        known = Known(*about, "not built", again, where, origin.kind != "snapshot", chunking_of=chunking_of)
        if why is not None:
            return replace(known, state="damaged", reason=f"{why}. Build it again: {again[5:]}")
        found = current(origin.name, settings)
        if found is None:
            return known
        try:
            info = recorded(found)
        except IndexDamaged as error:
            if replaced(found, settings) is not None:
                return self.describe()
            reason = f"{error}. Build it again: {again[5:]}"
            return replace(known, state="damaged", reason=reason, fingerprint=found.folder.name)
        state, reason = _freshness(origin, found, info, settings)
        return replace(known, state=state, reason=reason, fingerprint=info.fingerprint, info=info)

    def fingerprint(self) -> str | None:
        """Return the fingerprint of the active index, or None."""
        found = current(self.name, self.settings)
        return found.folder.name if found else None

    def text_size(self) -> tuple[int, int] | None:
        """Return the number of passages of the index and the bytes (UTF-8) of their texts and titles; None
        without one. Above `llm_context` passages the bytes are 0, as so many are never read whole.
        """
        found = current(self.name, self.settings)
        try:
            most = self.settings.llm_context
            return _text_size(found.folder, most, dsn(found, self.settings)) if found else None
        except (OSError, sqlite3.Error, IndexDamaged, Unavailable) as error:
            log.warning("%s cannot be read, so the corpus counts as not built: %s", self.name, error)
            return None

    def lacks(self) -> dict[Need, str]:
        """Explain which searches by default the index does not have. Opens nothing."""
        found = current(self.name, self.settings)
        lacks = {} if found and found.source.place else {Need.FULL_TEXT: no_full_text(self.name)}
        if found is None or found.source.embedders:
            return lacks
        try:
            info = manifest.read(found.folder)[0]
        except IndexDamaged:
            return lacks  # opening it reports the damage
        wanted = embedder_identity(self.settings.embedder, self.settings)
        if wanted in (one.embedder_identity for one in (info, *further(info, self.settings))):
            return lacks
        return {**lacks, Need.VECTORS: missing_vectors(self.settings.embedder, info, self.settings)}

    def open(self) -> Corpus:
        """Open the active index. Raises IndexDamaged, BadInput for an unknown name, Unavailable if it is not
        built or its embedding model changed.
        """
        if (found := current(self.name, self.settings)) is None:
            raise Unavailable(f"corpus {self.source.name} is not built: run {COMMAND} index {self.name}")
        try:
            recorded(found)
            corpus = opened(found.folder, self.settings)
        except IndexDamaged:
            if replaced(found, self.settings) is None:
                raise
            return self.open()  # a build deleted it while it was read
        if embedder_identity(corpus.info.embedder, self.settings) != corpus.info.embedder_identity:
            raise Unavailable(
                f"the embedding model {corpus.info.embedder} has changed since corpus {self.name} was"
                f" indexed: run {COMMAND} index {self.name}"
            )
        corpus.chosen = bool(found.source.embedders)
        return corpus


Held = Indexed | table.Table  # a corpus by name, before it is opened


def held(name: str, settings: Settings) -> Held:
    """Return the corpus of that name, whose kind is decided here alone."""
    return table.Table(name, settings) if name in table.names(settings) else Indexed(name, settings)


def current_fingerprint(name: str, *, settings: Settings) -> str | None:
    """Return the fingerprint of the active index, or of a table's current state; None without one."""
    return held(name, settings).fingerprint()


def known(settings: Settings) -> list[Known]:
    """List every corpus, built-in ones first, each followed by its chunkings; states are derived from names,
    sizes and times, without reading an index.

    A damaged corpus, or one of another copy of the program, is listed with the problem and the remedy, and
    does not affect the others.
    """
    first = {name: place for place, name in enumerate(BUILT_IN)}
    listed = sorted(
        {*BUILT_IN, *names(settings), *table.names(settings)},
        key=lambda name: (first.get(base_of(name), len(first)), variant_order(name)),
    )
    return [describe(name, settings) for name in listed]


def describe(name: str, settings: Settings) -> Known:
    """Describe one corpus. Raises BadInput for a name that is not known."""
    return held(name, settings).describe()


def _freshness(origin: Source, found: Current, info: CorpusInfo, settings: Settings) -> tuple[State, str]:
    before, wanted = found.source, origin.embedder(settings)
    if origin.path != before.path:  # a built-in one: any other is where its record says
        by = f"indexed from {before.path} by another copy of the program; this copy reads {origin.path}"
        return "stale", f"{by}. Build it again: {COMMAND} index {origin.name}"
    own = (origin.chunking, origin.language, origin.reading)
    if own != (before.chunking, before.language, before.reading):
        return "stale", f"indexed with other settings ({info.chunking.label()})"
    if embedder_identity(wanted, settings) != info.embedder_identity:
        changed = "has changed" if info.embedder == wanted else f"now it is {wanted}"
        return "stale", f"indexed with embedder {info.embedder}; {changed}"
    try:
        changes = _has_changed(origin, found)
    except (BadInput, OSError) as error:
        return "ready", f"the source can no longer be read: {error}"
    return ("stale", "the source has changed since it was indexed") if changes else ("ready", "")


def _has_changed(origin: Source, found: Current) -> bool:
    """Return True if files have other bytes than when they were indexed. They are looked at every
    LOOK_AGAIN_S: pages ask at each click, and it reads many files.
    """
    key, now = (origin, found.folder), time.monotonic()
    seen = _changed.get(key)
    if seen is None or now - seen[0] >= LOOK_AGAIN_S:
        stamp = origin.stamp(found.read)
        same = stamp == found.stamp or bool(
            found.content and _content(origin, found.read, stamp) == found.content
        )
        seen = _changed[key] = (now, not same)
    return seen[1]


@lru_cache(256)
def _content(origin: Source, read: tuple[str, ...], _stamp: str) -> str:
    """Return the hash of a source's bytes, read once for each of its states."""
    return origin.content(read)


def source(
    what: Source | str | Path,
    *,
    settings: Settings,
    name: str | None = None,
    chunking: Chunking | None = None,
    language: str | None = None,
    reading: Reading | None = None,
    known_only: bool = False,
) -> Source:
    """Return the source that a name or path means, with the given changes. Raises BadInput with the known
    names.

    A corpus indexed before is refreshed unchanged: from the same path, with the same chunking.
    """
    origin = what if isinstance(what, Source) else _known(what, settings, known_only)
    if origin is None:
        origin = from_path(Path(str(what)), name=name)
        before = current(origin.name, settings)
        origin = before.source if before and before.source.path == origin.path else origin
    changed = replace(
        origin,
        name=slug(name) if name is not None else origin.name,
        chunking=chunking if chunking is not None else origin.chunking,
        language=language if language is not None else origin.language,
        reading=reading if reading is not None else origin.reading,
    )
    if language is not None and language != AUTO:
        analyzer(language)  # an unknown one is refused before anything is read
    _check_name(changed, settings)
    return changed


def _known(what: str | Path, settings: Settings, known_only: bool) -> Source | None:
    """Return the known corpus called `what` or built from the path `what`, or None for a new path."""
    if isinstance(what, str):
        if what in table.names(settings):
            return table.Table(what, settings).source
        if what in BUILT_IN:
            return _built_in(what, settings)
        base, key = base_of(what), key_of(what)
        if key is not None:  # of its corpus' current source, as long as that exists
            before = current(base, settings)
            of = _built_in(base, settings) if base in BUILT_IN else before.source if before else None
            if of is not None:
                return variant_of(of, key)
        listed = what in names(settings)
        found = current(what, settings) if listed else None
        if found is not None:
            return found.source
        uploaded = settings.home / "uploads" / what
        if listed and uploaded.is_dir():  # its record cannot be read, but it is known where the files are
            return from_path(uploaded, name=what)
        if listed and (known_only or not Path(what).exists()):
            how = f"index its source again: {COMMAND} index PATH --name {what}"
            raise BadInput(f"{unreadable(what, settings)}; {how}")
    path = Path(what).expanduser()
    if known_only or not path.exists():
        there = ", ".join(dict.fromkeys((*BUILT_IN, *names(settings), *table.names(settings))))
        more = "" if known_only else ", or a path"
        raise BadInput(f"unknown corpus {str(what)!r}; known: {there}{more}")
    return next((s for s in BUILT_IN.values() if s.path and s.path == path.resolve()), None)


def _built_in(name: str, settings: Settings) -> Source:
    """Return a built-in source with its place and embedders."""
    before = current(name, settings)
    if before is None:
        return BUILT_IN[name]
    return replace(BUILT_IN[name], place=before.source.place, embedders=before.source.embedders)


def _check_name(wanted: Source, settings: Settings) -> None:
    """Check that a name means one source with its chunking: another source must not replace it unnoticed."""
    name, standard, other = wanted.name, BUILT_IN.get(wanted.name), current(wanted.name, settings)
    if (key := key_of(name)) is not None and not fits(wanted, key):
        base = base_of(name)
        how = f"for other chunkings: {COMMAND} index {base} --chunkings 256,512"
        raise BadInput(f"{name!r} is the name of {base} as {key}; {how}")
    if standard is not None:  # one made by another copy is taken over: these documents go with this one
        taken = "the name of a built-in corpus" if standard.path != wanted.path else ""
    elif name in table.names(settings) and wanted.kind != "table":
        taken = f"the table [corpora.{name}] of the settings file"
    else:
        at = other.source.path if other is not None else wanted.path
        taken = f"already the corpus of {at}" if at != wanted.path and (not at or at.exists()) else ""
    if taken:
        raise BadInput(f"{name!r} is {taken}; choose another name with --name")


def indexed_variants(base: str, settings: Settings) -> list[str]:
    """Return the variants of a corpus that are indexed: sizes first, the smallest first."""
    made = (name for name in names(settings) if base_of(name) == base != name)
    return sorted(made, key=variant_order)


def chosen_variants(origin: Source, settings: Settings, given: str = "all") -> list[Source]:
    """Return the variants of a source that `given` names, "all" for the indexed ones. Raises BadInput."""
    if given.strip().lower() != "all":
        return variants_named(origin, given)
    check_varies(origin)
    found = indexed_variants(origin.name, settings)
    if not found:
        raise BadInput(
            f"{origin.name} has no other chunking to compare; make some: "
            f"{COMMAND} index {origin.name} --chunkings 256,512,headings"
        )
    return [variant_of(origin, str(key_of(name))) for name in found]


@lru_cache(256)
def _text_size(folder: Path, most: int, dsn: Dsn | None) -> tuple[int, int]:
    """As `text_size`; an index folder never changes, as it is named by its content."""
    info = manifest.read(folder)[0]
    if info.passages > most:
        return info.passages, 0
    with closing(passages_of(folder, info, dsn)) as store:
        return store.size()


def token_lengths(name: str, settings: Settings) -> NDArray[np.int64]:
    """Return the tokens of each passage of a corpus, in the order of rows; empty without an index."""
    found = current(name, settings)
    return _token_lengths(found.folder, dsn(found, settings)) if found else np.zeros(0, np.int64)


@lru_cache(64)
def _token_lengths(folder: Path, at: Dsn | None) -> NDArray[np.int64]:
    with closing(passages_of(folder, manifest.read(folder)[0], at)) as store:
        return np.fromiter((tokens(passage.text) for _, passage, _ in store.everything()), np.int64)


def dsn(found: Current, settings: Settings) -> Dsn | None:
    """Return the database address of an index' passages, with its known password; None if they are in
    files.
    """
    return dsn_of(found.source.name, found.source.place, settings) if found.source.place else None


def current(name: str, settings: Settings) -> Current | None:
    """Return the active index of `name`; None if there is no readable record."""
    try:
        return _current(name, settings)
    except IndexDamaged as error:
        table.warn(f"{error}, so the corpus counts as not built")
        return None


def unreadable(name: str, settings: Settings) -> str | None:
    """Explain why the record of the active index of `name` is unreadable; None if it is readable or
    missing.
    """
    try:
        _current(name, settings)
    except IndexDamaged as error:
        return str(error)
    return None


def _current(name: str, settings: Settings) -> Current | None:
    home = home_of(name, settings)
    try:
        record = json.loads((home / CURRENT).read_text(encoding="utf-8"))
        folder = str(record["fingerprint"])
        if Path(folder).name != folder:
            raise ValueError(f"{folder!r} is not a folder name")
        # The folder names the corpus: a copy of another one's folder is a corpus of its own.
        origin = replace(from_record(record["source"]), name=home.name)
        read = tuple(map(str, record["read"]))
        return Current(home / folder, origin, str(record["stamp"]), read, str(record["content"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, BadInput) as error:
        raise IndexDamaged(
            f"the record of corpus {name}, {home / CURRENT}, cannot be read: {error}"
        ) from error


def replaced(found: Current, settings: Settings) -> Current | None:
    """Return the active index if it has changed meanwhile, as a build deletes the index it replaces; else
    None.
    """
    now = current(found.source.name, settings)
    return now if now is not None and now.folder != found.folder else None


def recorded(found: Current) -> CorpusInfo:
    """Return the record of an active index after the quick check of its files. Raises IndexDamaged."""
    info, files = manifest.read(found.folder)
    manifest.check_sizes(found.folder, files)
    if info.name != found.source.name:
        raise IndexDamaged(f"the index in {found.folder} is of corpus {info.name!r}")
    return info


def missing_vectors(embedder: str, info: CorpusInfo, settings: Settings) -> str:
    """Why the vectors of an embedder cannot be searched in a corpus, and how to get them."""
    there = ", ".join(embedders_of(info, settings))
    has = f"corpus {info.name} has no vectors of embedder {embedder}, only those of {there}"
    if info.place:
        return f"{has}: a corpus in PostgreSQL has those of one embedder"
    return f"{has}: run {COMMAND} index {info.name} --embedder {embedder}"


def further(info: CorpusInfo, settings: Settings) -> list[CorpusInfo]:
    """Return the records of an index' vectors by further embedders."""
    made = []
    for folder in sorted(home_of(info.name, settings).glob(f"{FURTHER}*")):
        try:
            one = manifest.read(folder)[0]
        except IndexDamaged as error:
            log.warning("%s; it is not used", error)
            continue
        if one.of == info.fingerprint:
            made.append(one)
    return made


def embedders_of(info: CorpusInfo, settings: Settings) -> list[str]:
    """Return the embedders whose vectors an index has, its own first."""
    return [info.embedder, *(one.embedder for one in further(info, settings))]


def opened(folder: Path, settings: Settings) -> Corpus:
    """Open the index in `folder`, wherever its passages are. Raises IndexDamaged, Unavailable."""
    if manifest.read(folder)[0].place:
        return served.ServedCorpus(folder, settings)
    try:
        return Corpus(folder)
    except FileNotFoundError as error:  # deleted since its files were checked
        raise IndexDamaged(f"index file {error.filename} cannot be read: {error.strerror}") from error


def names(settings: Settings) -> list[str]:
    """Return the names that have an index, sound or not, sorted; folders with invalid names are ignored."""
    found = (path.parent.name for path in (settings.home / "indexes").glob(f"*/{CURRENT}"))
    return sorted(name for name in found if is_slug(name))


def home_of(name: str, settings: Settings) -> Path:
    """Return the folder of a corpus' indexes. Raises BadInput for an invalid name."""
    return settings.home / "indexes" / slug(name)
