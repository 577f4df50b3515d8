"""Model answers that ship with the project or a demo: sorted JSON lines, so that diffs are readable."""

from __future__ import annotations

import json
import logging
import re
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.backends.base import Completion, LLMRequest
from core.backends.llm.cache import from_plain, to_plain
from core.domain import system
from core.domain.errors import Unavailable

log = logging.getLogger(__name__)


class Recordings:
    """A folder of *.jsonl; each line is a call: key, endpoint, model, request, completion, ms, created.

    The request, ms and created are for readers; a file of another name than the model's may leave them out.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._seen: tuple[tuple[str, int, int], ...] | None = None
        self._lines: dict[str, dict[str, Any]] = {}

    def get(self, key: str) -> Completion | None:
        """Return the recorded completion of a call, or None."""
        line = self._read().get(key)
        if line is None:
            return None
        try:
            return from_plain(line["completion"], "recording")
        except (KeyError, TypeError, ValueError) as error:
            log.warning("the recording %s in %s is of another form: %r", key[:12], self.folder, error)
            return None

    def any_of(self, *, endpoint: str, model: str) -> bool:
        """Return True if there is a recording of that model."""
        return any(
            line.get("endpoint") == endpoint and line.get("model") == model for line in self._read().values()
        )

    def add(
        self, key: str, request: LLMRequest, completion: Completion, *, endpoint: str, model: str
    ) -> None:
        """Write one call into the model's file, in order. Raises Unavailable when that cannot be written."""
        from filelock import FileLock

        about = {"key": key, "endpoint": endpoint, "model": model, "created": completion.created}
        line = {**about, "request": asdict(request), "completion": to_plain(completion), "ms": completion.ms}
        path = self.folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '_', model).strip('._') or 'model'}.jsonl"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / ".lock"):
                lines = {**(_load(path) if path.exists() else {}), key: line}
                ordered = sorted(lines.values(), key=lambda one: (str(one["request"]["prompt"]), one["key"]))
                text = "".join(json.dumps(one, sort_keys=True, ensure_ascii=False) + "\n" for one in ordered)
                part = path.with_suffix(".tmp")  # alone: the lock is held
                part.write_text(text, encoding="utf-8")
                system.replace(part, path)
        except OSError as error:
            raise Unavailable(f"cannot record into {path}: {error}") from None

    def _read(self) -> dict[str, dict[str, Any]]:
        """All lines by key; read again when a file has changed."""
        files = sorted(self.folder.glob("*.jsonl")) if self.folder.is_dir() else []
        stats = [(file, file.stat()) for file in files]
        seen = tuple((str(file), stat.st_mtime_ns, stat.st_size) for file, stat in stats)
        with self._lock:
            if seen != self._seen:
                self._lines = {key: line for file in files for key, line in _load(file).items()}
                self._seen = seen
            return self._lines


def _load(path: Path) -> dict[str, dict[str, Any]]:
    """Read the lines of a file by key; a broken line is skipped with a warning that names file and line."""
    lines = {}
    for number, text in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            lines[str(line["key"])] = line
        except (ValueError, TypeError, KeyError) as error:
            log.warning("%s line %d is not a recording: %r", path, number, error)
    return lines
