"""Replies of a pipeline from a file: a TREC run, or JSON lines with a reply each. Nothing is asked."""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from core.domain.errors import BadInput, PipelineFailed, shortened
from core.domain.external import MAX_HITS, read_reply
from core.domain.text import composed, composed_values
from core.domain.types import Query

MAX_BYTES = 128 * 2**20
ENDINGS = (".run", ".trec", ".txt", ".jsonl")
HOW = "NAME=FILE.run (TREC) or NAME=FILE.jsonl (a reply a line)"
COLUMNS = "question Q0 passage rank score name"
Words = tuple[tuple[str, ...], ...]
_ENCODED = re.compile(r"%(?=[0-9A-F]{2})")


@dataclass(frozen=True, slots=True)
class Answered:
    """A file's reply to one question, in plain JSON values."""

    reply: Mapping[str, Any]
    ms: float | None  # duration in milliseconds, if the file states it
    line: int  # line number in the file


@dataclass(frozen=True)
class RunFile:
    """A file read for the questions of a set; `asked` are their ids by their words and those before them.

    `complete`: a question without a line was asked too, and nothing was found, as in a TREC run.
    """

    path: Path
    sha256: str
    answered: Mapping[str, Answered]
    asked: Mapping[Words, str]
    complete: bool

    def ask(
        self,
        asked: Mapping[str, Any],
        timeout: float,  # noqa: ARG002 - as every way of asking has it
        cancel: threading.Event,  # noqa: ARG002
    ) -> tuple[bytes, float | None]:
        """Return the stored reply to a question, and its milliseconds."""
        id = self.asked.get(_words(asked["query"], [turn["text"] for turn in asked["history"]]))
        found = self.answered.get(id) if id is not None else None
        if found is None and (not self.complete or id is None):
            raise PipelineFailed(f"{self.path.name} has no reply to this question, and cannot be asked")
        reply = found.reply if found is not None else {"hits": []}
        return json.dumps(reply).encode(), None if found is None else found.ms

    def ready(self, cancel: threading.Event) -> None:
        """Nothing is to be started."""

    def facts(self) -> Mapping[str, Any]:
        """Return the kind of door: a file."""
        return {"kind": "file"}

    def stop(self) -> None:
        """Nothing is to be ended."""

    def ids(self) -> dict[str, str]:
        """Return every passage id with its alternative reading, for hits without text."""
        return {
            hit["id"]: hit["doc_id"]
            for one in self.answered.values()
            for hit in one.reply["hits"]
            if "id" in hit and not hit.get("text")
        }


_files: dict[str, RunFile] = {}  # of this process' command line, by the route's name


def use(name: str, file: RunFile) -> None:
    """Have the route `name` answered from `file`."""
    _files[name] = file


def used(name: str) -> RunFile | None:
    """Return the file that answers for a route, or None."""
    return _files.get(name)


def read(path: Path, questions: Mapping[str, Query], of: str) -> RunFile:
    """Read a file with replies to `questions`, the ids and queries of the set `of`.

    Raises BadInput that names the line of an unknown or repeated question, an invalid score or a malformed
    reply; and for a file of another kind or of excessive size.
    """
    if path.suffix.lower() not in ENDINGS:
        raise BadInput(f"--run {path.name}: cannot tell its kind by its ending; write {HOW}")
    try:
        with path.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInput(f"--run: cannot read {path}: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        most = f"at most {MAX_BYTES // 2**20} MiB are read"
        raise BadInput(f"--run {path.name}: {most}: keep the first 100 hits of each question")
    try:
        text = composed(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadInput(f"--run {path.name}: not UTF-8 text (byte {error.start})") from None
    jsonl = path.suffix.lower() == ".jsonl"
    ids = _Ids(questions, of, path.name)
    answered = _replies(text, ids) if jsonl else _trec(text, ids)
    if not answered:
        raise BadInput(f"--run {path.name}: no reply in it; write {HOW}")
    asked = _asked(questions, answered, path.name)
    return RunFile(path, hashlib.sha256(data).hexdigest(), answered, asked, complete=not jsonl)


@dataclass(frozen=True, slots=True)
class _Ids:
    """The questions of a set, for messages about a file."""

    questions: Mapping[str, Query]
    of: str
    file: str

    def where(self, line: int) -> str:
        return f"--run {self.file} line {line}"

    def bad(self, line: int, what: str, given: object = "") -> BadInput:
        """Return the error of a line; `given` is quoted after `what` where {} stands."""
        shown = shortened(repr(given), 80)
        return BadInput(f"{self.where(line)}: {what.replace('{}', shown, 1)}")

    def known(self, id: str, line: int) -> str:
        """Return a question's id, decoding RouteScope's own run files if necessary. Raises BadInput if the
        set does not contain it.
        """
        for one in (id, _decoded(id)):
            if one in self.questions:
                return one
        some = ", ".join(map(repr, list(self.questions)[:3]))
        known = f"the {len(self.questions)} questions of {self.of}, which are {some} ..."
        raise self.bad(line, f"question {{}} is not among {known}", id)


def _trec(text: str, ids: _Ids) -> dict[str, Answered]:
    """Hits by question, best score first, as trec_eval reads them; equal scores in the order of ranks."""
    rows: dict[str, dict[str, tuple[float, int, int]]] = {}
    for line, content in _lines(text):
        columns = content.split()
        if len(columns) != 6:
            raise ids.bad(line, f"{len(columns)} columns; a TREC run has 6: {COLUMNS}")
        id, _, passage, rank, score, _ = columns
        own = rows.setdefault(ids.known(id, line), {})
        if passage in own:
            first = own[passage][2]
            raise ids.bad(
                line, f"passage {{}} stands there twice for a question, first on line {first}", passage
            )
        if len(own) >= MAX_HITS:
            raise ids.bad(line, f"more than {MAX_HITS:,} hits of question {{}}", id)
        try:
            number = float(score)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise ids.bad(line, "score {} is no number", score)
        if not re.fullmatch(r"\d{1,9}", rank):
            raise ids.bad(line, "rank {} is no whole number", rank)
        own[passage] = (number, int(rank), line)
    found = {}
    for id, own in rows.items():
        best = sorted(own, key=lambda passage: (-own[passage][0], own[passage][1]))
        hits = [{"id": one, "doc_id": _decoded(one), "score": own[one][0]} for one in best]
        found[id] = Answered({"hits": hits}, None, min(line for _, _, line in own.values()))
    return found


def _replies(text: str, ids: _Ids) -> dict[str, Answered]:
    by_text: dict[str, list[str]] = {}
    for id, query in ids.questions.items():
        by_text.setdefault(query.text.strip(), []).append(id)
    found: dict[str, Answered] = {}
    for line, content in _lines(text):
        where = ids.where(line)
        try:
            given = composed_values(json.loads(content, parse_constant=_no_number))
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{where}: not JSON: {error}") from None
        if not isinstance(given, dict):
            raise ids.bad(line, "expected an object with question_id or question, and hits")
        id = _question(given, by_text, ids, line)
        if id in found:
            raise ids.bad(line, f"question {{}} stands there twice, first on line {found[id].line}", id)
        ms = given.pop("ms", None)
        if ms is not None and (isinstance(ms, bool) or not isinstance(ms, int | float) or ms < 0):
            raise ids.bad(line, "ms is {}; expected milliseconds, 0 or more", ms)
        read_reply(given, where)  # raises BadInput for one that is not as it is to be
        found[id] = Answered(given, None if ms is None else float(ms), line)
    return found


def _question(given: dict[str, Any], by_text: Mapping[str, list[str]], ids: _Ids, line: int) -> str:
    """Return the id of the question that a line answers, and remove the naming fields."""
    id, text = given.pop("question_id", None), given.pop("question", None)
    if isinstance(id, str | int) and not isinstance(id, bool):
        return ids.known(str(id), line)
    if id is not None or not isinstance(text, str):
        raise ids.bad(line, "no question_id and no question, which say what it replies to")
    same = by_text.get(text.strip(), [])
    if len(same) > 1:
        raise ids.bad(line, f"{len(same)} questions of {ids.of} ask {{}}; give question_id", text)
    if not same:
        raise ids.bad(line, f"{ids.of} does not ask {{}}", text)
    return same[0]


def _asked(questions: Mapping[str, Query], answered: Mapping[str, Answered], file: str) -> dict[Words, str]:
    """Map the words of each question to its id. Raises BadInput if two equal questions have different
    replies.
    """
    found: dict[Words, str] = {}
    for id, query in questions.items():
        other = found.setdefault(_words(query.text, [turn.text for turn in query.history]), id)
        one, two = answered.get(id), answered.get(other)
        if other != id and (one and one.reply) != (two and two.reply):
            raise BadInput(
                f"--run {file}: questions {other!r} and {id!r} ask the same, and are answered differently"
            )
    return found


def _words(text: str, turns: Sequence[str]) -> Words:
    """Normalise a question: control characters and white space become word boundaries."""
    return tuple(
        tuple("".join(char if char.isprintable() else " " for char in one).split())
        for one in (text, *turns)
        if one.strip()
    )


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def _decoded(id: str) -> str:
    """Decode an id that RouteScope encoded for a run file, which allows no white space in its columns."""
    return composed(unquote(id)) if _ENCODED.search(id) else id


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")
