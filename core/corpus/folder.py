"""The files below a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.corpus.types import LoadReport

OWN = (".removed",)  # what this program keeps in a folder of uploads
HIDDEN = "hidden files and folders (their names begin with a dot) are not read"
NO_FILE = "no file, or a link to none or to a folder"


@dataclass(frozen=True, slots=True)
class Listing:
    """The result of a walk."""

    files: Mapping[str, Sequence[str]]  # visible files by lower-case ending

    def having(self, endings: Sequence[str]) -> list[Path]:
        """Return the files of these endings, sorted by their path's parts."""
        found = [name for ending in dict.fromkeys(endings) for name in self.files.get(ending, ())]
        return [Path(name) for name in sorted(found, key=lambda name: name.split(os.sep))]


def walk(root: Path, report: LoadReport | None = None) -> Listing:
    """List every visible file below `root`, without hidden files and folders and links that lead out of it.

    Omitted files and unreadable folders are added to `report`.
    """
    report = report if report is not None else LoadReport()
    found: dict[str, list[str]] = {}
    real = os.path.realpath(root)
    inside = real.rstrip(os.sep) + os.sep
    waiting = [str(root)]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.name in OWN:
                        continue
                    if why := _unread(entry, inside):
                        report.skip(_told(entry.path, root), why)
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        found.setdefault(os.path.splitext(entry.name)[1].lower(), []).append(entry.path)
        except OSError as error:
            report.skip(_told(here, root), error.strerror or str(error))
    return Listing(found)


def _unread(entry: os.DirEntry[str], inside: str) -> str:
    """Return why an entry of a folder is not read; "" for a file and for a folder."""
    if entry.name.startswith("."):
        return HIDDEN
    if entry.is_symlink() and not os.path.realpath(entry.path).startswith(inside):
        return "a link that leads out of the folder is not followed"
    try:
        return "" if entry.is_file() or entry.is_dir(follow_symlinks=False) else NO_FILE
    except OSError as error:  # links that lead to each other
        return error.strerror or str(error)


def _told(path: str, root: Path) -> str:
    """Return a path below `root` as text that UTF-8 can hold."""
    return os.fsencode(os.path.relpath(path, root)).decode("utf-8", "replace")
