"""Documents given as uploaded files: kept in one folder a corpus, which is indexed like any other folder."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.corpus import catalogue, endings
from core.corpus.catalogue import BUILT_IN
from core.corpus.chunk import WHOLE
from core.corpus.folder import OWN
from core.corpus.load import MAX_BYTES
from core.corpus.reading import Reader
from core.corpus.source import NEW, is_slug, slug
from core.corpus.types import Document, LoadReport, Reading
from core.domain import people, system
from core.domain.errors import BadInput, Unavailable
from core.domain.settings import Settings

BEIR = "corpus.jsonl"  # would make the folder a BEIR set, and every other file in it unread
LONGEST = 120  # bytes of a file's name
(REMOVED,) = OWN  # in the folder; hidden, so that it is not read
_NOT_ALLOWED = re.compile(r"[^\w.() +-]+")


@dataclass(frozen=True, slots=True)
class Kept:
    """One uploaded file."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Given:
    """The content of a file before it is stored: its documents, notes and columns."""

    documents: tuple[Document, ...]
    notes: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Added:
    """The names of the files that were kept, and why others were not."""

    names: tuple[str, ...]
    refused: tuple[str, ...]


def folder(corpus: str, settings: Settings) -> Path:
    """Return the folder of a corpus' files. Raises BadInput for an invalid name."""
    return settings.home / "uploads" / slug(corpus)


def own_folder(corpus: str, settings: Settings) -> Path:
    """Return the folder of a corpus that may get files. Raises BadInput if its name is another corpus'."""
    home = folder(corpus, settings)
    other = catalogue.current(home.name, settings)
    if home.name in BUILT_IN:
        raise BadInput(f"{home.name!r} is the name of a built-in corpus; choose another")
    if other is not None and not is_uploaded(other.source.path, settings):
        raise BadInput(f"{home.name!r} is already the corpus of {other.source.path}; choose another name")
    return home


def is_uploaded(path: Path | str | None, settings: Settings) -> bool:
    """Return True if a corpus' source is a folder of uploaded files."""
    return path is not None and Path(path).parent == (settings.home / "uploads").resolve()


def safe_name(given: str) -> str:
    """Return a file's stored name: the last part of the given one, in letters, digits and a few marks.

    The result has no path, does not begin with a dot, and has a supported ending; equal names stay equal.
    Raises BadInput for another ending or an empty name.
    """
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", given))[-1]
    stem, dot, ending = last.rpartition(".")
    ending = f"{dot}{ending}".lower() if dot else ""
    if ending not in endings.READ:
        raise BadInput(
            f"{_shown(last)} is not a supported document ({endings.unread(ending)});"
            f" upload files ending in {endings.IN_WORDS}"
        )
    clean = " ".join(_NOT_ALLOWED.sub("_", stem).split()).strip(" .")
    clean = clean.encode()[: LONGEST - len(ending)].decode("utf-8", "ignore").strip(" .")
    if not re.search(r"\w", clean.replace("_", "")):
        raise BadInput(f"{_shown(last)} has no name; use letters or digits before the {ending}")
    return clean + ending


def read(name: str, content: bytes, reading: Reading | None = None) -> Given:
    """Read one file as indexing will. Raises BadInput if it contains nothing."""
    with tempfile.TemporaryDirectory() as scratch, Reader() as reader:
        path = Path(scratch) / safe_name(name)
        path.write_bytes(content)
        report = LoadReport()
        found = _documents(path, reader, reading, report)
        return Given(tuple(found), report.notes(), tuple(report.columns))


def add(corpus: str, files: Mapping[str, bytes], settings: Settings, reading: Reading | None = None) -> Added:
    """Keep the files that can be read; one of a known name replaces the earlier one.

    Each file is read first as indexing reads it. Raises BadInput if none can be read, in one message for all
    of them, and for no files; Unavailable if they cannot be saved.
    """
    people.require("edit")
    if not files:
        raise BadInput("no file was chosen; choose at least one")
    home = own_folder(corpus, settings)
    names: dict[str, str] = {}  # as given, by the name they are kept under
    for given in files:
        name = safe_name(given)
        if name.lower() == BEIR:
            raise BadInput(f"{BEIR} is a BEIR set; enter the path of its folder instead of uploading it")
        if name in names:
            both = f"{_shown(given)} and {_shown(names[name])}"
            raise BadInput(f"{both} would both be {name!r}; rename one of them")
        names[name] = given
    refused: dict[str, str] = {}  # why, by name
    try:
        home.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=home, prefix=".new-"))
        try:
            with Reader() as reader:
                for name, given in names.items():
                    (scratch / name).write_bytes(files[given])
                    try:
                        _documents(scratch / name, reader, reading)
                    except BadInput as error:
                        refused[name] = str(error).replace(f"{scratch}{os.sep}", "")
            kept = [name for name in names if name not in refused]
            if not kept:
                more = f"; and {len(refused) - 5} more" if len(refused) > 5 else ""
                raise BadInput("; ".join(list(refused.values())[:5]) + more)
            for name in kept:
                system.replace(scratch / name, home / name)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            if not any(home.iterdir()):
                home.rmdir()
    except OSError as error:
        raise Unavailable(f"cannot save the files in {home}: {error.strerror or error}") from error
    people.record("files uploaded", f"{corpus}: {', '.join(kept)}")
    return Added(tuple(kept), tuple(refused.values()))


def kept(corpus: str, settings: Settings) -> list[Kept]:
    """Return the files of a corpus by name."""
    home = folder(corpus, settings)
    if not home.is_dir():
        return []
    found = [entry for entry in os.scandir(home) if entry.is_file() and not entry.name.startswith(".")]
    return sorted((Kept(entry.name, entry.stat().st_size) for entry in found), key=lambda one: one.name)


def documents_of(corpus: str, name: str, settings: Settings) -> list[Document]:
    """Return the documents of a stored file, also before it is indexed. Raises BadInput."""
    found = catalogue.current(corpus, settings)
    reading = found.source.reading if found is not None else None
    with Reader() as reader:
        return _documents(_one(corpus, name, settings), reader, reading)


def remove(corpus: str, name: str, settings: Settings) -> None:
    """Take a file out; `restore` brings it back until another one is taken out. BadInput for the last one."""
    people.require("edit")
    path = _one(corpus, name, settings)
    if len(kept(corpus, settings)) == 1:
        raise BadInput(f"{name!r} is the only document of {corpus}; delete the corpus instead")
    bin_ = path.parent / REMOVED
    shutil.rmtree(bin_, ignore_errors=True)
    bin_.mkdir()
    system.replace(path, bin_ / name)
    people.record("file removed", f"{corpus}: {name}")


def removed(corpus: str, settings: Settings) -> str | None:
    """Return the name of the file that `restore` would restore."""
    found = folder(corpus, settings) / REMOVED
    return next((entry.name for entry in os.scandir(found)), None) if found.is_dir() else None


def restore(corpus: str, settings: Settings) -> str:
    """Restore the file removed last. Raises BadInput if there is none or its name is taken."""
    people.require("edit")
    name = removed(corpus, settings)
    home = folder(corpus, settings)
    if name is None:
        raise BadInput(f"no document was removed from {corpus}")
    if (home / name).exists():
        raise BadInput(f"{name!r} was added again; remove that one first")
    system.replace(home / REMOVED / name, home / name)
    (home / REMOVED).rmdir()
    return name


def delete(corpus: str, settings: Settings) -> None:
    """Delete all files of a corpus, those taken out too; for owners."""
    people.require("delete")
    shutil.rmtree(folder(corpus, settings), ignore_errors=True)


def corpora(settings: Settings) -> list[str]:
    """Return the corpora with uploaded files, indexed or not."""
    found = (path.name for path in (settings.home / "uploads").glob("*") if is_slug(path.name))
    return sorted(name for name in found if kept(name, settings))


def _documents(
    path: Path, reader: Reader, reading: Reading | None, report: LoadReport | None = None
) -> list[Document]:
    report = report if report is not None else LoadReport()
    size = path.stat().st_size
    if not size:
        raise BadInput(f"{path.name} is empty")
    if size > MAX_BYTES:
        most = f"the limit per file is {MAX_BYTES // 1_000_000} MB"
        raise BadInput(f"{path.name} has {size / 1e6:.0f} MB; {most}")
    read = (cut.document for cut in reader.documents(path, WHOLE, report, reading or NEW))
    found = [document for document in read if document.text.strip()]
    if not found:
        left = "; ".join(one.line() for one in report.skipped)
        raise BadInput(left or f"{path.name} contains no text")
    return found


def _one(corpus: str, name: str, settings: Settings) -> Path:
    if name not in {one.name for one in kept(corpus, settings)}:
        raise BadInput(f"corpus {corpus} has no uploaded document {name!r}")
    return folder(corpus, settings) / name


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else f"{name[:77]}...")
