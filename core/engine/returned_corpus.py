"""A corpus built from the results of your own pipelines, for users without documents at hand."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from core.corpus import index, uploads
from core.corpus.build import Progress
from core.corpus.chunk import WHOLE
from core.corpus.source import Source, from_path
from core.corpus.types import Reading
from core.domain import system
from core.domain.errors import BadInput, RouteScopeError, Unavailable, describe
from core.domain.external import ForeignHit
from core.domain.settings import Settings
from core.domain.text import storable
from core.domain.types import Query
from core.engine.engine import Engine
from core.engine.request import clean
from core.routes.registry import pipelines

FILE = "returned.jsonl"  # among a corpus' uploaded files


def source_of(corpus: str, settings: Settings) -> Source:
    """Return the source to index after `add`: each passage as returned, unsplit."""
    found = from_path(uploads.folder(corpus, settings), name=corpus, chunking=WHOLE)
    return replace(found, reading=Reading(("text",)))


def add(corpus: str, hits: Iterable[ForeignHit], settings: Settings) -> int:
    """Add new passages to a corpus of returned ones, and return their number; index it afterwards.

    A passage keeps its pipeline's id; without an id, or if the id belongs to another text, the id is derived
    from its document and text. Raises BadInput if the name is another corpus', or a new corpus would have no
    text; Unavailable if it cannot be saved.
    """
    home = uploads.own_folder(corpus, settings)
    file = home / FILE
    try:
        lines = file.read_text(encoding="utf-8").rstrip("\n").split("\n") if file.exists() else ()
        rows: dict[str, dict[str, str]] = {row["_id"]: row for row in map(json.loads, lines)}
        before = len(rows)
        known = {(row["document"], row["text"]) for row in rows.values()}
        for hit in hits:
            document, text = storable(hit.doc_id), storable(hit.text)
            if not text.strip() or (document, text) in known:
                continue
            known.add((document, text))
            id = storable(hit.id or "")
            if not id or id in rows:
                id = f"{document}#{hashlib.sha256(text.encode()).hexdigest()[:12]}"
            rows[id] = {"_id": id, "title": storable(hit.title or ""), "text": text, "document": document}
        if not rows:
            raise BadInput("no passage with a text was returned: there is nothing to make a corpus of")
        if len(rows) > before:
            home.mkdir(parents=True, exist_ok=True)
            scratch = home / f".{FILE}"
            made = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows.values())
            scratch.write_text("".join(made), encoding="utf-8")
            system.replace(scratch, file)
    except OSError as error:
        raise Unavailable(f"cannot save the passages in {home}: {error.strerror or error}") from error
    return len(rows) - before


def keep(
    settings: Settings,
    corpus: str,
    hits: Iterable[ForeignHit],
    *,
    progress: Progress,
    cancel: threading.Event | None,
) -> int:
    """Add what is new of `hits` to `corpus`, index it, and give the number of new passages. Raises what
    `add` raises.
    """
    added = add(corpus, hits, settings)
    if added or index.current_fingerprint(corpus, settings=settings) is None:
        source = source_of(corpus, settings)
        index.build(None, source, settings=settings, progress=progress, cancel=cancel).close()
    return added


def grow(
    engine: Engine,
    corpus: str,
    names: Sequence[str],
    query: Query,
    *,
    progress: Progress,
    cancel: threading.Event,
    warn: Callable[[str], None],
) -> int:
    """Call the pipelines `names` with one question, add their passages to `corpus`, and return the number of
    new ones. A pipeline that fails is skipped with a warning. Raises Unavailable if all fail.
    """
    asked, _ = clean(query)
    hits: list[ForeignHit] = []
    failed = 0
    for name in names:
        pipeline = pipelines()[name]
        try:
            given = engine.external(name, "record").ask(asked, pipeline.k, pipeline.timeout_s, cancel)
        except RouteScopeError as error:
            if cancel.is_set():
                raise
            failed += 1
            warn(f"no passages of {name}: {describe(error)}")
            continue
        hits += given.reply.hits
    if failed == len(names):
        raise Unavailable(f"no corpus {corpus} can be made: none of {', '.join(names)} replied")
    return keep(engine.settings, corpus, hits, progress=progress, cancel=cancel)
