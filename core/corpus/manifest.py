"""The files of an index with their sha256, checked before use."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from core.corpus.chunk import Chunking
from core.corpus.types import DenseWeight, FileRecord, Skipped, Unread
from core.domain import system
from core.domain.errors import BadInput, IndexDamaged

log = logging.getLogger(__name__)
FORMAT = 2
NAME = "manifest.json"
CHECKED = ".checked.json"  # the state in which each file had its sha256
PASSAGES, GRAPH, BM25 = "passages.sqlite", "hnsw.faiss", "bm25"  # files of an index
READING = "reading.jsonl"  # how each file of the source was read, a line each
Files = Mapping[str, Mapping[str, Any]]  # path in the folder -> sha256 and bytes


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """The record of an indexed corpus."""

    name: str
    fingerprint: str
    documents: int
    passages: int
    chunking: Chunking
    language: str
    embedder: str
    embedder_identity: str
    dim: int
    vector_index: str  # "flat" | "hnsw"
    recall: float  # share of the exact 10 nearest that an approximate index finds (1.0 if search is exact)
    built_at: str  # ISO 8601, UTC
    build_ms: Mapping[str, float]  # duration of each stage
    bytes: int
    reused: int = 0
    notes: tuple[str, ...] = field(default=())
    skipped: tuple[Skipped, ...] = field(default=())
    place: str = ""
    languages: Mapping[str, int] = field(default_factory=dict)  # passages clearly in each, most first
    unclear: int = 0  # passages whose language is not clear
    foreign: int = 0  # of these, those in a script other than Latin
    dense_weight: DenseWeight | None = None  # None if the table is searched where it is
    unread: Unread | None = None  # None if the embedder's tokenizer was not on this machine
    of: str = ""
    tokens: int = 0
    cost: float | None = None


_INFO = TypeAdapter(CorpusInfo)


def now() -> str:
    """Return the time, ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def seal(folder: Path, info: Mapping[str, Any]) -> None:
    """Record plain values and every file in `folder`."""
    found = (file for file in sorted(folder.rglob("*")) if file.is_file())
    files = {
        file.relative_to(folder).as_posix(): _facts(file)
        for file in found
        if not file.name.startswith(CHECKED)
    }
    _replace(folder / NAME, _sealed(dict(info), files))


def _sealed(info: dict[str, Any], files: Files) -> str:
    content = {"format": FORMAT, "info": info, "files": files}
    return json.dumps({**content, "digest": _digest(content)}, indent=1) + "\n"


def _replace(file: Path, text: str, scratch: Path | None = None) -> None:
    scratch = scratch or file.with_suffix(".new")
    scratch.write_text(text, encoding="utf-8")
    system.replace(scratch, file)


def remark(folder: Path, notes: tuple[str, ...], skipped: tuple[Skipped, ...], reading: Path) -> None:
    """Replace the notes and the record of reading of an index whose passages stay the same.

    Raises IndexDamaged.
    """
    info, files = read(folder)
    facts = _facts(reading)
    if (info.notes, info.skipped, files.get(READING)) == (notes, skipped, facts):
        return
    system.replace(reading, folder / READING)
    told = asdict(replace(info, notes=notes, skipped=skipped))
    _replace(folder / NAME, _sealed(told, {**files, READING: facts}), folder.with_suffix(".record"))


def readings(folder: Path) -> tuple[FileRecord, ...]:
    """Return how each file of the source was read; empty for a source that is not made of files."""
    try:
        lines = (folder / READING).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ()
    return tuple(FileRecord(**json.loads(line)) for line in lines)


def _digest(content: Mapping[str, Any]) -> str:
    """Return a hash of the record itself, so that a change in it is noticed like one in any other file."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def verify(folder: Path, only: Collection[str] = ()) -> CorpusInfo:
    """Return the record of the index in `folder`, after checking the sha256 of each file, or of those in
    `only`.

    A file is hashed once, and again only if its size, times or inode changed. Raises IndexDamaged.
    """
    info, recorded = read(folder)
    _check(folder, {name: facts for name, facts in recorded.items() if not only or name in only})
    return info


def check(folder: Path) -> None:
    """Check the sha256 of each recorded file; raises IndexDamaged."""
    _check(folder, record(folder)[1])


def _check(folder: Path, files: Files) -> None:
    check_sizes(folder, files)
    before = _checked(folder)
    states: dict[str, Any] = {}
    for name, expected in files.items():
        now = _stat(folder / name)
        states[name] = [expected["sha256"], now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino]
    unknown = {name: expected for name, expected in files.items() if before.get(name) != states[name]}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda name: _facts(folder / name), unknown)
        for (name, expected), facts in zip(unknown.items(), found, strict=True):
            if facts != expected:
                raise IndexDamaged(
                    f"index file {folder / name} does not match its sha256"
                    f" (recorded {expected['sha256'][:12]}, found {facts['sha256'][:12]})"
                )
    if unknown:
        _remember(folder, {**before, **states})


def _checked(folder: Path) -> dict[str, Any]:
    """Return the record of `_remember`, or {} if it is unreadable: the files are then hashed again."""
    try:
        found = json.loads((folder / CHECKED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _remember(folder: Path, states: Mapping[str, Any]) -> None:
    """Keep the sha256 that each file had, with its state then. On a disk that is full, or only read, each
    opening reads the files.
    """
    scratch = folder / f"{CHECKED}.{os.getpid()}.{threading.get_ident()}"
    try:
        _replace(folder / CHECKED, json.dumps(states), scratch)
    except OSError as error:
        log.info("%s cannot be written: %s", folder / CHECKED, error)
        with suppress(OSError):
            scratch.unlink(missing_ok=True)


def _stat(file: Path) -> os.stat_result:
    try:
        return file.stat()
    except OSError as error:
        raise IndexDamaged(f"index file {file} cannot be read: {error.strerror or error}") from error


def read(folder: Path) -> tuple[CorpusInfo, Files]:
    """Return the record and the facts of each file, unchecked. Raises IndexDamaged if it is unreadable."""
    try:
        raw, files = record(folder)
        return _INFO.validate_json(json.dumps(raw), strict=True), files
    except (OSError, ValueError, BadInput) as error:
        raise IndexDamaged(f"{folder / NAME} cannot be read: {error}") from error


def record(folder: Path) -> tuple[Mapping[str, Any], Files]:
    """Return the recorded values and the facts of each file, unchecked. Raises IndexDamaged,
    FileNotFoundError.
    """
    path = folder / NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise IndexDamaged(f"{path} is of format {content['format']!r}; this version reads {FORMAT}")
        if content.pop("digest") != _digest(content):
            raise IndexDamaged(f"{path} does not match its own sha256")
        files: Files = {str(name): dict(facts) for name, facts in content["files"].items()}
        return content["info"], files
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise IndexDamaged(f"{path} cannot be read: {error}") from error


def check_sizes(folder: Path, files: Files) -> None:
    """Check that every file exists with its recorded size. Raises IndexDamaged."""
    for name, expected in files.items():
        if (size := _stat(folder / name).st_size) != expected["bytes"]:
            raise IndexDamaged(
                f"index file {folder / name} has {size} bytes, recorded are {expected['bytes']}"
            )


def _facts(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as opened:
            return {"sha256": hashlib.file_digest(opened, "sha256").hexdigest(), "bytes": file.stat().st_size}
    except OSError as error:
        raise IndexDamaged(f"index file {file} cannot be read: {error.strerror or error}") from error
