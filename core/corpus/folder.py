"""The files below a folder: found by a walk, and again without one while none was added or taken out."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core.corpus.types import LoadReport

OWN = (".removed",)  # what this program keeps in a folder of uploads
HIDDEN = "hidden files and folders (their names begin with a dot) are not read"
NO_FILE = "no file, or a link to none or to a folder"
FRESH_NS = 100_000_000  # a folder changed so lately may change again within one tick of its clock


@dataclass(frozen=True, slots=True)
class Listing:
    """The result of a walk."""

    files: Mapping[str, Sequence[str]]  # visible files by lower-case ending
    folders: Mapping[str, int]  # time of each folder's last change
    settled: bool  # whether a change since the walk is sure to be seen

    def having(self, endings: Sequence[str]) -> list[Path]:
        """Return the files of these endings, sorted by their path's parts."""
        return [Path(name) for name in self.names(endings)]

    def names(self, endings: Sequence[str]) -> list[str]:
        """Return the same as plain texts, as creating a hundred thousand paths takes a while."""
        found = [name for ending in dict.fromkeys(endings) for name in self.files.get(ending, ())]
        return sorted(found, key=lambda name: name.split(os.sep))

    def has_changed(self) -> bool:
        """Return True if a file was added or taken out since, or may have been."""
        try:
            now = {folder: os.stat(folder).st_mtime_ns for folder in self.folders}
        except OSError:
            return True
        return not self.settled or now != self.folders


def walk(root: Path, report: LoadReport | None = None) -> Listing:
    """List every visible file below `root`, without hidden files and folders and links that lead out of it.

    Omitted files and unreadable folders are added to `report`.
    """
    report = report if report is not None else LoadReport()
    found: dict[str, list[str]] = {}
    folders: dict[str, int] = {}
    real = os.path.realpath(root)
    inside = real.rstrip(os.sep) + os.sep
    waiting = [str(root)]
    began = time.time_ns()
    while waiting:
        here = waiting.pop()
        try:
            folders[here] = os.stat(here).st_mtime_ns  # before its entries are read: a change is seen later
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
    settled = max(folders.values(), default=0) < began - FRESH_NS
    return Listing(found, folders, settled)


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


@dataclass(slots=True)
class Watch:
    """Listings by folder, repeated if one of the folders has changed. Thread-safe.

    The content of files is not checked: callers compare their sizes and times.
    """

    _known: dict[Path, Listing] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def listing(self, root: Path) -> Listing:
        """Return the current files below `root`."""
        with self._lock:
            known = self._known.get(root)
            if known is None or known.has_changed():
                known = self._known[root] = walk(root)
            return known


WATCH = Watch()
