"""Documents read and cut in a process of their own, with limits: what others wrote must not stop this one."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from core.backends.pipes import LinePipes, ProcessGone
from core.corpus.chunk import Chunking
from core.corpus.files import NO_MEMORY
from core.corpus.load import Distinct
from core.corpus.types import Cut, Document, FileRecord, LoadReport, Reading
from core.domain import system
from core.domain.errors import BadInput, Unavailable, shortened
from core.domain.settings import PROJECT

_REPORT = TypeAdapter(LoadReport)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of reading and splitting one document."""

    seconds: int = 60  # processor time
    hurried: int = 5  # the same after two files of a source reached that limit
    silent: float = 240.0  # seconds without any sign of the process
    memory: int = 2 * 1024**3  # bytes
    files: int = 5  # number of files over a limit after which others of their ending are left out


class Reader:
    """A process that reads documents, one source after another; it is ended when this is left.

    It is given no key and no setting, speaks in lines of JSON, and is started again where a file ended it.
    """

    def __init__(self, check: Callable[[], object] = lambda: None, limits: Limits | None = None) -> None:
        """`check` is called while a document is waited for, and may raise Cancelled."""
        self._check, self._limits = check, limits or Limits()
        self._pipes: LinePipes | None = None
        self._errors: Any = None
        self._seconds = self._limits.seconds  # that the process may take for a file

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, whatever it is at."""
        if self._pipes is not None:
            self._pipes.kill()
            self._errors.close()
            self._pipes = None

    def documents(
        self,
        path: Path,
        chunking: Chunking,
        report: LoadReport,
        reading: Reading | None = None,
        note: Callable[[FileRecord], object] = lambda _: None,
    ) -> Iterator[Cut]:
        """Yield every document below `path`, in a repeatable order, split into passages.

        A file that reaches a limit is left out, or what follows in it, with the reason in `report`; after
        several of them so is every other file of their ending. A file for which others left too little memory
        is read again by a new process. `note` gets the record of each file.
        """
        alone, late, begun, whole = Distinct(report), Counter[str](), 0, False
        try:
            while not whole:
                record = FileRecord("")  # of the file that is being read
                leave = [ending for ending, count in late.items() if count >= self._limits.files]
                how = {"chunking": asdict(chunking), "skip": begun, "leave": leave}
                self._seconds = self._limits.seconds
                if late.total() >= 2:
                    self._seconds = min(self._seconds, self._limits.hurried)
                try:
                    for told in self._answers(path, reading or Reading(), **how):
                        if "file" in told:
                            record, begun = FileRecord(told["file"]), begun + 1
                        elif "report" in told:
                            report.add(_REPORT.validate_python(told["report"]))
                            if "record" in told:
                                note(FileRecord(**told["record"]))
                        else:
                            document = alone.kept(Document(*told["document"]), told["where"])
                            if document is not None:
                                record.documents += 1
                                yield Cut(document, [(a, b) for a, b in told["cut"]], told["ms"])
                    whole = True
                except _Refused as refused:
                    whole = True  # it said all it has to say, and waits for the next source
                    raise refused.error from None
                except _Ended as end:
                    self.close()
                    if end.again and not record.documents:
                        begun -= 1
                        continue
                    if not record.file:
                        raise Unavailable(f"the document reader does not work here: {end}") from None
                    late[Path(record.file).suffix.lower()] += 1
                    rest = f"; its first {record.documents:,} documents were read" if record.documents else ""
                    record.skipped = f"{end}{rest}"
                    report.skip(record.file, record.skipped)
                    note(record)
        finally:
            if not whole:  # it may still speak of this source
                self.close()

    def survey(self, path: Path, reading: Reading) -> tuple[dict[str, int], LoadReport]:
        """Count the files of each ending that would be read, with a report; see `core.corpus.load.survey`.

        Raises BadInput.
        """
        try:
            ((told),) = list(self._answers(path, reading, survey=True))
        except _Refused as refused:
            raise refused.error from None
        except _Ended as end:
            self.close()
            raise BadInput(f"{path}: {end}") from None
        return told["survey"], _REPORT.validate_python(told["report"])

    def _answers(self, path: Path, reading: Reading, **how: Any) -> Iterator[dict[str, Any]]:
        """Yield the process's answers to a request. Raises _Ended and _Refused."""
        about = {"path": str(path), "reading": asdict(reading), "seconds": self._seconds}
        pipes, silent = self._start(), self._limits.silent
        most, large = self._limits.memory, _Ended(NO_MEMORY)
        try:
            pipes.send(json.dumps({**about, **how}).encode() + b"\n")
            while "end" not in (told := json.loads(pipes.line(silent, most, large, self._check))):
                if "error" in told:
                    error = BadInput if told["error"] == BadInput.__name__ else Unavailable
                    raise _Refused(error(told["message"]))
                if "limit" in told:
                    raise _Ended(told["limit"], again=told["others"])
                yield told
        except ProcessGone:
            raise self._ended() from None
        except TimeoutError:
            raise _Ended(f"reading took longer than {silent:g} s") from None

    def _start(self) -> LinePipes:
        if self._pipes is None:
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
            kept = {name: os.environ[name] for name in system.NEEDED if name in os.environ}
            command = [sys.executable, "-m", "core.corpus.reader", str(self._limits.memory)]
            env = {**kept, "PYTHONPATH": str(PROJECT)}
            self._pipes = LinePipes(command, stderr=self._errors, cwd=PROJECT, env=env)
        return self._pipes

    def _ended(self) -> _Ended:
        """Return how the process ended."""
        code = self._start().process.wait()
        self._errors.seek(0)
        last = self._errors.read()[-2_000:].decode("utf-8", "replace").strip().split("\n")[-1]
        self.close()
        how = system.how_ended(code)
        if how == "time":
            return _Ended(f"reading took longer than {self._seconds} s")
        if how == "memory":
            return _Ended("the system stopped the reader, probably because of its memory use")
        if how:
            return _Ended(f"its reading ended with signal {-code}; {NO_MEMORY}, or it is damaged")
        return _Ended(shortened(f"its reading ended ({last or f'exit code {code}'})", 300))


class _Ended(Exception):
    """The process has ended, and why; `again` says that the files it read before may be the reason."""

    def __init__(self, why: str, *, again: bool = False) -> None:
        super().__init__(why)
        self.again = again


class _Refused(Exception):
    """The process can read no more of the source; `error` says why."""

    def __init__(self, error: BadInput | Unavailable) -> None:
        self.error = error
