"""Runs as files: one-file session bundles both ways, TREC runs, JSON lines."""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from reprlib import repr as short
from typing import Any

from core.domain import jsonl
from core.domain.errors import BadInput, describe
from core.domain.ranked import run_lines
from core.domain.types import Run
from core.store import codec
from core.store.run_annotations import clean_note, clean_tags

FORMAT, VERSION = "routescope-session-bundle", 1
MANIFEST = "manifest.json"
MAX_RUNS = 10_000
MAX_MEMBER = 64 * 2**20  # bytes, unpacked
MAX_DEPTH = 100  # of lists and objects in each other
MAX_TOTAL = 512 * 2**20  # bytes, unpacked
_MEMBER = re.compile(r"runs/\d{5}\.json")
_UNREADABLE = (  # what zipfile, zlib and json raise over bytes that were made to confuse them
    zlib.error,
    struct.error,
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
    ArithmeticError,
    LookupError,
)


@dataclass(frozen=True, slots=True)
class Packed:
    """A run with what people wrote about it."""

    run: Run
    tags: tuple[str, ...]
    note: str


def pack(sessions: Sequence[Packed]) -> bytes:
    """Pack runs into a zip with one JSON file each and a manifest of their sha256; equal sessions give equal
    bytes.

    It contains no times, paths or machine. Raises BadInput if a run is still running, or the bundle would be
    rejected on import.
    """
    members = {}
    for n, one in enumerate(sorted(sessions, key=lambda one: one.run.id)):
        if one.run.status == "running":
            raise BadInput(f"run {one.run.id} is still running; export it when it has ended")
        session = {"run": codec.to_document(one.run), "tags": one.tags, "note": one.note}
        members[f"runs/{n:05}.json"] = codec.to_bytes(codec.dumps(session))
    sizes = [len(data) for data in members.values()]
    hashes = {name: _sha256(data) for name, data in members.items()}
    manifest = {"format": FORMAT, "version": VERSION, "members": hashes}
    if len(sizes) > MAX_RUNS or max(sizes, default=0) > MAX_MEMBER or sum(sizes) > MAX_TOTAL:
        raise BadInput(f"too much for one bundle: at most {_limits()}; export fewer runs at a time")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in {MANIFEST: json.dumps(manifest, indent=1).encode(), **members}.items():
            entry = zipfile.ZipInfo(name)  # dated 1980
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return out.getvalue()


def unpack(data: bytes) -> list[Packed]:
    """Return the sessions of a bundle. Raises BadInput for anything that is not exactly one."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = _read_members(archive)
        return _sessions(members)
    except zipfile.BadZipFile as error:
        raise BadInput(f"this is not a session bundle: {str(error)[:120]!r}") from None
    except _UNREADABLE as error:
        raise BadInput(f"cannot read this session bundle: {describe(error)[:150]!r}") from None


def same(one: Run, other: Run) -> bool:
    """Return True if two sessions have the same content, treating NaN as equal to NaN."""
    first, second = (json.dumps(codec.to_document(run), sort_keys=True) for run in (one, other))
    return first == second


def trec(run: Run) -> str:
    """Format the run's rankings as lines of a TREC run file, route after route; the question's id is the
    run's.
    """
    lines: list[str] = []
    for result in run.results:
        best: dict[str, float] = {}
        for hit in result.hits:
            best.setdefault(hit.passage.id, hit.score)
        lines += run_lines(result.route, {run.id: tuple(best.items())})
    return "".join(lines)


def json_lines(run: Run) -> str:
    """One line of JSON for each result, complete in itself; a score that is not finite is null."""
    lines = [
        {
            "run_id": run.id,
            "created": run.created,
            "question": run.query.text,
            "history": [asdict(turn) for turn in run.query.history],
            "corpus": run.corpus,
            "fingerprint": run.fingerprint,
            **{name: getattr(result, name) for name in ("route", "title", "status", "ms")},
            "hits": [
                {
                    "rank": rank,
                    "id": hit.passage.id,
                    "score": hit.score,
                    "title": hit.passage.title,
                    "text": hit.passage.text,
                }
                for rank, hit in enumerate(result.hits, 1)
            ],
            **{name: getattr(result, name) for name in ("answer", "citations", "abstained")},
            "parameters": dict(result.parameters),
            "error": result.error,
        }
        for result in run.results
    ]
    return "".join(json.dumps(jsonl.finite(line), allow_nan=False) + "\n" for line in lines)


def _read_members(archive: zipfile.ZipFile) -> dict[str, bytes]:
    """Return the bundle's files by name, checked against the limits and the manifest."""
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if len(entries) > MAX_RUNS + 1:
        raise BadInput(f"the bundle has {len(entries)} members; at most {_limits()}")
    if len(set(names)) != len(names) or MANIFEST not in names:
        raise BadInput(f"this is not a session bundle: it has no {MANIFEST}, or a name twice")
    members, total = {}, 0
    for entry in entries:
        name = entry.filename
        if name != MANIFEST and not _MEMBER.fullmatch(name):
            raise BadInput(f"the bundle has a member {short(name)}; allowed: {MANIFEST}, runs/NNNNN.json")
        if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BadInput(f"member {short(name)} is encrypted or packed in a way that is not allowed")
        allowed = min(MAX_MEMBER, MAX_TOTAL - total)
        with archive.open(entry) as file:
            members[name] = file.read(allowed + 1)  # whatever size its header claims
        if len(members[name]) > allowed:
            raise BadInput(f"member {short(name)} is too large; at most {_limits()}")
        total += len(members[name])
    manifest = json.loads(members.pop(MANIFEST))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BadInput(f"this is not a session bundle: its manifest has not the format {FORMAT!r}")
    if manifest.get("version") != VERSION:
        version = short(manifest.get("version"))
        raise BadInput(f"the bundle has version {version}; this RouteScope reads version {VERSION}")
    listed = manifest.get("members")
    if not isinstance(listed, dict) or listed.keys() != members.keys():
        raise BadInput("the bundle's members are not the ones in its manifest")
    for name, content in members.items():
        if listed[name] != _sha256(content):
            raise BadInput(f"member {short(name)} does not match its sha256: damaged or changed")
    return members


def _sessions(members: dict[str, bytes]) -> list[Packed]:
    sessions = []
    for name, content in sorted(members.items()):
        try:
            document = json.loads(codec.to_text(content))
            if not isinstance(document, dict) or document.keys() != {"run", "tags", "note"}:
                raise BadInput("it is not an object of run, tags and note")
            level: list[Any] = [document]
            depth = 0
            while level:
                if (depth := depth + 1) > MAX_DEPTH:
                    raise BadInput(f"it is nested more than {MAX_DEPTH} deep")
                inner = (value.values() if isinstance(value, dict) else value for value in level)
                level = [item for items in inner for item in items if isinstance(item, dict | list)]
            run, tags, note = codec.from_document(document["run"]), document["tags"], document["note"]
            if run.status == "running":
                raise BadInput("its run is still running")
            sessions.append(Packed(run, clean_tags(tags), clean_note(note)))
        except BadInput as error:
            raise BadInput(f"member {short(name)}: {error}") from None
    ids = [one.run.id for one in sessions]
    if len(set(ids)) != len(ids):
        raise BadInput("the bundle has a run twice")
    return sessions


def _limits() -> str:
    return (
        f"{MAX_RUNS:,} runs, {MAX_MEMBER // 2**20} MiB each and {MAX_TOTAL // 2**20} MiB in all are allowed"
    )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
