"""Every corpus there is: the built-in ones and those the user indexed, each with the state of its index."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from core.backends.embedder import embedder_identity
from core.backends.languages import AUTO
from core.backends.terms import analyzer
from core.corpus import index_record, manifest, table, variants
from core.corpus.chunk import WHOLE, Chunking
from core.corpus.source import Kind, Source, from_path, slug
from core.corpus.types import Reading
from core.domain.errors import BadInput, IndexDamaged, Unavailable
from core.domain.once import Recent
from core.domain.program import COMMAND
from core.domain.settings import PROJECT, Settings

DATA = PROJECT / "data"
SHIPPED = ("support", "web")  # their documents come with the program
BUILT_IN: Mapping[str, Source] = {
    source.name: source
    for source in (
        Source(
            "support",
            "built-in",
            DATA / "support" / "documents",
            Chunking(),
            title="An online shop's help and payment documents",
        ),
        Source("pydocs", "built-in", None, WHOLE, title="Docstrings of the installed Python packages"),
        Source(
            "web",
            "snapshot",
            DATA / "web" / "documents",
            Chunking(),
            title="Stored web pages, searched in place of the live web",
        ),
    )
}
LOOK_AGAIN_S = 5.0  # a source is looked at for changes no more often
_seen: Recent[tuple[Source, Path], tuple[float, str]] = Recent(
    256
)  # by source and index: when, and its stamp

_same: Recent[tuple[Path, str], bool] = Recent(256)  # by index and stamp of the source

State = Literal["ready", "not built", "stale", "damaged"]


@dataclass(frozen=True, slots=True)
class Known:
    """One corpus as a list shows it; `reason`: why it is not ready; `askable`: offered to ask. `chunking_of`:
    the corpus whose source it has cut in another way, None for most.
    """

    name: str
    title: str
    kind: Kind
    state: State
    reason: str
    source: str
    askable: bool
    fingerprint: str | None = None
    info: manifest.CorpusInfo | None = None
    chunking_of: str | None = None


def known(settings: Settings) -> list[Known]:
    """List every corpus, built-in ones first, each followed by its chunkings; states are derived from names,
    sizes and times, without reading an index.

    A damaged corpus, or one of another copy of the program, is listed with the problem and the remedy, and
    does not affect the others.
    """
    first = {name: place for place, name in enumerate(BUILT_IN)}
    names = sorted(
        {*BUILT_IN, *index_record.names(settings), *table.names(settings)},
        key=lambda name: (first.get(variants.base_of(name), len(first)), variants.in_order(name)),
    )
    return [describe(name, settings) for name in names]


def describe(name: str, settings: Settings) -> Known:
    """One corpus; raises BadInput for a name that is not known."""
    if table.is_table(name, settings):
        return _table(name, settings)
    if name in index_record.names(settings) and (why := index_record.unreadable(name, settings)):
        return _without_record(name, why, settings)
    origin = source(name, settings=settings, known_only=True)
    found = index_record.current(origin.name, settings)
    base = _base(origin)
    if found is None:
        return replace(base, reason=f"run: {COMMAND} index {origin.name}")
    try:
        info = index_record.recorded(found)
    except IndexDamaged as error:
        if index_record.replaced(found, settings) is not None:
            return describe(name, settings)
        again = f"{error}. Build it again: {COMMAND} index {origin.name}"
        return replace(base, state="damaged", reason=again, fingerprint=found.folder.name)
    state, reason = _freshness(origin, found, info, settings)
    return replace(base, state=state, reason=reason, fingerprint=info.fingerprint, info=info)


def _base(origin: Source) -> Known:
    """Describe a corpus without its index."""
    where = str(origin.path) if origin.path else "installed packages"
    base = variants.base_of(origin.name)
    return Known(
        origin.name,
        origin.title or where,
        origin.kind,
        "not built",
        "",
        where,
        origin.kind != "snapshot",
        chunking_of=base if base != origin.name else None,
    )


def _table(name: str, settings: Settings) -> Known:
    """Describe a table in place; it is ready if it can be read, which is checked every few seconds."""
    origin = table.source(name, settings)
    base = Known(name, origin.title, origin.kind, "not built", "", origin.title, True)
    try:
        info = table.info(name, settings)
    except (BadInput, Unavailable) as error:
        return replace(base, reason=str(error))
    return replace(base, state="ready", fingerprint=info.fingerprint, info=info)


def _without_record(name: str, why: str, settings: Settings) -> Known:
    """Describe a corpus whose record is unreadable or outdated, so that its source is unknown."""
    try:
        origin = source(name, settings=settings, known_only=True)
    except BadInput:
        way = f"{COMMAND} index PATH --name {name}, or delete it on the page Corpus"
        reason = f"{why}. Index its source again: {way}"
        return Known(name, name, "indexed", "damaged", reason, "no longer known", True)
    return replace(_base(origin), state="damaged", reason=f"{why}. Build it again: {COMMAND} index {name}")


def _freshness(
    origin: Source, found: index_record.Current, info: manifest.CorpusInfo, settings: Settings
) -> tuple[State, str]:
    if origin.path != found.source.path:  # a built-in one: any other is where its record says
        return "stale", (
            f"indexed from {found.source.path} by another copy of the program; this copy reads"
            f" {origin.path}. Build it again: {COMMAND} index {origin.name}"
        )
    before = found.source
    if (origin.chunking, origin.language, origin.reading) != (
        before.chunking,
        before.language,
        before.reading,
    ):
        return "stale", f"indexed with other settings ({info.chunking.label()})"
    wanted = origin.embedder(settings)
    if embedder_identity(wanted, settings) != info.embedder_identity:
        changed = "has changed" if info.embedder == wanted else f"now it is {wanted}"
        return "stale", f"indexed with embedder {info.embedder}; {changed}"
    try:
        if (stamp := _stamp(origin, found)) != found.stamp and not _same_content(origin, found, stamp):
            return "stale", "the source has changed since it was indexed"
    except (BadInput, OSError) as error:
        return "ready", f"the source can no longer be read: {error}"
    return "ready", ""


def _stamp(origin: Source, found: index_record.Current) -> str:
    """Return the source's stamp, at most `LOOK_AGAIN_S` old: pages ask at each click, and it reads many
    files.
    """
    key, now = (origin, found.folder), time.monotonic()
    seen = _seen.get(key)
    if seen is None or now - seen[0] >= LOOK_AGAIN_S:
        seen = _seen[key] = (now, origin.stamp(found.read))
    return seen[1]


def _same_content(origin: Source, found: index_record.Current, stamp: str) -> bool:
    """Return True if rewritten files have the same bytes as before; checked once per stamp."""
    if not found.content:
        return False
    key = (found.folder, stamp)
    if (same := _same.get(key)) is None:
        same = _same[key] = origin.content(found.read) == found.content
    return same


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
    if isinstance(what, Source):
        origin = what
    else:
        origin = _known(what, settings, known_only) or _new(Path(what), name, settings)
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


def _new(path: Path, name: str | None, settings: Settings) -> Source:
    """Return the source at `path`, with its earlier settings if it was indexed under this name before."""
    origin = from_path(path, name=name)
    before = index_record.current(origin.name, settings)
    return before.source if before and before.source.path == origin.path else origin


def _known(what: str | Path, settings: Settings, known_only: bool) -> Source | None:
    """Return the known corpus called `what` or built from the path `what`, or None for a new path."""
    if isinstance(what, str):
        if table.is_table(what, settings):  # whose name was chosen by who wrote the settings file
            return table.source(what, settings)
        if what in BUILT_IN:
            return _built_in(what, settings)
        if (variant := _variant(what, settings)) is not None:
            return variant
        listed = what in index_record.names(settings)
        found = index_record.current(what, settings) if listed else None
        if found is not None:
            return found.source
        uploaded = settings.home / "uploads" / what
        if listed and uploaded.is_dir():  # its record cannot be read, but it is known where the files are
            return from_path(uploaded, name=what)
        if listed and (known_only or not Path(what).exists()):
            raise BadInput(
                f"{index_record.unreadable(what, settings)}; index its source again: python -m "
                f"core index PATH"
                f" --name {what}"
            )
    path = Path(what).expanduser()
    if known_only or not path.exists():
        names = ", ".join(dict.fromkeys((*BUILT_IN, *index_record.names(settings), *table.names(settings))))
        raise BadInput(
            f"unknown corpus {str(what)!r}; known: {names}" + ("" if known_only else ", or a path")
        )
    return next((s for s in BUILT_IN.values() if s.path and s.path == path.resolve()), None)


def _built_in(name: str, settings: Settings) -> Source:
    """Return a built-in source with its place and embedders."""
    before = index_record.current(name, settings)
    if before is None:
        return BUILT_IN[name]
    return replace(BUILT_IN[name], place=before.source.place, embedders=before.source.embedders)


def _variant(name: str, settings: Settings) -> Source | None:
    """Return the source of a chunking derived from its corpus' current source; None for another name, or if
    that source no longer exists.
    """
    base, key = variants.base_of(name), variants.key_of(name)
    if key is None:
        return None
    before = index_record.current(base, settings)
    origin = _built_in(base, settings) if base in BUILT_IN else before.source if before else None
    return variants.of_source(origin, key) if origin else None


def _check_name(wanted: Source, settings: Settings) -> None:
    """Check that a name means one source with its chunking: another source must not replace it unnoticed."""
    if (key := variants.key_of(wanted.name)) is not None and not variants.fits(wanted, key):
        raise BadInput(
            f"{wanted.name!r} is the name of {variants.base_of(wanted.name)} as {key}; for other "
            f"chunkings: {COMMAND} index {variants.base_of(wanted.name)} --chunkings 256,512"
        )
    if (standard := BUILT_IN.get(wanted.name)) is not None:
        if standard.path != wanted.path:
            raise BadInput(f"{wanted.name!r} is the name of a built-in corpus; choose another with --name")
        return  # an index made by another copy of the program is taken over: these documents go with this one
    if table.is_table(wanted.name, settings) and wanted.kind != "table":
        raise BadInput(
            f"{wanted.name!r} is the table [corpora.{wanted.name}] of the settings file; choose another "
            "with --name"
        )
    other = index_record.current(wanted.name, settings)
    if (
        other is not None
        and other.source.path != wanted.path
        and (not other.source.path or other.source.path.exists())
    ):
        raise BadInput(
            f"{wanted.name!r} is already the corpus of {other.source.path}; choose another name with --name"
        )
