"""One source indexed in several ways: corpora called SOURCE@KEY, such as help@256, help@pdf-kreuzberg.

A key names a chunking or a reading. Each is a corpus that is opened like any other. It follows its source in
all that the key does not name: path, language, chunking and reading.
"""

from __future__ import annotations

from dataclasses import replace

from core.corpus import endings
from core.corpus.chunk import ALLOWED, chunking_of
from core.corpus.load import readable_files
from core.corpus.manifest import CorpusInfo
from core.corpus.source import Source, is_variant
from core.corpus.table_files import ENDINGS as DATABASES
from core.corpus.types import READINGS
from core.domain.errors import BadInput

AT = "@"
ALLOWED_KEYS = f"{ALLOWED}; or a reading: {', '.join(key.replace('-', '=', 1) for key in READINGS)}"


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


def label(name: str, info: CorpusInfo) -> str:
    """Describe what a corpus is in comparison with its source."""
    return f"read as {key_of(name)}, {info.chunking.label()}" if is_reading(name) else info.chunking.label()


def of_source(source: Source, key: str) -> Source:
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


def in_order(name: str) -> tuple[str, bool, list[int], str]:
    """Return the sort key that puts variants after their source."""
    key = key_of(name) or ""
    numbers = [int(part) for part in key.split("-") if part.isdigit()]
    return base_of(name), bool(key) and not numbers, numbers, key


def readings(source: Source) -> list[str]:
    """Return the keys of readings other than the source's own, for the kinds of files it has."""
    files = () if source.path is None else readable_files(source.path)
    found = {file.suffix.lower() for file in files}
    html = not found.isdisjoint(endings.HTML)
    others = (key for key in READINGS if not fits(source, key))
    return [key for key in others if (html if key[:4] == "html" else not found.isdisjoint(endings.PDF))]


def wanted(source: Source, given: str) -> list[Source]:
    """Return the sources of "256,512/64,pdf=kreuzberg", each once, without the source's own.

    Raises BadInput for an unknown key, for a source that is not split, and for a reading of no file.
    """
    keys = [key for key in given.split(",") if key.strip()]
    if not keys:
        raise BadInput(f"no chunking given; give {ALLOWED_KEYS}, separated by commas")
    check(source)
    chosen = [key for key in dict.fromkeys(map(key_named, keys)) if not fits(source, key)]
    able = readings(source) if any(key in READINGS for key in chosen) else []
    if unable := [key for key in chosen if key in READINGS and key not in able]:
        raise BadInput(f"{source.name} has no file that {unable[0]} would read in another way")
    return [of_source(source, key) for key in chosen]


def key_named(given: str) -> str:
    """Return the key that a person means, such as pdf-kreuzberg by pdf=kreuzberg. Raises BadInput."""
    key = given.strip().lower().replace("=", "-")
    if key in READINGS:
        return key
    try:
        return chunking_of(given).key
    except BadInput as error:
        readings = ", ".join(key.replace("-", "=", 1) for key in READINGS)
        raise BadInput(f"{error}; or a reading: {readings}") from None


def check(source: Source) -> None:
    """Raise BadInput for a source that has no variants."""
    if base_of(source.name) != source.name:
        base = base_of(source.name)
        raise BadInput(f"{source.name} is itself a chunking of {base}; name that corpus instead")
    if source.path is not None and readable_files(source.path)[0].suffix.lower() in DATABASES:
        why = "its rows are not cut, so it has no chunkings; give documents"
        raise BadInput(f"{source.path} is a database: {why}")


def remark(info: CorpusInfo) -> str | None:
    """Describe a chunking that splits nothing; None for others."""
    if info.chunking.size and info.passages == info.documents:
        return "no document is long enough to be cut: each is one passage, as if kept whole"
    return None
