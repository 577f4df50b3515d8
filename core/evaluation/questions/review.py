"""The review of generated questions in a terminal: one after the other, by keys or by lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from core.domain.errors import BadInput
from core.evaluation.questions import question_file
from core.evaluation.questions.question_file import Line, Overtaken, generated

KEYS = "a accept, e edit, d drop, s skip, u undo, q quit"


def decide_all(
    path: Path, who: str, accept: Sequence[str], drop: Sequence[str], *, every: bool = False
) -> None:
    """Accept and drop questions by id, `every`: accept all that nobody reviewed. BadInput for an id that the
    file does not have, or one in both lists; nothing is changed then.
    """
    found = {line["id"]: line for line in question_file.read(path)}
    if unknown := [id for id in (*accept, *drop) if id not in found]:
        raise BadInput(f"{path} has no question {unknown[0]!r}")
    if both := set(accept) & set(drop):
        raise BadInput(f"question {min(both)!r} is both to be accepted and to be dropped")
    proposed = [id for id, line in found.items() if generated(line).state == "proposed"]
    for id in dict.fromkeys((*accept, *(one for one in (proposed if every else ()) if one not in drop))):
        question_file.decide(path, found[id], "accepted", who)
    for id in dict.fromkeys(drop):
        question_file.decide(path, found[id], "dropped", who)


def review(path: Path, who: str, inputs: TextIO, out: TextIO) -> None:
    """Show each unreviewed question and read the decision on it, until the questions or the inputs end. On a
    terminal single keys are read. Changes by other people in the meantime are reported and shown.
    """
    done: list[tuple[Line, Line]] = []  # (before, after), for undo
    skipped: set[str] = set()
    while True:
        found = question_file.read(path)
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
                question_file.decide(path, after, "proposed", who, before["text"])
            elif key == "u":
                out.write("Nothing to undo.\n" if not skipped else "Shown again: what was skipped.\n")
                skipped.clear()
            elif key == "s":
                skipped.add(left[0]["id"])
            elif key in ("a", "d", "e"):
                text = _text(inputs, out) if key == "e" else ""
                after = question_file.decide(
                    path, left[0], "dropped" if key == "d" else "accepted", who, text
                )
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
