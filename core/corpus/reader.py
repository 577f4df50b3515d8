"""The process that reads documents for another one, see `core.corpus.reading`: it is run, not imported."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from core.backends.minilm import FOLDER
from core.corpus import endings, load
from core.corpus.chunk import Chunking, spans
from core.corpus.files import NO_MEMORY
from core.corpus.types import BROKEN_LINE, Document, FileRecord, LoadReport, Reading
from core.domain import system
from core.domain.errors import BadInput, RouteScopeError

OUT = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
_read: list[str] = []  # names of the files that this process has begun
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
        _read.append(record.file)
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
            say({"limit": NO_MEMORY, "others": len(_read) > 1})
        OUT.flush()


MOST_WORDS = 2_000_000  # words of a corpus that are remembered
_BROKEN = re.compile(rf"([^\W\d_]+){BROKEN_LINE}([^\W\d_]+)")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


class Words:
    """The words of a corpus as far as it has been read, and of a dictionary."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def joined(self, text: str) -> str:
        """Learn the words of a document, and decide on each of its hyphens at a line end: it stays if the
        word is known with it, goes if the joined word is known, and else stays.
        """
        if len(self._seen) < MOST_WORDS:
            self._seen.update(_WORD.findall(text.lower()))

        def decided(match: re.Match[str]) -> str:
            whole, joined = f"{match[1]}-{match[2]}", match[1] + match[2]
            known = joined.lower() in self._seen or joined.lower() in _dictionary()
            return joined if known and whole.lower() not in self._seen else whole

        return _BROKEN.sub(decided, text).replace(BROKEN_LINE, "-") if BROKEN_LINE in text else text


@cache
def _dictionary() -> frozenset[str]:
    """Return the whole words in the vocabulary of the default embedding model."""
    words = json.loads((FOLDER / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    return frozenset(word for word in words if len(word) > 3 and word.isalpha())


if __name__ == "__main__":
    main()
