"""A pipeline's function in a process of its own interpreter: started once, started again when it has died."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.backends.pipes import LinePipes, ProcessGone
from core.domain import system
from core.domain.errors import Cancelled, PipelineFailed, PipelineTimedOut, Unavailable, shortened
from core.domain.pipelines import Pipeline
from core.domain.redact import redacted

RUNNER = Path(__file__).with_name("runner.py")
SUPERVISOR = Path(__file__).with_name("supervisor.py")
MAX_BYTES = 16 << 20  # of one reply
KEPT_STDERR = 64 << 10  # bytes of what it printed last
END_S = 1.0  # a process that is asked to end gets so long
KILL_S = 6.0  # a supervisor that ends all processes below it
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)  # in names of variables
_MEANT = 8  # characters from which the value of such a variable is taken for a secret
# Variables that a pipeline's process gets unasked: what libraries need to start and to find their files.
_PASSED = re.compile(
    rf"{'|'.join(system.NEEDED)}|USER|USERNAME|LOGNAME|SHELL|LANGUAGE|LC_\w+|TERM|PYTHON\w+|VIRTUAL_ENV|COMSPEC|PATHEXT"
    r"|CONDA_\w+|(DY)?LD_LIBRARY_PATH|JAVA_HOME|XDG_\w+|(CUDA|NVIDIA|ROCR|HIP|OMP|MKL|OPENBLAS|NUMEXPR|KMP)_\w+"
    r"|TOKENIZERS_PARALLELISM|HF_(HOME|HUB_CACHE|HUB_OFFLINE|DATASETS_CACHE)|TORCH_\w+|TRANSFORMERS_\w+"
    r"|SENTENCE_TRANSFORMERS_HOME|NLTK_DATA|TIKTOKEN_CACHE_DIR|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE"
)


class Function:
    """One function in a process; callers make one call at a time."""

    def __init__(self, pipeline: Pipeline, secrets: Sequence[str]) -> None:
        self._pipeline = pipeline
        hidden = (value for name, value in os.environ.items() if _SECRET.search(name))
        self._secrets = (*secrets, *(value for value in hidden if len(value) >= _MEANT))
        self._child: _Child | None = None
        self._starts = 0
        self._last = b""  # what an earlier process printed last

    def ready(self, cancel: threading.Event) -> None:
        """Start it if it is not there: a new interpreter, the file imported."""
        if self._child is not None and self._child.alive():
            return
        self.stop()
        self._starts += 1
        child = self._child = _Child(self._pipeline)
        try:
            child.greeted(self._pipeline.start_timeout_s, cancel)
        except Cancelled:
            self.stop()
            raise
        except Unavailable as error:
            self.stop()
            raise Unavailable(self._with_words(str(error))) from None

    def ask(
        self, asked: Mapping[str, Any], timeout: float, cancel: threading.Event
    ) -> tuple[bytes, float | None]:
        """Return the reply as JSON text, and the function's milliseconds by its process' own clock."""
        child = self._child
        if child is None:
            raise Unavailable(f"{self._pipeline.owner} is not running")
        owner = self._pipeline.owner
        try:
            said = child.ask(asked, timeout, cancel)
        except (ProcessGone, TimeoutError, Cancelled, PipelineFailed) as error:
            code = child.end() if isinstance(error, ProcessGone) else ""
            self.stop()  # nothing else ends code that hangs
            if isinstance(error, TimeoutError):
                why = f"{owner} gave no reply within {timeout:.3g} s; its process was ended"
                raise PipelineTimedOut(self._with_words(why)) from None
            if isinstance(error, ProcessGone):
                why = f"{owner}: its process ended during the call{code}"
                raise PipelineFailed(self._with_words(why)) from None
            raise
        if "error" in said:
            raise PipelineFailed(f"{owner} failed: {self._clean(child.explained(str(said['error'])))}")
        inside = said.get("ms")
        reply = self._clean(said["reply"].decode("utf-8", "replace")).encode()
        return reply, float(inside) if isinstance(inside, int | float) else None

    def facts(self) -> Mapping[str, Any]:
        """Fields of `DoorState`."""
        child, names = self._child, ("kind", "python", "started", "start_ms")
        more = {name: getattr(child, name) for name in names} if child else {}
        running = child is not None and child.alive()
        return {"running": running, "starts": self._starts, "stderr": self._printed(), **more}

    def stop(self) -> None:
        """End the process, and what it started."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            self._last = child.printed

    def _printed(self) -> str:
        """Return the end of what this or the last process printed, without secrets."""
        printed = self._child.printed if self._child is not None else self._last
        return self._clean(printed.decode("utf-8", "replace"))

    def _with_words(self, message: str) -> str:
        """`message` with the last line that was printed: in a traceback that is the error."""
        lines = self._printed().split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"{message}; it printed last: {shortened(last, 300)!r}" if last else message

    def _clean(self, text: str) -> str:
        return redacted(text, self._secrets)


class _Child:
    """One process of the runner."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._owner = pipeline.owner
        self.kind = self.python = ""
        self.start_ms: float | None = None
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.printed = b""  # the end of its output
        if absent := [name for name in pipeline.env if name not in os.environ]:
            raise Unavailable(f"{self._owner} needs the environment variable {absent[0]}, which is not set")
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if name in pipeline.env or (_PASSED.fullmatch(name) and not _SECRET.search(name))
        }
        command = [pipeline.python, str(RUNNER), str(pipeline.file), pipeline.function]
        self._supervised = system.LINUX
        if self._supervised:
            import psutil

            half = max(1024, int(psutil.virtual_memory().total) >> 21)  # of this machine's memory, in MB
            limits = [str(os.getpid()), str(pipeline.memory_mb or half)]
            command = [sys.executable, "-I", "-S", str(SUPERVISOR), *limits, *command]
        system.conceal()
        where: dict[str, Any] = {"cwd": pipeline.file.parent, "env": self._environment}
        try:
            self._pipes = LinePipes(command, **where, stderr=subprocess.PIPE)
        except OSError as error:
            raise Unavailable(f"{self._owner}: cannot start {pipeline.python}: {error}") from None
        self._process = self._pipes.process
        self._reader = threading.Thread(target=self._read_stderr, daemon=True, name=f"stderr-{pipeline.name}")
        self._reader.start()

    def alive(self) -> bool:
        """Return True if the process is running."""
        return self._process.poll() is None

    def greeted(self, seconds: float, cancel: threading.Event) -> None:
        """Wait until it takes requests; raises Unavailable that says why it does not."""
        began = time.perf_counter()
        try:
            said = _object(self._line(seconds, cancel))
        except ProcessGone:
            raise Unavailable(f"{self._owner}: its process did not start{self.end()}") from None
        except TimeoutError:
            raise Unavailable(f"{self._owner}: loading its file took more than {seconds:.3g} s") from None
        except PipelineFailed as error:
            raise Unavailable(str(error)) from None
        if said is None or not ("ready" in said or "error" in said):
            raise Unavailable(f"{self._owner}: its interpreter is no Python that runs the runner")
        if "error" in said:
            raise Unavailable(f"{self._owner}: {self.explained(str(said['error']))}")
        self.kind, self.python = str(said["ready"]), str(said.get("python", ""))
        self.start_ms = (time.perf_counter() - began) * 1000

    def ask(self, asked: Mapping[str, Any], seconds: float, cancel: threading.Event) -> dict[str, Any]:
        """Send a request and return its answer: an error, or a reply as JSON text and its `ms`. After an
        exception the process must be ended.
        """
        asking = secrets.token_hex(16)  # no process that it started can guess it and reply
        self._pipes.send(json.dumps({"id": asking, "ask": asked}).encode() + b"\n")
        end = time.monotonic() + seconds
        line = self._line(seconds, cancel)
        # The reply is left as text: it is read once, by the reader of replies.
        head, mark, reply = line.partition(b'"reply": ')
        said = _object(head.rstrip(b", ") + b"}" if mark else line)
        if said is None or said.get("id") != asking or not (mark or "error" in said):
            text = shortened(repr(line), 120)
            raise PipelineFailed(f"{self._owner}: its process said what is no reply: {text}")
        if time.monotonic() > end:
            raise TimeoutError
        return {**said, "reply": reply.rstrip()[:-1]} if mark else said

    def explained(self, error: str) -> str:
        """Return `error`, with a hint if it names a variable that the pipeline was not given."""
        for name in os.environ.keys() - self._environment.keys():
            if len(name) > 3 and re.search(rf"\b{re.escape(name)}\b", error):
                return f"{error}; to pass {name} to it, add it to env in its settings or use --env {name}"
        return error

    def end(self) -> str:
        """Return how the process ended after closing its stdout."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        self._reader.join(END_S)
        code = self._process.poll()
        if code is None:
            return ""
        if code < 0:
            with suppress(ValueError):
                return f" ({signal.Signals(-code).name})"
        return f" (exit code {code})"

    def kill(self) -> None:
        """End it and all that it started; without a supervisor, those of its process group."""
        if self._supervised and self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(KILL_S)
        system.end_group(self._process)
        self._process.wait()
        self._reader.join(END_S)
        self._pipes.close()

    def _read_stderr(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        with stream:
            while block := stream.read(1 << 14):
                self.printed = (self.printed + block)[-KEPT_STDERR:]

    def _line(self, seconds: float, cancel: threading.Event) -> bytes:
        """Return the next line. Raises TimeoutError, ProcessGone, Cancelled, and PipelineFailed if it is too
        long.
        """

        def check() -> None:
            if cancel.is_set():
                raise Cancelled(f"stopped while {self._owner} was answering")

        too_long = PipelineFailed(f"{self._owner}: its reply is larger than {MAX_BYTES >> 20} MiB")
        return self._pipes.line(seconds, MAX_BYTES, too_long, check)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
