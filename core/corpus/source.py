"""The origin of a corpus, and how it is split and searched.

One source may be indexed in several ways: corpora called SOURCE@KEY, such as help@256, help@pdf-kreuzberg.
A key names a chunking or a reading. Each is a corpus that is opened like any other. It follows its source in
all that the key does not name: path, language, chunking and reading.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import sysconfig
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from core.backends.languages import AUTO
from core.corpus import endings
from core.corpus.chunk import ALLOWED, WHOLE, Chunking, chunking_of, is_key, spans
from core.corpus.load import is_beir, readable_files
from core.corpus.manifest import CorpusInfo
from core.corpus.reading import Reader
from core.corpus.table_files import ENDINGS as DATABASES
from core.corpus.types import READINGS, Cut, FileRecord, LoadReport, Reading
from core.domain.errors import BadInput
from core.domain.settings import Settings

Kind = Literal["built-in", "snapshot", "indexed", "table"]
State = Literal["ready", "not built", "stale", "damaged"]
LONGEST_NAME = 80
MOST_HASHED = 500_000_000  # bytes of a source whose bytes are compared when its files were written again
USUAL = Reading()
NEW = Reading(html="main")  # how a source is read that nobody indexed before
AT = "@"
ALLOWED_KEYS = f"{ALLOWED}; or a reading: {', '.join(key.replace('-', '=', 1) for key in READINGS)}"


@dataclass(frozen=True, slots=True)
class Source:
    """A named source of documents; without a path it is the docstrings of the installed packages, or a table.

    `place` is the database that keeps the index, an address without password; empty for a file here.
    `embedders` are those chosen for it, the first makes the vectors that are searched by default; empty: the
    setting.
    """

    name: str
    kind: Kind
    path: Path | None
    chunking: Chunking
    language: str = "english"
    title: str = ""
    reading: Reading = USUAL
    place: str = ""
    embedders: tuple[str, ...] = ()

    def embedder(self, settings: Settings) -> str:
        """Name the embedder that makes its vectors."""
        return self.embedders[0] if self.embedders else settings.embedder

    def documents(
        self,
        report: LoadReport,
        check: Callable[[], object] = lambda: None,
        note: Callable[[FileRecord], object] = lambda _: None,
    ) -> Iterator[Cut]:
        """Read and chunk the documents; `check` is called often and may raise Cancelled.

        `note` gets the record of each file.
        """
        if self.path is None:
            from core.corpus import pydocs

            yield from (Cut(document, spans(document, self.chunking)) for document in pydocs.documents())
            return
        with Reader(check) as reader:
            yield from reader.documents(self.path, self.chunking, report, self.reading, note)

    def stamp(self, read: Collection[str] = endings.READ) -> str:
        """Return a value that changes when the source may have changed, from names, sizes and times without
        reading texts.

        `read`: the endings of the files that count.
        """
        facts: list[Any]
        if self.kind == "table":
            raise BadInput(f"corpus {self.name} is a table that is searched in place: it is not indexed")
        if self.path is None:
            installed = (entry.name for entry in os.scandir(sysconfig.get_path("purelib")))
            facts = [sys.version, *sorted(name for name in installed if name.endswith(".dist-info"))]
        else:
            known = [(file, file.stat()) for file in readable_files(self.path, read=read)]
            facts = [(str(file), stat.st_size, stat.st_mtime_ns) for file, stat in known]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]

    def content(self, read: Collection[str] = endings.READ) -> str:
        """Return a hash of the names and bytes of the files; "" for a source that is too large."""
        if self.path is None:
            return ""
        files = readable_files(self.path, read=read)
        if sum(file.stat().st_size for file in files) > MOST_HASHED:
            return ""
        whole = hashlib.sha256()
        for file in files:
            with file.open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
            whole.update(json.dumps([str(file), digest]).encode())
        return whole.hexdigest()[:32]

    def record(self) -> dict[str, Any]:
        """Return the stored record, so that the corpus can be refreshed without naming its source again."""
        found: dict[str, Any] = _SOURCE.dump_python(self, mode="json")
        return found


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
    info: CorpusInfo | None = None
    chunking_of: str | None = None


_SOURCE = TypeAdapter(Source)


def from_record(record: Mapping[str, Any]) -> Source:
    """Restore a source from `Source.record`. Raises ValueError or BadInput for any other record."""
    return _SOURCE.validate_json(json.dumps(record), strict=True)


def from_path(path: Path, *, name: str | None = None, chunking: Chunking | None = None) -> Source:
    """Return the source at `path`, named after it by default; passages of BEIR folders and tables of a
    database are split only if `chunking` says so. The language is detected on indexing. The navigation,
    header and footer of HTML pages are omitted.
    """
    path = path.expanduser().resolve()
    found = readable_files(path)
    usual = (path.stem if path.is_file() else path.name).replace("@", "-")
    called = slug(usual if name is None else name)
    whole = is_beir(path) or found[0].suffix.lower() in DATABASES
    cut = chunking if chunking is not None else WHOLE if whole else Chunking()
    return Source(called, "indexed", path, cut, AUTO, reading=NEW)


def slug(name: str) -> str:
    """Return `name` as the name of a corpus: letters a-z, digits, dots, dashes; after an @, its variant.

    Raises BadInput if nothing is left.
    """
    base, at, key = name.partition("@")
    if at and is_variant(key):
        return f"{slug(base)}@{key}"
    cut = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:LONGEST_NAME]
    if not cut:
        raise BadInput(
            f"{name!r} is not a valid corpus name; use letters a-z, digits, dots and dashes (--name)"
        )
    return cut


def is_variant(key: str) -> bool:
    """Return whether `key` names a chunking or a reading."""
    return key in READINGS or is_key(key)


def is_slug(name: str) -> bool:
    """Return True if a corpus may have this name."""
    try:
        return slug(name) == name
    except BadInput:
        return False


def base_of(name: str) -> str:
    """Return the corpus of which `name` is a variant, or `name` itself if it is not one."""
    base, at, key = name.rpartition(AT)
    return base if at and is_variant(key) else name


def key_of(name: str) -> str | None:
    """Return the chunking or reading in a corpus' name; None if it is not a variant of another."""
    return name.rpartition(AT)[2] if base_of(name) != name else None


def is_reading(name: str) -> bool:
    """Return whether a corpus differs from its source in how files were read."""
    return key_of(name) in READINGS


def variant_label(name: str, info: CorpusInfo) -> str:
    """Describe what a corpus is in comparison with its source."""
    return f"read as {key_of(name)}, {info.chunking.label()}" if is_reading(name) else info.chunking.label()


def variant_of(source: Source, key: str) -> Source:
    """Return the same source with another chunking or reading, under a name of its own."""
    name = f"{source.name}{AT}{key}"
    if key in READINGS:
        return replace(source, name=name, reading=replace(source.reading, **READINGS[key]))
    return replace(source, name=name, chunking=chunking_of(key))


def fits(source: Source, key: str) -> bool:
    """Return whether a source is chunked or read as `key` says."""
    if key in READINGS:
        return all(getattr(source.reading, field) == value for field, value in READINGS[key].items())
    return source.chunking.key == key


def variant_order(name: str) -> tuple[str, bool, list[int], str]:
    """Return the sort key that puts variants after their source."""
    key = key_of(name) or ""
    numbers = [int(part) for part in key.split("-") if part.isdigit()]
    return base_of(name), bool(key) and not numbers, numbers, key


def other_readings(source: Source) -> list[str]:
    """Return the keys of readings other than the source's own, for the kinds of files it has."""
    files = () if source.path is None else readable_files(source.path)
    found = {file.suffix.lower() for file in files}
    html = not found.isdisjoint(endings.HTML)
    others = (key for key in READINGS if not fits(source, key))
    return [key for key in others if (html if key[:4] == "html" else not found.isdisjoint(endings.PDF))]


def variants_named(source: Source, given: str) -> list[Source]:
    """Return the sources of "256,512/64,pdf=kreuzberg", each once, without the source's own.

    Raises BadInput for an unknown key, for a source that is not split, and for a reading of no file.
    """
    keys = [key for key in given.split(",") if key.strip()]
    if not keys:
        raise BadInput(f"no chunking given; give {ALLOWED_KEYS}, separated by commas")
    check_varies(source)
    chosen = [key for key in dict.fromkeys(map(variant_key, keys)) if not fits(source, key)]
    able = other_readings(source) if any(key in READINGS for key in chosen) else []
    if unable := [key for key in chosen if key in READINGS and key not in able]:
        raise BadInput(f"{source.name} has no file that {unable[0]} would read in another way")
    return [variant_of(source, key) for key in chosen]


def variant_key(given: str) -> str:
    """Return the key that a person means, such as pdf-kreuzberg by pdf=kreuzberg. Raises BadInput."""
    key = given.strip().lower().replace("=", "-")
    if key in READINGS:
        return key
    try:
        return chunking_of(given).key
    except BadInput as error:
        known = ", ".join(key.replace("-", "=", 1) for key in READINGS)
        raise BadInput(f"{error}; or a reading: {known}") from None


def check_varies(source: Source) -> None:
    """Raise BadInput for a source that has no variants."""
    if base_of(source.name) != source.name:
        base = base_of(source.name)
        raise BadInput(f"{source.name} is itself a chunking of {base}; name that corpus instead")
    if source.path is not None and readable_files(source.path)[0].suffix.lower() in DATABASES:
        why = "its rows are not cut, so it has no chunkings; give documents"
        raise BadInput(f"{source.path} is a database: {why}")


def uncut_remark(info: CorpusInfo) -> str | None:
    """Describe a chunking that splits nothing; None for others."""
    if info.chunking.size and info.passages == info.documents:
        return "no document is long enough to be cut: each is one passage, as if kept whole"
    return None
