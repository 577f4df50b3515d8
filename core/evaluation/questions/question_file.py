"""A file of generated questions: JSON lines as `eval --questions` reads them, written whole at each change,
and their review in a terminal: one after the other, by keys or by lines.

Several people and processes may review one file: each change is made under a lock, to what it holds then.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from filelock import FileLock

from core.domain import system
from core.domain.errors import BadInput, Unavailable
from core.domain.jsonl import lines
from core.evaluation.dataset import STATES, Generated, Question, State

Line = dict[str, Any]
MAX_TEXT = 2_000  # characters of an edited question


class Overtaken(BadInput):
    """Somebody else has reviewed the question meanwhile; `now` is the question as it is."""

    def __init__(self, message: str, now: Line | Question) -> None:
        super().__init__(message)
        self.now = now


def read(path: Path) -> list[Line]:
    """Return the lines of a file of generated questions. Raises BadInput with the number of an invalid
    line.
    """
    found = []
    for number, line in lines(path):
        where = f"{path} line {number}"
        if not isinstance(line.get("id"), str) or not isinstance(line.get("text"), str):
            raise BadInput(f"{where}: a question needs 'id' and 'text'")
        if not line.get("generated"):
            raise BadInput(f"{where}: question {line['id']!r} was not generated, so it is not reviewed")
        Generated.read(line["generated"], where)
        found.append(dict(line))
    return found


def generated(line: Mapping[str, Any]) -> Generated:
    """Return how a line of a question file was generated, and how people reviewed it."""
    return Generated.read(line["generated"], str(line["id"]))


@contextmanager
def changed(path: Path) -> Iterator[list[Line]]:
    """Yield the lines, to be changed in place: written when the block ends well, all or nothing."""
    try:
        with FileLock(f"{path}.lock"):
            found = read(path) if path.exists() else []
            yield found
            scratch = path.with_name(f".{path.name}.{os.getpid()}")
            with scratch.open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in found)
                file.flush()
                os.fsync(file.fileno())
            system.replace(scratch, path)
    except OSError as error:
        raise Unavailable(f"cannot write {path}: {error.strerror or error}") from error


def decide(path: Path, seen: Line, state: State, who: str, text: str = "") -> Line:
    """Accept, drop or restore the question `seen`, or change its `text`; return its line as it is now. Raises
    BadInput for a state, name or text that is not allowed, Overtaken if the question has changed since it was
    read.
    """
    who, text = " ".join(who.split()), " ".join(text.split())
    if state not in STATES:
        raise BadInput(f"state {state!r}; give {', '.join(STATES)}")
    if not 1 <= len(who) <= 64:
        raise BadInput(f"reviewer {who[:80]!r}: give a name of 1 to 64 characters")
    if len(text) > MAX_TEXT:
        raise BadInput(f"the question has {len(text):,} characters; give at most {MAX_TEXT:,}")
    with changed(path) as found:
        at = next((at for at, line in enumerate(found) if line["id"] == seen["id"]), None)
        if at is None:
            raise BadInput(f"{path} no longer has the question {seen['id']!r}")
        if found[at] != seen:
            other = generated(found[at])
            deed = "changed" if other.state == "proposed" else other.state
            who = other.reviewer or "somebody"
            raise Overtaken(f"{who} has {deed} this question meanwhile; look at it again", found[at])
        found[at] = reviewed(seen, state, who, text)
        return found[at]


def reviewed(line: Line, state: State, who: str, text: str = "") -> Line:
    """Return the line with a person's decision; "proposed" takes it back, and nobody has reviewed it then."""
    made, now = dict(line["generated"]), datetime.now(UTC).isoformat(timespec="seconds")
    first = made.get("first") or line["text"]
    said = text or line["text"]
    made |= {"state": state, "first": first if said != first else ""}
    made |= {"reviewer": who, "reviewed": now} if state != "proposed" else {"reviewer": "", "reviewed": ""}
    return {**line, "text": said, "generated": made}


def states(found: Sequence[Line]) -> dict[str, int]:
    """Return how many questions are in each state."""
    return {**dict.fromkeys(STATES, 0), **Counter(generated(line).state for line in found)}


def line_of(written: Mapping[str, Any], by: str, seconds: float, calls: int) -> Line:
    """Return a written question as a line of a file, with its author."""
    kept = {name: value for name, value in written.items() if name not in ("checks", "passages", "prompt")}
    checks = {**written["checks"], "seconds": round(seconds, 2), "calls": calls}
    made = {"by": by, "prompt": written["prompt"], "made": datetime.now(UTC).isoformat(timespec="seconds")}
    made |= {"passages": list(written["passages"]), "checks": checks, "state": "proposed", "reviewer": ""}
    return {**kept, "generated": made}


def block(questions: Iterable[Question]) -> dict[str, Any]:
    """Return the provenance for the figures; {} if a person wrote every question."""
    asked = list(questions)
    made = [question.generated for question in asked if question.generated is not None]
    if not made:
        return {}
    accepted = sum(one.state == "accepted" for one in made)
    what = "All" if len(made) == len(asked) else f"{len(made)} of"
    reviewed = f"{'all' if accepted == len(made) else accepted or 'none'} of them"
    note = (
        f"{what} {len(asked)} questions were written by {', '.join(sorted({one.by for one in made}))}, with"
        f" their labels; people have accepted {reviewed}."
    )
    return {"questions": len(asked), "written": len(made), "accepted": accepted, "note": note}


def note(questions: Iterable[Question]) -> str:
    """Return the note that precedes all figures of generated questions, or "" if no question is generated."""
    return str(block(questions).get("note", ""))


KEYS = "a accept, e edit, d drop, s skip, u undo, q quit"


def decide_all(
    path: Path, who: str, accept: Sequence[str], drop: Sequence[str], *, every: bool = False
) -> None:
    """Accept and drop questions by id, `every`: accept all that nobody reviewed. BadInput for an id that the
    file does not have, or one in both lists; nothing is changed then.
    """
    found = {line["id"]: line for line in read(path)}
    if unknown := [id for id in (*accept, *drop) if id not in found]:
        raise BadInput(f"{path} has no question {unknown[0]!r}")
    if both := set(accept) & set(drop):
        raise BadInput(f"question {min(both)!r} is both to be accepted and to be dropped")
    proposed = [id for id, line in found.items() if generated(line).state == "proposed"]
    for id in dict.fromkeys((*accept, *(one for one in (proposed if every else ()) if one not in drop))):
        decide(path, found[id], "accepted", who)
    for id in dict.fromkeys(drop):
        decide(path, found[id], "dropped", who)


def review(path: Path, who: str, inputs: TextIO, out: TextIO) -> None:
    """Show each unreviewed question and read the decision on it, until the questions or the inputs end. On a
    terminal single keys are read. Changes by other people in the meantime are reported and shown.
    """
    done: list[tuple[Line, Line]] = []  # (before, after), for undo
    skipped: set[str] = set()
    while True:
        found = read(path)
        left = [one for one in found if generated(one).state == "proposed" and one["id"] not in skipped]
        if not left:
            out.write("No question is left to review.\n")
            return
        out.write(_shown(left[0], len(left)))
        key = _key(inputs, out)
        if key in ("", "q"):
            return
        try:
            if key == "u" and done:
                before, after = done.pop()
                decide(path, after, "proposed", who, before["text"])
            elif key == "u":
                out.write("Nothing to undo.\n" if not skipped else "Shown again: what was skipped.\n")
                skipped.clear()
            elif key == "s":
                skipped.add(left[0]["id"])
            elif key in ("a", "d", "e"):
                text = _text(inputs, out) if key == "e" else ""
                after = decide(path, left[0], "dropped" if key == "d" else "accepted", who, text)
                done.append((left[0], after))
            else:
                out.write(f"Press one of: {KEYS}.\n")
        except Overtaken as error:
            out.write(f"{error}.\n")
        except BadInput as error:
            out.write(f"{error}\n")


def _shown(line: Line, left: int) -> str:
    made = generated(line)
    labels = [f"  {one['doc']}: {' '.join(one['quote'].split())[:300]}" for one in line.get("relevant", ())]
    told = "; ".join(f"{name} {_plain(value)}" for name, value in made.checks.items())
    return "\n".join(
        [
            "",
            f"{left} left · {line.get('mode')}{' · easy' if made.checks.get('easy') else ''}",
            f"  {printable(line['text'])}",
            f"Answer: {printable(str(line.get('answer') or 'none in the documents'))}",
            *map(printable, labels),
            f"Checks: {printable(told)}",
            f"[{KEYS}] ",
        ]
    )


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {one if one is not None else '-'}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def printable(text: str) -> str:
    """Return `text` without terminal control sequences."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)


def _key(inputs: TextIO, out: TextIO) -> str:
    """Read one key of a terminal, or the first letter of a line; return "" at the end."""
    out.flush()
    if inputs.isatty():
        import click

        try:
            return click.getchar(echo=True).lower()
        except (KeyboardInterrupt, EOFError):
            return "q"
    while line := inputs.readline():
        if line.strip():
            return line.strip()[0].lower()
    return ""


def _text(inputs: TextIO, out: TextIO) -> str:
    out.write("\nNew text: ")
    out.flush()
    said = inputs.readline().strip()
    if not said:
        raise BadInput("An empty text changes nothing.")
    return said
