"""The files below a folder: found by a walk, and again without one while none was added or taken out."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core.corpus.types import LoadReport

FRESH_NS = 100_000_000  # a folder changed so lately may change again within one tick of its clock


@dataclass(frozen=True, slots=True)
class Listing:
    """What a walk found: the visible files by ending (in small letters) and, for each folder, when it was
    last changed.
    """

    files: Mapping[str, Sequence[str]]
    folders: Mapping[str, int]
    settled: bool  # whether a change since the walk is sure to be seen

    def having(self, endings: Sequence[str]) -> list[Path]:
        """The files of these endings, sorted by their path's parts."""
        return [Path(name) for name in self.names(endings)]

    def names(self, endings: Sequence[str]) -> list[str]:
        """The same as plain texts: a hundred thousand paths take a while to make."""
        found = [name for ending in dict.fromkeys(endings) for name in self.files.get(ending, ())]
        return sorted(found, key=lambda name: name.split(os.sep))


def walk(root: Path, report: LoadReport | None = None) -> Listing:
    """Every visible file below `root`: hidden files and folders and links that lead out of it are left out.

    A folder that cannot be looked into is told in `report`.
    """
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
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.is_file() and (
                        not entry.is_symlink() or os.path.realpath(entry.path).startswith(inside)
                    ):
                        found.setdefault(os.path.splitext(entry.name)[1].lower(), []).append(entry.path)
        except OSError as error:
            if report is not None:
                report.skipped.append(f"{os.path.relpath(here, root)}: {error.strerror or error}")
    settled = max(folders.values(), default=0) < began - FRESH_NS
    return Listing(found, folders, settled)


@dataclass(slots=True)
class Watch:
    """Listings by folder, walked again where one of the folders has changed. Safe in threads.

    What is in the files is not looked at: whoever wants to know reads their sizes and times.
    """

    _known: dict[Path, Listing] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def listing(self, root: Path) -> Listing:
        """The files below `root` as they are now."""
        with self._lock:
            known = self._known.get(root)
            if known is None or not known.settled or any(_changed(known)):
                known = self._known[root] = walk(root)
            return known


def _changed(known: Listing) -> Iterator[bool]:
    for folder, before in known.folders.items():
        try:
            yield os.stat(folder).st_mtime_ns != before
        except OSError:
            yield True


WATCH = Watch()
