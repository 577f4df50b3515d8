"""The process that reads documents for another one, see `core.corpus.reading`: it is run, not imported."""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
import time
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from core.corpus import endings, load
from core.corpus.chunk import Chunking, spans
from core.corpus.cleaning import BROKEN_LINE, Words
from core.corpus.files import NO_MEMORY
from core.corpus.load_report import LoadReport
from core.corpus.types import FileRecord, Reading
from core.domain.errors import BadInput, RouteScopeError

OUT = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
WRITTEN = 64 * 1024**2  # bytes of any file, such as one that SQLite sorts in


def say(told: dict[str, Any]) -> None:
    """One line of JSON; in ASCII, so that no text can break it."""
    OUT.write(json.dumps(told).encode() + b"\n")


def serve(request: dict[str, Any]) -> None:
    """Read the source that is asked for, but for its first `skip` files and those of endings in `leave`."""
    seconds = request["seconds"]
    path, chunking = Path(request["path"]), Chunking(**request["chunking"])
    reading = Reading(**{**request["reading"], "text_columns": tuple(request["reading"]["text_columns"])})
    whole = LoadReport()
    if request.get("survey"):
        allow(seconds)
        kinds = load.survey(path, reading, whole)
        say({"survey": kinds, "report": asdict(whole)})
        say({"end": True})
        return
    found = load.readable_files(path, whole)
    if not request["skip"]:
        say({"report": asdict(whole)})
    pdfs = [file for file in found if file.suffix.lower() in endings.PDF]
    order = [*(file for file in found if file.suffix.lower() not in endings.PDF), *pdfs]
    words = Words() if pdfs else None
    # A PDF with words that no text before it decides is read again after all the others.
    waiting = [order[number] for number in request["again"]]
    for number, file in enumerate(order[request["skip"] :], request["skip"]):
        last = number == len(order) - 1
        if file.suffix.lower() in request["leave"]:
            _leave(load.name_of(file, path), file.suffix.lower())
        elif not _serve(file, path, chunking, reading, words, seconds, final=last):
            say({"again": number})
            waiting.append(file)
    for file in waiting[max(0, request["skip"] - len(order)) :]:
        _serve(file, path, chunking, reading, words, seconds, final=True)
    say({"end": True})


def _leave(name: str, ending: str) -> None:
    """Report a file that is not read, because others of its ending could not be."""
    report, record = LoadReport(), FileRecord(name)
    record.skipped = f"not read: several {ending} files before reached a limit"
    report.skip(name, record.skipped)
    say({"file": name})
    say({"report": asdict(report), "record": asdict(record)})


def _serve(
    file: Path,
    path: Path,
    chunking: Chunking,
    reading: Reading,
    words: Words | None,
    seconds: int,
    *,
    final: bool,
) -> bool:
    """Report the documents of one file; False, with nothing reported, if undecided words let it wait."""
    report, record = LoadReport(), FileRecord(load.name_of(file, path))
    say({"file": record.file})
    OUT.flush()  # before something is read that may end this process
    allow(seconds)
    began = allowed = time.perf_counter()
    for document, where in load.documents_of(file, path, reading, report, record):
        if words is not None and BROKEN_LINE in document.text:
            text, undecided = words.joined(document.text)
            if undecided and not final:
                return False
            document = replace(document, text=text)
        elif words is not None:
            words.learn(document.text)
        read = time.perf_counter()
        cut = spans(document, chunking)
        now = time.perf_counter()
        parts = [document.id, document.title, document.text, dict(document.meta)]
        ms = [(read - began) * 1000, (now - read) * 1000]
        say({"document": parts, "where": where, "cut": cut, "ms": ms})
        began = time.perf_counter()
        if began - allowed > 1:  # there may be thousands a second
            allow(seconds)
            allowed = began
    say({"report": asdict(report), "record": asdict(record)})
    return True


def allow(seconds: int) -> None:
    """Let this process run so many seconds more, then be ended."""
    limit(resource.RLIMIT_CPU, int(time.process_time()) + 1 + seconds)


def limit(what: int, most: int) -> None:
    """Let this process have no more than that; it may raise it again."""
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def main() -> None:
    """Answer requests, a line each, until there are no more."""
    limit(resource.RLIMIT_AS, int(sys.argv[1]))
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_FSIZE, WRITTEN)
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
