"""The process that reads documents for another one, see `core.corpus.reading`: it is run, not imported."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from core.corpus import endings, load
from core.corpus.chunk import Chunking, spans
from core.corpus.cleaning import Words
from core.corpus.files import NO_MEMORY
from core.corpus.types import Document, FileRecord, LoadReport, Reading
from core.domain import system
from core.domain.errors import BadInput, RouteScopeError

OUT = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
WRITTEN = 64 * 1024**2  # bytes of any file, such as one that SQLite sorts in


def say(told: dict[str, Any]) -> None:
    """One line of JSON; in ASCII, so that no text can break it."""
    OUT.write(json.dumps(told).encode() + b"\n")


def serve(request: dict[str, Any]) -> None:
    """Read the source that is asked for, but for its first `skip` files and those of endings in `leave`."""
    path, seconds, given = Path(request["path"]), request["seconds"], request["reading"]
    reading, whole = Reading(**{**given, "text_columns": tuple(given["text_columns"])}), LoadReport()
    if request.get("survey"):
        system.limit_time(seconds)
        kinds = load.survey(path, reading, whole)
        say({"survey": kinds, "report": asdict(whole)})
        say({"end": True})
        return
    found, beir = load.readable_files(path, whole), load.is_beir(path)
    if not request["skip"]:
        say({"report": asdict(whole)})
    # PDF files last: the words of the others decide on hyphens at line ends.
    order = sorted(found, key=lambda file: file.suffix.lower() in endings.PDF)
    words = Words() if order and order[-1].suffix.lower() in endings.PDF else None
    for file in order[request["skip"] :]:
        ending = file.suffix.lower()
        report, record = LoadReport(), FileRecord(load.name_of(file, path))
        say({"file": record.file})
        if ending in request["leave"]:
            record.skipped = f"not read: several {ending} files before reached a limit"
            report.skip(record.file, record.skipped)
        else:
            OUT.flush()  # before something is read that may end this process
            documents = load.documents_of(file, path, reading, report, record, beir=beir)
            _serve(documents, Chunking(**request["chunking"]), words, seconds)
        say({"report": asdict(report), "record": asdict(record)})
    say({"end": True})


def _serve(
    documents: Iterator[tuple[Document, str]], chunking: Chunking, words: Words | None, seconds: int
) -> None:
    """Report the documents of one file, split into passages."""
    system.limit_time(seconds)
    began = allowed = time.perf_counter()
    for document, where in documents:
        if words is not None:
            document = replace(document, text=words.joined(document.text))
        read = time.perf_counter()
        cut = spans(document, chunking)
        parts = [document.id, document.title, document.text, dict(document.meta)]
        say({"document": parts, "where": where, "cut": cut, "ms": (read - began) * 1000})
        began = time.perf_counter()
        if began - allowed > 1:  # there may be thousands a second
            system.limit_time(seconds)
            allowed = began


def main() -> None:
    """Answer requests, a line each, until there are no more."""
    system.limit_memory(int(sys.argv[1]))
    system.limit("CORE", 0)
    system.limit("FSIZE", WRITTEN)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    logging.disable()
    warnings.simplefilter("ignore")
    for line in sys.stdin.buffer:
        try:
            serve(json.loads(line))
        except RouteScopeError as error:
            kind = BadInput if isinstance(error, BadInput) else type(error)
            say({"error": kind.__name__, "message": str(error)})
        except MemoryError:
            say({"limit": NO_MEMORY})
        OUT.flush()


if __name__ == "__main__":
    main()
